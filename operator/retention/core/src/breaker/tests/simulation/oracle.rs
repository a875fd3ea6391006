//! The judge: what an edit made due, and what was deleted, as the cluster shows it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::super::{Reason, Record, SETTLING, SLACK, Scope, Standing, Trip};
use super::{
    cluster::{Cluster, Id, MAX_COUNT, POLICIES, at},
    leader::{Acknowledged, Began, Judged, Leader, Row, is_old_in},
};

const LIMIT: usize = MAX_COUNT as usize;

/// Who changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// An edit of this policy.
    Policy(usize),
    /// Objects ended.
    End,
    /// An edit of objects or namespaces.
    Edit,
}

/// That something else than time made an object due.
#[derive(Debug, Clone, Copy)]
struct Mark {
    policy: usize,
    at: i64,
    /// Whether the breaker has no excuse: the object was due over two minutes before what was stored then, and nobody
    /// had seen it due before.
    surely: bool,
    /// Whether a leader saw the end of the object.
    end_seen: bool,
}

#[derive(Default)]
pub(super) struct Oracle {
    marks: BTreeMap<Id, Mark>,
    /// What was due at the last look of any leader, and under which policy.
    known: BTreeMap<Id, usize>,
    /// What had ended then.
    ended: BTreeSet<Id>,
    /// What was due when the last digest came into force, and how much of it was deleted.
    begun: [(BTreeMap<Id, i64>, usize); POLICIES],
    /// By policy and namespace: when that was allowed to be deleted which nobody expected.
    releases: BTreeMap<(usize, usize), Vec<i64>>,
    /// By how much a start may have been mistaken in a backlog.
    mistakes: [Vec<(i64, usize)>; POLICIES],
    /// Whether this leader's start found far more than the backlog.
    overfull: [bool; POLICIES],
    pending: [Option<Acknowledged>; POLICIES],
    /// Ids that were stored, and then no more.
    retired: [BTreeSet<String>; POLICIES],
    stepped: [bool; POLICIES],
    /// How many unexpected objects a backlog hid.
    pub(super) hidden: usize,
}

impl Oracle {
    /// Something changed the cluster; `before` is what was due then.
    pub(super) fn changed(
        &mut self,
        before: &BTreeMap<Id, (usize, i64)>,
        cluster: &Cluster,
        cause: Cause,
        now: i64,
    ) {
        let after = cluster.due(now);
        if std::env::var("TRACE").is_ok() { let mut n: Vec<_> = after.iter().filter(|(id,v)| before.get(id)!=Some(v)).map(|(id,v)| (*id,*v,cluster.objects[id].namespace, self.known.get(id))).collect(); n.truncate(80); if cause != Cause::End || !n.is_empty() { eprintln!("{now} changed {cause:?} {n:?}"); } }
        for (id, (policy, due)) in &after {
            let was = before.get(id).filter(|was| was.0 == *policy);
            let was_known = self.known.get(id) == Some(policy);
            let is_earlier = was.is_none_or(|was| was.1 > *due);
            let is_on_time = cause == Cause::End && *due >= now - SLACK;
            if is_on_time || (was_known && !is_earlier) {
                continue;
            }
            let others = ![Cause::End, Cause::Policy(*policy)].contains(&cause);
            let is_new = was.is_none() && !was_known && others && self.ended.contains(id);
            let is_old = is_before_what_is_stored(cluster, *policy, *due);
            let mark = self.marks.get(id).filter(|mark| mark.policy == *policy);
            let surely = is_old && (is_new || mark.is_some_and(|mark| mark.surely));
            let at = mark.filter(|mark| mark.surely == surely).map_or(now, |mark| mark.at);
            if was.is_none_or(|was| was.1 != *due) || mark.is_some() {
                self.marks.insert(*id, Mark { policy: *policy, at, surely, end_seen: false });
            }
        }
        for (policy, (begun, _)) in self.begun.iter_mut().enumerate() {
            // What is due later now may have come due in its time, as far as anybody can tell after an outage.
            begun.retain(|id, due| {
                after.get(id).is_some_and(|(now, then)| *now == policy && then <= due)
            });
        }
    }

    /// A leader begins with an old view of the cluster: it sees the end of what is not in there.
    pub(super) fn elected(&mut self, view: &Cluster) {
        for (id, mark) in &mut self.marks {
            mark.surely &= view.objects.contains_key(id);
        }
    }

