//! A leader: what the program does around the breaker.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU64,
    sync::Arc,
};

use trainjob_api::time::Timestamp;

use super::{
    super::super::{
        Breaker, DueObject, Hold, News, OwnerEnd, PolicyVersion, Record, STORE_INTERVAL, Scope,
        Stage, Standing, Trip,
    },
    cluster::{Cluster, Id, MAX_COUNT, POLICIES, at, uid},
    defect::Defect,
};
use crate::uid::Uid;

/// A limit that is not the policy's.
const RAISED: NonZeroU64 = MAX_COUNT.saturating_mul(NonZeroU64::new(3).unwrap());
/// For how long a leader deletes whose watch is dead.
const BLIND: i64 = 90;
/// After so long a dead watch begins again with a list.
const RELIST: i64 = 60;

/// An object that the leader knows is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    uid: Uid,
    pub(super) policy: usize,
    pub(super) namespace: Arc<str>,
    pub(super) due: i64,
}

pub(super) struct Leader {
    defect: Option<Defect>,
    pub(super) view: Cluster,
    /// When the watch was live last.
    seen: i64,
    /// Whether the view is one of before the start.
    pub(super) is_stale: bool,
    known: BTreeSet<Id>,
    breakers: [Option<Breaker>; POLICIES],
    pub(super) rows: BTreeMap<Id, Row>,
    /// Until when everything has been looked at, by policy.
    pub(super) looked: [i64; POLICIES],
    last_store: [i64; POLICIES],
}

/// That a policy was judged anew.
pub(super) struct Began {
    pub(super) policy: usize,
    /// The record that it went on from; `None`: it is a new digest.
    pub(super) resumed: Option<Record>,
}

/// What a judgement of a policy said.
pub(super) struct Judged {
    pub(super) policy: usize,
    pub(super) acknowledged: Option<Acknowledged>,
    pub(super) tripped: Option<Trip>,
    /// The trip of before.
    pub(super) before: Option<Trip>,
}

pub(super) struct Acknowledged {
    pub(super) trip: Trip,
    /// What it let go.
    pub(super) ids: Vec<Id>,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Luck {
    Good,
    /// It does not arrive.
    Lost,
    /// Its answer does not arrive.
    Unanswered,
}

impl Leader {
    pub(super) fn new(view: Cluster, now: i64, defect: Option<Defect>) -> Self {
        Self {
            defect,
            view,
            seen: now,
            is_stale: true,
            known: BTreeSet::new(),
            breakers: [None, None],
            rows: BTreeMap::new(),
            looked: [now; POLICIES],
            last_store: [i64::MIN; POLICIES],
        }
    }

    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    pub(super) fn trip(&self, policy: usize) -> Option<&Trip> {
        self.breakers[policy].as_ref()?.tripped()
    }

    pub(super) fn leads(&self, policy: usize) -> bool {
        self.breakers[policy].is_some()
    }

    /// How an object stands that is due under a policy, as the breaker says.
    pub(super) fn standing(&self, policy: usize, id: Id) -> Option<Standing> {
        self.breakers[policy].as_ref()?.standing(&self.rows.get(&id)?.uid)
    }

    /// What is due under a policy.
    pub(super) fn rows_of(&self, policy: usize) -> impl Iterator<Item = (Id, &Row)> {
        self.rows.iter().filter(move |(_, row)| row.policy == policy).map(|(id, row)| (*id, row))
    }

    /// Whether a look now shows which objects ended since the last.
    pub(super) fn sees_ends(&self, now: i64) -> bool {
        !self.known.is_empty() && now - self.seen <= RELIST
    }

    /// Looks at everything: at what the cluster shows, or, if the watch is dead, at what it knows.
    pub(super) fn look(&mut self, shown: Option<&Cluster>, now: i64) -> Vec<Began> {
        let listed = !self.sees_ends(now);
        let old = std::mem::take(&mut self.known);
        if let Some(cluster) = shown {
            self.view = cluster.clone();
            self.seen = now;
        }
        self.known = self.view.objects.keys().copied().collect();
        let before = std::mem::take(&mut self.rows);
        let due = self.view.due(now).into_iter();
        self.rows = due.map(|(id, (policy, due))| (id, self.row(id, policy, due))).collect();
        let began: Vec<_> = (0..POLICIES).filter_map(|policy| self.begin(policy, now)).collect();
        let forgets = self.has(Defect::StandingForgotten);
        let changed = self.rows.iter().filter(|(id, row)| forgets || before.get(id) != Some(row));
        let changed: Vec<_> = changed.map(|(id, row)| (*id, row.clone())).collect();
        for (id, row) in &before {
            let stays = self.rows.get(id).is_some_and(|it| it.policy == row.policy);
            if let (false, Some(breaker)) = (stays && !forgets, &mut self.breakers[row.policy]) {
                breaker.forget(&row.uid);
            }
        }
        for (id, row) in changed {
            let is_news = !listed && !old.contains(&id) && !self.has(Defect::EndsUnexpected);
            let is_end = is_news || self.has(Defect::AllExpected);
            if began.iter().all(|began| began.policy != row.policy) {
                self.observe(&row, if is_end { News::End } else { News::Other }, now);
            }
        }
        if shown.is_some() || self.has(Defect::LooksRunAhead) {
            self.note_look(now);
        }
        began
    }

