//! A policy, what is due under it, and one leader after another.

use std::{num::NonZeroU64, sync::Arc};

use trainjob_api::time::Timestamp;

use super::super::{
    Breaker, DueObject, News, OwnerEnd, PolicyVersion, Record, Stage, Trip, TripId, Verdict,
};
use crate::uid::Uid;

/// When every scene begins.
pub(super) const BEGIN: i64 = 1_767_520_800;
/// The limit of every policy here.
pub(super) const LIMIT: usize = 50;
pub(super) const MAX_COUNT: NonZeroU64 = NonZeroU64::new(LIMIT as u64).unwrap();

pub(super) struct Scene {
    pub(super) now: i64,
    pub(super) breaker: Breaker,
    /// All that is due.
    pub(super) due: Vec<(Uid, DueObject)>,
    /// What the status says; it outlives the leader.
    pub(super) status: Option<Record>,
    pub(super) digest: Arc<str>,
    /// How many objects there ever were.
    made: usize,
}

/// So many objects of a namespace that are due since then.
pub(super) struct Objects(pub(super) &'static str, pub(super) usize, pub(super) i64);

impl Scene {
    /// A policy that is judged for the first time, with this due.
    pub(super) fn of_new_policy(objects: &[Objects]) -> Self {
        let digest: Arc<str> = "d1".into();
        let breaker = Breaker::start(version(&digest), None, 0, [], at(BEGIN));
        let due = Vec::new();
        let mut scene = Self { now: BEGIN, breaker, due, status: None, digest, made: 0 };
        for objects in objects {
            scene.exist(objects);
        }
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
        let due = self.due.clone();
        let (stock, status) = (due.len() as u64, self.status.as_ref());
        self.breaker = Breaker::start(version(&self.digest), status, stock, due, at(self.now));
    }

    /// The digest changes while the leader lives.
    pub(super) fn edit(&mut self, digest: &str) {
        self.digest = digest.into();
        self.start_again();
    }

    /// The leader judges again, with what the status says now.
    pub(super) fn start_again(&mut self) {
        let version = version(&self.digest);
        let unused = Breaker::start(version.clone(), None, 0, [], at(self.now));
        let breaker = std::mem::replace(&mut self.breaker, unused);
        let due = self.due.clone();
        let (stock, status) = (due.len() as u64, self.status.as_ref());
        self.breaker = breaker.start_again(version, status, stock, due, at(self.now));
    }

    /// The clock jumps, and the leader notices.
    pub(super) fn step_clock(&mut self, by: i64) {
        self.now += by;
        self.breaker.step_clock(self.due.len() as u64, at(self.now));
    }

    /// Time passes in which the leader sees everything.
    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += seconds;
        self.breaker.looked(at(self.now));
    }

    /// These are due, and nobody has looked at them; says which they are.
    pub(super) fn exist(&mut self, Objects(namespace, count, due): &Objects) -> Vec<Uid> {
        let namespace: Arc<str> = (*namespace).into();
        let uids = (self.made..self.made + count).map(|number| Uid::from(&*number.to_string()));
        let uids: Vec<_> = uids.collect();
        self.made += count;
        for uid in &uids {
            self.due.push((uid.clone(), due_object(&namespace, *due)));
        }
        uids
    }

    /// These become due, and the leader looks at them.
    pub(super) fn arrive(&mut self, objects: &Objects, news: News) {
        let before = self.due.len();
        self.exist(objects);
        for (uid, object) in &self.due[before..] {
            self.breaker.observe(uid.clone(), object.clone(), news, at(self.now));
        }
    }

    /// Edits leave only the first so many due.
    pub(super) fn leave_due(&mut self, count: usize) {
        for (uid, _) in self.due.drain(count..) {
            self.breaker.forget(&uid);
        }
    }

    pub(super) fn judge(&mut self, acknowledged: Option<&str>) -> Verdict {
        self.breaker.judge(self.due.len() as u64, acknowledged, at(self.now))
    }

    pub(super) fn store(&mut self) {
        let record = self.breaker.record();
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
        self.judge(id.as_ref().map(TripId::as_str)).acknowledged.is_some()
    }

    pub(super) fn trip_id(&self) -> Option<TripId> {
        self.breaker.tripped().map(|trip| trip.id.clone())
    }

    /// How many objects the trip counts.
    pub(super) fn tripped(&self) -> Option<u64> {
        self.breaker.tripped().map(Trip::count)
    }

    /// How many objects may be deleted now.
    pub(super) fn deletable(&self) -> usize {
        self.due.iter().filter(|(uid, _)| self.breaker.may_delete(uid).is_ok()).count()
    }

    /// How many may be in one namespace.
    pub(super) fn deletable_in(&self, namespace: &str) -> usize {
        let there = self.due.iter().filter(|(_, object)| &*object.namespace == namespace);
        there.filter(|(uid, _)| self.breaker.may_delete(uid).is_ok()).count()
    }

    /// Deletes so many at most, and says how many.
    pub(super) fn delete(&mut self, most: usize) -> usize {
        let mut left = most;
        let breaker = &mut self.breaker;
        self.due.retain(|(uid, _)| {
            let goes = left > 0 && breaker.may_delete(uid).is_ok();
            if goes {
                left -= 1;
                breaker.forget(uid);
            }
            !goes
        });
        most - left
    }
}

/// An object of a namespace that is due since then, whatever its owner does.
pub(super) fn due_object(namespace: &Arc<str>, due: i64) -> DueObject {
    let (namespace, due) = (Arc::clone(namespace), at(due));
    DueObject { namespace, due, stage: Stage::Object, owner: OwnerEnd::Irrelevant }
}

fn version(digest: &Arc<str>) -> PolicyVersion {
    PolicyVersion { generation: 7, digest: Arc::clone(digest), max_count: MAX_COUNT }
}

pub(super) const fn at(seconds: i64) -> Timestamp {
    Timestamp(seconds)
}