    /// A leader, if it is not a new one, is about to look at the cluster. What is due by what it knows, no edit made due.
    pub(super) fn looked(&mut self, cluster: &Cluster, leader: Option<&Leader>, now: i64) {
        let sees_ends = leader.is_some_and(|leader| leader.sees_ends(now));
        let none = BTreeMap::new();
        let rows = leader.map_or(&none, |leader| &leader.rows);
        for (id, mark) in &mut self.marks {
            mark.surely &= rows.get(id).is_none_or(|row| row.policy != mark.policy);
            mark.end_seen |= sees_ends && !self.ended.contains(id);
        }
        let due = cluster.due(now);
        if std::env::var("TRACE").is_ok() { eprintln!("{now} looked"); }
        self.known = due.iter().map(|(id, (policy, _))| (*id, *policy)).collect();
        self.ended = cluster.objects.keys().copied().collect();
        let known = &self.known;
        self.marks.retain(|id, mark| known.get(id) == Some(&mark.policy));
    }

    /// A policy was judged anew.
    pub(super) fn began(&mut self, began: &Began, leader: &Leader, cluster: &Cluster, now: i64) {
        let policy = began.policy;
        if std::env::var("TRACE").is_ok() { eprintln!("{now} began {policy} resumed {:?} old {:?} trip {:?} stepped {:?}", began.resumed, leader.rows.iter().filter(|(_,r)| r.policy==policy).map(|(id,r)|(*id,r.due,r.standing)).collect::<Vec<_>>(), leader.trip(policy), self.stepped); eprintln!("   backlog {:?}", leader.view.policies[policy].backlog); }
        (self.overfull[policy], self.pending[policy]) = (false, None);
        let rows = || leader.rows.iter().filter(|(_, row)| row.policy == policy);
        let Some(record) = &began.resumed else {
            self.begun[policy] = (rows().map(|(id, row)| (*id, row.due)).collect(), 0);
            self.marks.retain(|_, mark| mark.policy != policy);
            if leader.trip(policy).is_some() {
                assert!(
                    self.begun[policy].0.len() > LIMIT || self.stepped[policy],
                    "no reason to trip"
                );
            }
            return;
        };
        let view = &leader.view.policies[policy];
        let old: Vec<_> = rows().filter(|(_, row)| is_old_in(record, row)).collect();
        let same = old.iter().filter(|(id, _)| view.backlog.contains(id)).count();
        let backlog = usize::try_from(record.backlog).unwrap();
        let vanished = view.backlog.len() - same;
        let excess = old.len().saturating_sub(backlog);
        let waiting = usize::try_from(record.waiting).unwrap();
        self.overfull[policy] = excess > waiting + LIMIT;
        let is_doubtful =
            old.iter().any(|(_, row)| matches!(row.standing, Standing::Doubtful { .. }));
        let doubtful = if is_doubtful { waiting + LIMIT } else { 0 };
        self.mistakes[policy].push((now, vanished + doubtful));
        // What an old version of the policy says is refused before it leads to anything.
        if view.version != cluster.policies[policy].version {
            return;
        }
        // What was handed on before is no news, also if edits took it away and brought it back.
        self.marks.retain(|id, mark| mark.policy != policy || !view.backlog.contains(id));
        let surely =
            |id: &Id| self.marks.get(id).is_some_and(|it| it.policy == policy && it.surely);
        let expected = old.iter().filter(|(_, row)| row.standing == Standing::Expected);
        let hidden = expected.filter(|(id, _)| surely(id)).count();
        assert!(hidden <= vanished, "{hidden} hide behind {vanished} of the backlog");
        self.hidden += hidden;
    }

    pub(super) fn clock_stepped(&mut self, leader: &Leader) {
        for policy in 0..POLICIES {
            self.stepped[policy] |= leader.leads(policy);
            self.pending[policy] = None;
        }
    }

    /// A leader is gone; what it did not store is forgotten.
    pub(super) fn crashed(&mut self, cluster: &Cluster) {
        self.pending = [None, None];
        if std::env::var("TRACE").is_ok() { eprintln!("crashed"); }
        self.marks.values_mut().for_each(|mark| mark.end_seen = false);
        for (policy, stepped) in self.stepped.iter_mut().enumerate() {
            let stored = cluster.policies[policy].status.as_ref();
            let trip = stored.and_then(|status| status.trip.as_ref());
            *stepped &= trip.is_some_and(|trip| trip.reason() == Reason::ClockStep);
        }
    }