    fn row(&self, id: Id, policy: usize, due: i64) -> Row {
        let namespace = self.view.objects[&id].namespace;
        let namespace = Arc::clone(&self.view.namespaces[namespace].name);
        Row { uid: uid(id), policy, namespace, due }
    }

    fn observe(&mut self, row: &Row, news: News, now: i64) {
        if let Some(breaker) = &mut self.breakers[row.policy] {
            breaker.observe(row.uid.clone(), due_object(row), news, at(now));
        }
    }

    fn note_look(&mut self, now: i64) {
        if !self.has(Defect::LooksForgotten) {
            self.looked = [now; POLICIES];
            self.breakers.iter_mut().flatten().for_each(|breaker| breaker.looked(at(now)));
        }
    }

    /// Judges a policy whose digest is new, or which nobody judged in this process.
    fn begin(&mut self, index: usize, now: i64) -> Option<Began> {
        let policy = &self.view.policies[index];
        if !policy.enforces {
            self.breakers[index] = None;
            return None;
        }
        let digest = policy.digest();
        let generation = policy.generation;
        let version =
            PolicyVersion { generation, digest: Arc::clone(&digest), max_count: MAX_COUNT };
        let status = policy.status.clone();
        let resumed = status.clone().filter(|record| record.digest == digest);
        let live = self.breakers[index].take();
        let fits = |breaker: &Breaker| {
            breaker.version().digest == digest && !breaker.is_outdated(status.as_ref())
        };
        let live = match live {
            Some(mut breaker) if fits(&breaker) => {
                let raised = self.has(Defect::LimitRaised);
                breaker.update(generation, if raised { RAISED } else { MAX_COUNT });
                self.breakers[index] = Some(breaker);
                return None;
            }
            live => live,
        };
        let stored = status.map(|record| self.misread(record, &digest));
        let due: Vec<_> =
            self.rows_of(index).map(|(_, row)| (row.uid.clone(), due_object(row))).collect();
        let (stock, stored, now_is) = (due.len() as u64, stored.as_ref(), at(now));
        self.breakers[index] = Some(match live {
            None => Breaker::start(version, stored, stock, due, now_is),
            Some(live) => live.start_again(version, stored, stock, due, now_is),
        });
        self.looked[index] = now;
        Some(Began { policy: index, resumed })
    }

    fn misread(&self, record: Record, digest: &Arc<str>) -> Record {
        match self.defect {
            Some(Defect::TripForgotten) => Record { trip: None, ..record },
            Some(Defect::StartExpectsAll) => Record { through: at(0), ..record },
            Some(Defect::DigestIgnored) => Record { digest: Arc::clone(digest), ..record },
            _ => record,
        }
    }

    /// The clock jumped, and the estimator says so.
    pub(super) fn step_clock(&mut self, now: i64) {
        if !self.has(Defect::ClockIgnored) {
            let stock = self.rows.len() as u64;
            self.breakers.iter_mut().flatten().for_each(|it| it.step_clock(stock, at(now)));
        }
    }

    pub(super) fn judge(&mut self, now: i64) -> Vec<Judged> {
        (0..POLICIES).filter_map(|policy| self.judge_one(policy, now)).collect()
    }

    fn judge_one(&mut self, policy: usize, now: i64) -> Option<Judged> {
        let before = self.trip(policy).cloned();
        let annotation = self.view.policies[policy].annotation.clone();
        let current = before.as_ref().map(|trip| trip.id.to_string());
        let any = self.has(Defect::AnyAcknowledgement) && annotation.is_some();
        let annotation = if any { current.clone() } else { annotation };
        let boundless = self.has(Defect::AcknowledgementBoundless) && annotation == current;
        let uncounted = before.as_ref().filter(|_| boundless);
        let uncounted = uncounted.map_or(Vec::new(), |trip| self.uncounted(policy, trip));
        let waiting = self.waiting(policy);
        let stock = self.rows.len() as u64;
        let breaker = self.breakers[policy].as_mut()?;
        for id in &uncounted {
            breaker.forget(&self.rows[id].uid);
        }
        let verdict = breaker.judge(stock, annotation.as_deref(), at(now));
        for id in uncounted {
            self.observe(&self.rows[&id].clone(), News::End, now);
        }
        let acknowledged = verdict.acknowledged.map(|trip| {
            let still = self.waiting(policy);
            let there = |id: &Id| trip.stops(&self.rows[id].namespace) && !still.contains(id);
            let ids = waiting.into_iter().filter(there).collect();
            Acknowledged { trip, ids }
        });
        let forgets = self.has(Defect::AcknowledgementForgotten);
        for id in acknowledged.iter().filter(|_| forgets).flat_map(|it| &it.ids) {
            self.breakers[policy].as_mut()?.forget(&self.rows[id].uid);
            self.observe(&self.rows[id].clone(), News::Other, now);
        }
        Some(Judged { policy, acknowledged, tripped: verdict.tripped, before })
    }

