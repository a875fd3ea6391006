//! A policy, what is due under it, and one leader after another.

use std::sync::Arc;

use trainjob_api::time::Timestamp;

use super::super::{
    Arrival, Breaker, Due, News, PolicyVersion, Record, Standing, Start, TripId, Verdict,
};

/// When every scene begins.
pub(super) const BEGIN: i64 = 1_767_520_800;
/// The limit of every policy here.
pub(super) const MAX_COUNT: u64 = 50;

pub(super) struct Row {
    pub(super) namespace: Arc<str>,
    due: Timestamp,
    standing: Standing,
}

pub(super) struct Scene {
    pub(super) now: i64,
    pub(super) breaker: Breaker,
    pub(super) rows: Vec<Row>,
    /// What the status says; it outlives the leader.
    pub(super) status: Option<Record>,
    pub(super) digest: Arc<str>,
}

/// So many objects of a namespace that are due since then.
pub(super) struct Objects(pub(super) &'static str, pub(super) usize, pub(super) i64);

impl Scene {
    /// A policy that is judged for the first time, with this due.
    pub(super) fn of_new_policy(objects: &[Objects]) -> Self {
        let digest: Arc<str> = "d1".into();
        let (breaker, _) = Breaker::start(version(&digest), None, 0, [].into_iter(), at(BEGIN));
        let rows = objects.iter().flat_map(rows).collect();
        let mut scene = Self { now: BEGIN, breaker, rows, status: None, digest };
        scene.start();
        scene
    }

    /// A policy that has enforced for long, with nothing to do.
    pub(super) fn at_rest() -> Self {
        let mut scene = Self::of_new_policy(&[]);
        scene.store();
        scene
    }

    /// A leader begins, from what is stored.
    pub(super) fn start(&mut self) {
        let due = self.rows.iter().map(|row| (&row.namespace, row.due));
        let stock = self.rows.len() as u64;
        let (breaker, start) =
            Breaker::start(version(&self.digest), self.status.as_ref(), stock, due, at(self.now));
        self.breaker = breaker;
        self.begin_with(&start);
    }

    /// The digest changes while the leader lives.
    pub(super) fn edit(&mut self, digest: &str) {
        self.digest = digest.into();
        self.start_again();
    }

    /// The leader judges again, with what the status says now.
    pub(super) fn start_again(&mut self) {
        let (version, stored) = (version(&self.digest), self.status.as_ref());
        let (unused, _) = Breaker::start(version.clone(), None, 0, [].into_iter(), at(self.now));
        let breaker = std::mem::replace(&mut self.breaker, unused);
        let due = self.rows.iter().map(|row| (&row.namespace, row.due));
        let stock = self.rows.len() as u64;
        let (breaker, start) = breaker.start_again(version, stored, stock, due, at(self.now));
        self.breaker = breaker;
        self.begin_with(&start);
    }

    /// The clock jumps, and the leader notices.
    pub(super) fn step_clock(&mut self, by: i64) {
        self.now += by;
        let count = self.rows.len();
        let start = self.breaker.step_clock(count as u64, count, at(self.now));
        self.begin_with(&start);
    }

    fn begin_with(&mut self, start: &Start) {
        for row in &mut self.rows {
            row.standing = start.standing(&row.namespace, row.due);
        }
    }

    /// Time passes in which the leader sees everything.
    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += seconds;
        self.breaker.advance(at(self.now));
    }

    /// These become due, and the leader looks at them.
    pub(super) fn arrive(&mut self, objects: &Objects, news: News) {
        let now = at(self.now);
        for row in rows(objects) {
            let arrival = Arrival { due: row.due, before: None, news };
            let standing = self.breaker.standing(arrival, now);
            self.rows.push(Row { standing, ..row });
        }
    }

    pub(super) fn judge(&mut self, acknowledged: Option<&str>) -> Verdict {
        let stock = self.rows.len() as u64;
        let now = at(self.now);
        let verdict = self.breaker.judge(stock, dues(&self.rows), acknowledged, now);
        for row in &mut self.rows {
            row.standing = verdict.standing(&row.namespace, row.standing);
        }
        verdict
    }

    pub(super) fn store(&mut self) {
        let record = self.breaker.record(dues(&self.rows));
        self.status = Some(record.clone());
        self.breaker.stored(record);
    }

    /// Judges and stores.
    pub(super) fn settle(&mut self) {
        let _ = self.judge(None);
        self.store();
    }

    /// Acknowledges the present trip; whether that ended it.
    pub(super) fn acknowledge(&mut self) -> bool {
        let id = self.trip_id();
        self.judge(id.as_ref().map(TripId::as_str)).acknowledged().is_some()
    }

    pub(super) fn trip_id(&self) -> Option<TripId> {
        self.breaker.tripped().map(|trip| trip.id.clone())
    }

    /// How many objects the trip counts.
    pub(super) fn tripped(&self) -> Option<u64> {
        self.breaker.tripped().map(super::super::Trip::count)
    }

    fn may_go(&self, row: &Row) -> bool {
        self.breaker.may_delete(&row.namespace, row.standing).is_ok()
    }

    /// How many objects may be deleted now.
    pub(super) fn deletable(&self) -> usize {
        self.rows.iter().filter(|row| self.may_go(row)).count()
    }

    /// How many may be in one namespace.
    pub(super) fn deletable_in(&self, namespace: &str) -> usize {
        let rows = self.rows.iter().filter(|row| &*row.namespace == namespace);
        rows.filter(|row| self.may_go(row)).count()
    }

    /// Deletes so many at most, and says how many.
    pub(super) fn delete(&mut self, most: usize) -> usize {
        let mut left = most;
        let breaker = &self.breaker;
        self.rows.retain(|row| {
            let goes = left > 0 && breaker.may_delete(&row.namespace, row.standing).is_ok();
            left -= usize::from(goes);
            !goes
        });
        most - left
    }
}

fn version(digest: &Arc<str>) -> PolicyVersion {
    PolicyVersion { generation: 7, digest: Arc::clone(digest), max_count: MAX_COUNT }
}

pub(super) const fn at(seconds: i64) -> Timestamp {
    Timestamp(seconds)
}

fn dues(rows: &[Row]) -> impl Iterator<Item = Due<'_>> {
    rows.iter().map(|row| Due { namespace: &row.namespace, due: row.due, standing: row.standing })
}

fn rows(Objects(namespace, count, due): &Objects) -> impl Iterator<Item = Row> {
    let namespace: Arc<str> = (*namespace).into();
    let due = at(*due);
    (0..*count).map(move |_| Row {
        namespace: Arc::clone(&namespace),
        due,
        standing: Standing::Expected,
    })
}