    pub(super) fn judged(&mut self, judged: Judged, leader: &Leader, annotation: Option<&str>) {
        let policy = judged.policy;
        if std::env::var("TRACE").is_ok() { if let Some(a)=&judged.acknowledged { eprintln!("acked {policy} {:?} {:?}", a.trip, a.ids);} if let Some(t)=&judged.tripped { eprintln!("tripped {policy} {t:?}; waiting {:?}; marks {:?}", leader.rows.iter().filter(|(_,r)| r.policy==policy && r.standing!=Standing::Expected).map(|(id,r)|(*id,r.due,&r.namespace,r.standing)).collect::<Vec<_>>(), self.marks); } }
        if let Some(acknowledged) = judged.acknowledged {
            let Acknowledged { trip, ids } = &acknowledged;
            assert_eq!(Some(trip.id.as_str()), annotation, "nobody acknowledged it");
            check_number(trip, ids, leader);
            self.pending[policy] = Some(acknowledged);
        }
        if let Some(trip) = judged.tripped.filter(|_| !leader.is_stale) {
            let justified = self.is_justified(policy, &trip, judged.before.as_ref(), leader);
            assert!(justified, "{trip:?} for what was expected");
        }
    }

    /// Whether edits made enough due for this trip.
    fn is_justified(
        &self,
        policy: usize,
        trip: &Trip,
        before: Option<&Trip>,
        leader: &Leader,
    ) -> bool {
        let (mut namespaces, mut all) = (BTreeMap::<&str, usize>::new(), 0);
        for (id, mark) in self.marks.iter().filter(|(_, mark)| mark.policy == policy) {
            if let Some(row) = leader.rows.get(id) {
                all += 1;
                *namespaces.entry(&row.namespace).or_default() += usize::from(!mark.end_seen);
            }
        }
        if self.overfull[policy] && all > LIMIT {
            return true;
        }
        // What tripped once may be counted again by another leader, who cannot tell it from the rest.
        let old = |name: &str| before.is_some_and(|before| before.stops(name));
        match &trip.scope {
            Scope::Policy { reason: Reason::ClockStep, .. } => self.stepped[policy],
            Scope::Policy { .. } => {
                let sum: usize = namespaces.iter().map(|(_, count)| *count.min(&LIMIT)).sum();
                let olds = match before.map(|before| &before.scope) {
                    Some(Scope::Namespaces(names)) => names.len() * LIMIT,
                    Some(Scope::Policy { .. }) => return true,
                    None => 0,
                };
                sum + olds > 10 * LIMIT
            }
            Scope::Namespaces(tripped) => tripped.keys().all(|name| {
                old(name) || namespaces.get(&**name).is_some_and(|count| *count > LIMIT)
            }),
        }
    }

    /// A status was stored; `before` is the one that it replaced.
    pub(super) fn stored(
        &mut self,
        policy: usize,
        before: Option<&Record>,
        leader: &Leader,
        cluster: &Cluster,
    ) {
        let id = |record: Option<&Record>| {
            record.and_then(|record| record.trip.as_ref()).map(|trip| trip.id.to_string())
        };
        let now = id(cluster.policies[policy].status.as_ref());
        if std::env::var("TRACE").is_ok() { eprintln!("stored {policy} {:?} backlog {:?}", cluster.policies[policy].status, cluster.policies[policy].backlog); }
        let old = id(before);
        if cluster.policies[policy].status.is_none() {
            (self.pending[policy], self.stepped[policy]) = (None, false);
        }
        if let Some(Acknowledged { trip, ids }) = self.pending[policy].take() {
            assert_eq!(old.as_deref(), Some(trip.id.as_str()), "acknowledged twice");
            for id in ids {
                self.marks.remove(&id);
                self.begun[policy].0.remove(&id);
            }
            self.stepped[policy] &= trip.reason() != Reason::ClockStep;
        }
        assert!(old == now || !now.as_ref().is_some_and(|now| self.retired[policy].contains(now)));
        self.retired[policy].extend(old.filter(|old| Some(old) != now.as_ref()));
        self.handed_on(policy, leader, cluster);
    }

