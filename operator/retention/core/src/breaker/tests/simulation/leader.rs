//! A leader: what the program does around the breaker.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::super::super::{
    Arrival, Breaker, Due, Hold, News, PolicyVersion, Record, STORE_INTERVAL, Scope, Standing,
    Trip, Verdict,
};
use super::{
    cluster::{Cluster, Id, MAX_COUNT, POLICIES, at},
    defect::Defect,
};

/// For how long a leader deletes whose watch is dead.
const BLIND: i64 = 90;
/// After so long a dead watch begins again with a list.
const RELIST: i64 = 60;

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) policy: usize,
    pub(super) namespace: Arc<str>,
    pub(super) due: i64,
    pub(super) standing: Standing,
    /// Since when it is expected.
    pub(super) allowed: i64,
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
        let due = self.view.due(now);
        let rows = std::mem::take(&mut self.rows);
        let began: Vec<_> =
            (0..POLICIES).filter_map(|policy| self.begin(policy, &due, now)).collect();
        for (id, (policy, due)) in due {
            let Some(breaker) = &self.breakers[policy] else { continue };
            if self.rows.contains_key(&id) {
                continue;
            }
            let before = rows.get(&id).filter(|row| row.policy == policy);
            let news = match () {
                () if self.has(Defect::AllExpected) => News::End,
                () if self.has(Defect::EndsUnexpected) || listed || old.contains(&id) => {
                    News::Other
                }
                () => News::End,
            };
            let forgets = self.has(Defect::StandingForgotten);
            let before_standing = before.map(|row| row.standing).filter(|_| !forgets);
            let arrival = Arrival { due: at(due), before: before_standing, news };
            let standing = breaker.standing(arrival, at(now));
            let allowed = before.map_or(now, |row| row.allowed);
            self.insert(id, policy, due, standing, allowed);
        }
        if shown.is_some() || self.has(Defect::ThroughRunsAhead) {
            self.advance(now);
        }
        began
    }

    fn insert(&mut self, id: Id, policy: usize, due: i64, standing: Standing, allowed: i64) {
        let object = &self.view.objects[&id];
        let namespace = Arc::clone(&self.view.namespaces[object.namespace].name);
        self.rows.insert(id, Row { policy, namespace, due, standing, allowed });
    }

    fn advance(&mut self, now: i64) {
        if !self.has(Defect::ThroughStands) {
            self.breakers.iter_mut().flatten().for_each(|breaker| breaker.advance(at(now)));
        }
    }

    /// Judges a policy whose digest is new, or which nobody judged in this process.
    fn begin(&mut self, index: usize, due: &BTreeMap<Id, (usize, i64)>, now: i64) -> Option<Began> {
        let policy = &self.view.policies[index];
        if !policy.enforces {
            self.breakers[index] = None;
            return None;
        }
        let digest = policy.digest();
        let version = PolicyVersion {
            generation: policy.generation,
            digest: Arc::clone(&digest),
            max_count: MAX_COUNT,
        };
        let status = policy.status.clone();
        let resumed = status.clone().filter(|record| record.digest == digest);
        let live = self.breakers[index].take();
        let fits = |breaker: &Breaker| {
            breaker.version().digest == digest && !breaker.is_outdated(status.as_ref())
        };
        let live = match live {
            Some(mut breaker) if fits(&breaker) => {
                breaker.update(policy.generation, MAX_COUNT);
                self.breakers[index] = Some(breaker);
                return None;
            }
            live => live,
        };
        let stored = status.map(|record| self.misread(record, &digest));
        let mine = due.iter().filter(|(_, (policy, _))| *policy == index);
        let mine: Vec<_> = mine.map(|(id, (_, due))| (*id, *due)).collect();
        let name =
            |id: Id| Arc::clone(&self.view.namespaces[self.view.objects[&id].namespace].name);
        let names: Vec<_> = mine.iter().map(|(id, due)| (name(*id), *due)).collect();
        let dues = names.iter().map(|(name, due)| (name, at(*due)));
        let (stock, stored, now_is) = (mine.len() as u64, stored.as_ref(), at(now));
        let (breaker, start) = match live {
            None => Breaker::start(version, stored, stock, dues, now_is),
            Some(live) => live.start_again(version, stored, stock, dues, now_is),
        };
        self.breakers[index] = Some(breaker);
        for ((id, due), (name, _)) in mine.into_iter().zip(&names) {
            self.insert(id, index, due, start.standing(name, at(due)), now);
        }
        Some(Began { policy: index, resumed })
    }

    fn misread(&self, record: Record, digest: &Arc<str>) -> Record {
        match self.defect {
            Some(Defect::TripForgotten) => Record { trip: None, ..record },
            Some(Defect::BacklogBoundless) => Record { backlog: u64::MAX, ..record },
            Some(Defect::BacklogForgotten) => Record { backlog: 0, ..record },
            Some(Defect::WaitingForgotten) => Record { waiting: 0, ..record },
            Some(Defect::DigestIgnored) => Record { digest: Arc::clone(digest), ..record },
            _ => record,
        }
    }

    /// The clock jumped, and the estimator says so.
    pub(super) fn step_clock(&mut self, now: i64) {
        if self.has(Defect::ClockIgnored) {
            return;
        }
        for (index, breaker) in self.breakers.iter_mut().enumerate() {
            let Some(breaker) = breaker else { continue };
            let mut mine: Vec<_> =
                self.rows.values_mut().filter(|row| row.policy == index).collect();
            let start = breaker.step_clock(mine.len() as u64, mine.len(), at(now));
            for row in &mut mine {
                row.standing = start.standing(&row.namespace, at(row.due));
            }
        }
    }

    pub(super) fn judge(&mut self, now: i64) -> Vec<Judged> {
        (0..POLICIES).filter_map(|policy| self.judge_one(policy, now)).collect()
    }

    fn judge_one(&mut self, policy: usize, now: i64) -> Option<Judged> {
        let trip = self.trip(policy).cloned();
        let annotation = self.view.policies[policy].annotation.as_deref();
        let current = trip.as_ref().map(|trip| trip.id.as_str());
        let any = self.has(Defect::AnyAcknowledgement) && annotation.is_some();
        let annotation = if any { current } else { annotation };
        let boundless = self.has(Defect::AcknowledgementBoundless) && annotation == current;
        let shown = trip.as_ref().filter(|_| boundless).map_or(u64::MAX, Trip::count);
        let shown = usize::try_from(shown).unwrap_or(usize::MAX);
        let stock = self.rows.len() as u64;
        let rows = dues(&self.rows, policy).take(shown);
        let verdict = self.breakers[policy].as_mut()?.judge(stock, rows, annotation, at(now));
        let ids = self.apply(policy, &verdict, now);
        let acknowledged = verdict.acknowledged().cloned();
        Some(Judged {
            policy,
            acknowledged: acknowledged.map(|trip| Acknowledged { trip, ids }),
            tripped: verdict.tripped().and_then(|_| self.trip(policy).cloned()),
            before: trip,
        })
    }

    /// Moves standings, and says which objects an acknowledgement let go.
    fn apply(&mut self, policy: usize, verdict: &Verdict, now: i64) -> Vec<Id> {
        let forgets = self.has(Defect::AcknowledgementForgotten);
        let mut let_go = Vec::new();
        for (id, row) in self.rows.iter_mut().filter(|(_, row)| row.policy == policy) {
            let acknowledged =
                verdict.acknowledged().is_some_and(|trip| trip.stops(&row.namespace));
            let standing = verdict.standing(&row.namespace, row.standing);
            if standing == row.standing || (acknowledged && forgets) {
                continue;
            }
            let counted = matches!(row.standing, Standing::Waiting { .. });
            (row.standing, row.allowed) = (standing, now);
            if acknowledged && counted {
                let_go.push(*id);
            }
        }
        let_go
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
            let Some((record, backlog)) = self.to_store(policy, now) else { continue };
            let luck = luck();
            let version = self.view.policies[policy].version;
            let version = (!self.has(Defect::StoreNotFenced)).then_some(version);
            let stored = match luck {
                Luck::Lost => None,
                _ => cluster.store(policy, version, record.clone(), backlog.clone()),
            };
            tried.push((policy, stored.is_some()));
            let confirmed = stored.filter(|_| luck == Luck::Good);
            if let Some(version) = confirmed {
                self.last_store[policy] = now;
                let seen = &mut self.view.policies[policy];
                (seen.version, seen.status, seen.backlog) = (version, record.clone(), backlog);
            }
            let takes = confirmed.is_some() || self.has(Defect::StoreNotAwaited);
            if let (Some(breaker), Some(record), true) = (&mut self.breakers[policy], record, takes)
            {
                breaker.stored(record);
            }
        }
        tried
    }

    fn to_store(&self, policy: usize, now: i64) -> Option<(Option<Record>, BTreeSet<Id>)> {
        let stored = self.view.policies[policy].status.as_ref();
        let Some(breaker) = &self.breakers[policy] else {
            let is_old = stored.is_some() && !self.has(Defect::AuditKeepsRecord);
            return is_old.then(|| (None, BTreeSet::new()));
        };
        let all_expected = self.has(Defect::WaitingIsBacklog);
        let rows = dues(&self.rows, policy).map(|row| match row.standing {
            Standing::Waiting { .. } if all_expected => Due { standing: Standing::Expected, ..row },
            _ => row,
        });
        let record = breaker.record(rows);
        let last = self.last_store[policy];
        let is_old = last == i64::MIN || now - last >= STORE_INTERVAL;
        if !is_old && !record.is_urgent(stored) {
            return None;
        }
        let backlog = self.rows.iter().filter(|(_, row)| {
            let handed_on = !matches!(row.standing, Standing::Waiting { .. });
            row.policy == policy && handed_on && is_old_in(&record, row)
        });
        let backlog = backlog.map(|(id, _)| *id).collect();
        Some((Some(record), backlog))
    }

    /// Deletes what it may, oldest due first: which objects, under which policy, allowed since when.
    pub(super) fn delete(
        &mut self,
        cluster: &mut Cluster,
        now: i64,
        most: usize,
    ) -> Vec<(Id, Row)> {
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
                self.view.objects.remove(&id);
                deleted.extend(self.rows.remove(&id).map(|row| (id, row)));
            }
        }
        deleted
    }

    fn may_delete(&self, row: &Row) -> bool {
        let Some(breaker) = &self.breakers[row.policy] else { return false };
        let scope = breaker.tripped().map(|trip| &trip.scope);
        let in_namespaces = matches!(scope, Some(Scope::Namespaces(_)));
        match breaker.may_delete(&row.namespace, row.standing) {
            Ok(()) => !(in_namespaces && self.has(Defect::NamespaceStopsAll)),
            Err(Hold::Waiting) => self.has(Defect::NothingWaits),
            Err(Hold::Tripped) => in_namespaces && self.has(Defect::NamespaceGoesOn),
            Err(Hold::NotStored) => false,
        }
    }
}

/// Whether an object is one that `backlog` may count (R40).
pub(super) fn is_old_in(record: &Record, row: &Row) -> bool {
    let due = at(row.due);
    let counted = record.trip.as_ref().is_some_and(|it| it.may_count(&row.namespace, due));
    due < record.through.plus(-super::super::super::SLACK) && !counted
}

fn dues(rows: &BTreeMap<Id, Row>, policy: usize) -> impl Iterator<Item = Due<'_>> {
    rows.values().filter(move |row| row.policy == policy).map(|row| Due {
        namespace: &row.namespace,
        due: at(row.due),
        standing: row.standing,
    })
}