    /// What is due beyond the number that a trip counts.
    fn uncounted(&self, policy: usize, trip: &Trip) -> Vec<Id> {
        let counted = usize::try_from(trip.count()).unwrap();
        self.rows_of(policy).map(|(id, _)| id).skip(counted).collect()
    }

    fn waiting(&self, policy: usize) -> Vec<Id> {
        let waits = |id: &Id| matches!(self.standing(policy, *id), Some(Standing::Waiting { .. }));
        self.rows_of(policy).map(|(id, _)| id).filter(waits).collect()
    }

    /// Stores what is urgent or old; says which policies it tried to store and what came of it.
    pub(super) fn store(
        &mut self,
        cluster: &mut Cluster,
        now: i64,
        mut luck: impl FnMut() -> Luck,
    ) -> Vec<(usize, bool)> {
        let mut tried = Vec::new();
        for policy in 0..POLICIES {
            let record = self.breakers[policy].as_ref().map(|it| self.record(policy, it));
            if !self.is_to_store(policy, record.as_ref(), now) {
                continue;
            }
            let luck = luck();
            let version = self.view.policies[policy].version;
            let version = (!self.has(Defect::StoreNotFenced)).then_some(version);
            let stored = match luck {
                Luck::Lost => None,
                Luck::Good | Luck::Unanswered => cluster.store(policy, version, record.clone()),
            };
            tried.push((policy, stored.is_some()));
            let confirmed = stored.filter(|_| luck == Luck::Good);
            if let Some(version) = confirmed {
                self.last_store[policy] = now;
                let seen = &mut self.view.policies[policy];
                (seen.version, seen.status) = (version, record.clone());
            }
            let takes = confirmed.is_some() || self.has(Defect::StoreNotAwaited);
            if let (Some(breaker), Some(record), true) = (&mut self.breakers[policy], record, takes)
            {
                breaker.stored(record);
            }
        }
        tried
    }

    fn record(&self, policy: usize, breaker: &Breaker) -> Record {
        let record = breaker.record();
        let dues = self.rows_of(policy).map(|(_, row)| at(row.due));
        let through = match self.defect {
            Some(Defect::ThroughPassesBacklog) => at(self.looked[policy]),
            Some(Defect::ThroughHeldByWaiting) => dues.fold(record.through, Timestamp::min),
            _ => record.through,
        };
        Record { through, ..record }
    }

    /// Whether a record is urgent or old. An audited policy has none, and its status is cleared.
    fn is_to_store(&self, policy: usize, record: Option<&Record>, now: i64) -> bool {
        let stored = self.view.policies[policy].status.as_ref();
        let last = self.last_store[policy];
        match record {
            Some(record) => {
                let is_old = last == i64::MIN || now - last >= STORE_INTERVAL;
                is_old || record.is_urgent(stored)
            }
            None => stored.is_some() && !self.has(Defect::AuditKeepsRecord),
        }
    }

    /// Deletes what it may, oldest due first: which objects, under which policy, and in which namespace they were.
    pub(super) fn delete(
        &mut self,
        cluster: &mut Cluster,
        now: i64,
        most: usize,
    ) -> Vec<(Id, Row, usize)> {
        if now - self.seen > BLIND {
            return Vec::new();
        }
        let mut ids: Vec<_> = self.rows.iter().map(|(id, row)| (row.due, *id)).collect();
        ids.sort_unstable();
        let mut deleted = Vec::new();
        for (_, id) in ids {
            if deleted.len() == most {
                break;
            }
            let (seen, row) = (&self.view.objects[&id], &self.rows[&id]);
            if seen.kept || !self.may_delete(row) {
                continue;
            }
            let fits = cluster.objects.get(&id).is_some_and(|it| it.version == seen.version);
            if fits {
                cluster.objects.remove(&id);
                deleted.push((id, row.clone(), seen.namespace));
                self.view.objects.remove(&id);
            }
        }
        deleted
    }

    fn may_delete(&self, row: &Row) -> bool {
        let Some(breaker) = &self.breakers[row.policy] else { return false };
        let scope = breaker.tripped().map(|trip| &trip.scope);
        let in_namespaces = matches!(scope, Some(Scope::Namespaces(_)));
        match breaker.may_delete(&row.uid) {
            Ok(()) => !(in_namespaces && self.has(Defect::NamespaceStopsAll)),
            Err(Hold::Waiting) => self.has(Defect::NothingWaits),
            Err(Hold::Tripped) => in_namespaces && self.has(Defect::NamespaceGoesOn),
            Err(Hold::NotStored | Hold::NotDue) => false,
        }
    }
}

fn due_object(row: &Row) -> DueObject {
    let namespace = Arc::clone(&row.namespace);
    DueObject { namespace, due: at(row.due), stage: Stage::Object, owner: OwnerEnd::Irrelevant }
}