    /// What is stored as backlog was let go before, whoever deletes it.
    fn handed_on(&mut self, policy: usize, leader: &Leader, cluster: &Cluster) {
        for id in &cluster.policies[policy].backlog {
            let row = &leader.rows[id];
            let mark = self.marks.get(id).filter(|mark| mark.policy == policy && mark.surely);
            if let (Some(mark), Standing::Expected) = (mark.copied(), row.standing) {
                self.marks.remove(id);
                self.released(mark, leader.view.objects[id].namespace, row.allowed);
            }
        }
    }

    /// An object was deleted, `row` is what the leader knew of it.
    pub(super) fn deleted(
        &mut self,
        id: Id,
        row: &Row,
        namespace: usize,
        leader: &Leader,
        cluster: &Cluster,
    ) {
        let policy = row.policy;
        if std::env::var("TRACE").is_ok() { eprintln!("deleted {id} {row:?} {:?}", self.marks.get(&id)); }
        let view = &leader.view.policies[policy];
        assert!(view.enforces, "it is audited");
        assert!(!self.stepped[policy], "the clock is suspect");
        let status = cluster.policies[policy].status.as_ref();
        let status = status.filter(|status| status.digest == view.digest());
        let trip = status.map(|status| &status.trip).expect("the digest is not stored");
        let stops = trip.as_ref().is_some_and(|trip| trip.stops(&row.namespace));
        assert!(!stops, "{} of {} is deleted in spite of {trip:?}", id, row.namespace);
        let (begun, deleted) = &mut self.begun[policy];
        *deleted += usize::from(begun.contains_key(&id));
        assert!(*deleted <= LIMIT, "{deleted} of {} of a new digest", begun.len());
        let mark = self.marks.remove(&id).filter(|mark| mark.policy == policy && mark.surely);
        if let Some(mark) = mark {
            self.released(mark, namespace, row.allowed);
        }
    }

    fn released(&mut self, mark: Mark, namespace: usize, allowed: i64) {
        let policy = mark.policy;
        let waited = allowed - mark.at >= SETTLING;
        let is_hidden = || {
            self.mistakes[policy].iter().any(|(start, mistakes)| *start == allowed && *mistakes > 0)
        };
        assert!(waited || is_hidden(), "unexpected since {} and allowed at {allowed}", mark.at);
        let releases = self.releases.entry((policy, namespace)).or_default();
        releases.push(allowed);
        for end in releases.iter().filter(|end| (0..SETTLING).contains(&(*end - allowed))) {
            let span = releases.iter().filter(|it| (0..SETTLING).contains(&(*end - *it))).count();
            let starts = self.mistakes[policy].iter();
            let starts = starts.filter(|(start, _)| (-400..=0).contains(&(*start - *end)));
            let mistakes: usize = starts.map(|(_, mistake)| mistake).sum();
            assert!(span <= LIMIT + mistakes, "{span} unexpected ones until {end}, {mistakes}");
        }
    }

    /// What is due since a while, and is not kept by anything.
    pub(super) fn late(cluster: &Cluster, now: i64) -> Vec<Id> {
        let due = cluster.due(now - 300);
        let is_stopped = |id: &Id, policy: usize| {
            let namespace = &cluster.namespaces[cluster.objects[id].namespace].name;
            let status = cluster.policies[policy].status.as_ref();
            let trip = status.and_then(|status| status.trip.as_ref());
            trip.is_some_and(|trip| trip.stops(namespace))
        };
        let late = due
            .iter()
            .filter(|(id, (policy, _))| !cluster.objects[id].kept && !is_stopped(id, *policy));
        late.map(|(id, _)| *id).collect()
    }
}

fn is_before_what_is_stored(cluster: &Cluster, policy: usize, due: i64) -> bool {
    let policy = &cluster.policies[policy];
    let status = policy.status.as_ref().filter(|status| status.digest == policy.digest());
    status.is_some_and(|status| at(due) < status.through.plus(-SLACK))
}

/// An acknowledgement lets go what it names and a tenth more, in each namespace.
fn check_number(trip: &Trip, ids: &[Id], leader: &Leader) {
    let allowed = |count: u64| usize::try_from((count + count / 10).max(MAX_COUNT)).unwrap();
    match &trip.scope {
        Scope::Policy { count, .. } => {
            assert!(ids.len() <= allowed(*count), "{}: {trip:?}", ids.len())
        }
        Scope::Namespaces(namespaces) => {
            for (name, count) in namespaces {
                let within = ids.iter().filter(|id| leader.rows[*id].namespace == *name).count();
                assert!(within <= allowed(*count), "{within}: {trip:?}");
            }
        }
    }
}
