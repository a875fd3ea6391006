//! The judge: what an edit made due, and what was deleted, as the cluster shows it.
//!
//! It marks every object that something else than time made due, and takes the mark away when a record is stored that
//! lets the object go. No more marked objects may be deleted than the limits say, and nothing may trip without as many.

mod trips;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::super::{Reason, Record, SETTLING, SLACK, Standing, Trip},
    cluster::{Cluster, Id, LIMIT, POLICIES, at},
    leader::{Acknowledged, Began, Leader, Row},
};

/// What is due, under which policy and since when.
pub(super) type DueBy = BTreeMap<Id, (usize, i64)>;

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

/// That something else than time made an object due, or that a trip counted it.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: i64,
    /// When it was made due since another instant, after that.
    edited: i64,
    /// Whether the breaker has no excuse: the object was due over two minutes before the last look, or, if a start came
    /// between, before what was stored then, and nobody had seen it due before.
    surely: bool,
    /// Whether a leader saw the end of the object.
    end_seen: bool,
}

#[derive(Default)]
pub(super) struct Oracle {
    /// By the policy, too: a leader whose view is old knows an object under another policy than the cluster.
    marks: BTreeMap<(usize, Id), Mark>,
    /// What was due at the last look of any leader, and under which policy.
    known: BTreeMap<Id, usize>,
    /// What had ended then.
    ended: BTreeSet<Id>,
    /// When the view was taken that the present leader has now: an edit since then it cannot know of, even if an earlier
    /// leader saw it.
    last_view: i64,
    /// When the present one did, by policy.
    looked: [Option<i64>; POLICIES],
    /// What was due when the last digest came into force, and how much of it was deleted.
    begun: [(BTreeMap<Id, i64>, usize); POLICIES],
    /// By policy: when that was let go which nobody expected, and in which namespace.
    releases: [Vec<(i64, usize)>; POLICIES],
    pending: [Option<Acknowledged>; POLICIES],
    /// Ids that were stored, and then no more.
    retired: [BTreeSet<String>; POLICIES],
    stepped: [bool; POLICIES],
    /// What an edit made due and a start took for a backlog, and when the edit was.
    overlooked: BTreeMap<(usize, Id), i64>,
    /// When the view was taken that the present leader began with.
    first_view: i64,
    /// How many edited objects a start could not tell from a backlog.
    pub(super) hidden: usize,
    /// The first rule that was broken.
    pub(super) violation: Option<String>,
}

impl Oracle {
    /// Something changed the cluster; `before` is what was due then.
    pub(super) fn changed(&mut self, before: &DueBy, cluster: &Cluster, cause: Cause, now: i64) {
        let after = cluster.due(now);
        let (known, marks) = (&self.known, &mut self.marks);
        let is_due = |policy: &usize, id: &Id| after.get(id).is_some_and(|(of, _)| of == policy);
        marks.retain(|(policy, id), _| is_due(policy, id) || known.get(id) == Some(policy));
        self.overlooked.retain(|(policy, id), _| is_due(policy, id));
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
            let is_old = *due < self.told_until(cluster, *policy) - SLACK;
            let mark = self.marks.get(&(*policy, *id));
            let surely = is_old && (is_new || mark.is_some_and(|mark| mark.surely));
            let at = mark.filter(|mark| mark.surely == surely).map_or(now, |mark| mark.at);
            if was.is_none_or(|was| was.1 != *due) || mark.is_some() {
                self.marks
                    .insert((*policy, *id), Mark { at, edited: now, surely, end_seen: false });
            }
        }
        for (policy, (begun, _)) in self.begun.iter_mut().enumerate() {
            // What is due later now may have come due in its time, as far as anybody can tell after an outage.
            begun.retain(|id, due| {
                after.get(id).is_some_and(|(now, then)| *now == policy && then <= due)
            });
        }
    }

    /// Until when it can be told what was due in its time: until the last look, or until what is stored.
    fn told_until(&self, cluster: &Cluster, policy: usize) -> i64 {
        let digest = cluster.policies[policy].digest();
        let status = cluster.policies[policy].status.as_ref();
        let stored = status.filter(|status| status.digest == digest);
        let stored = stored.map_or(i64::MIN / 2, |status| status.through.0);
        self.looked[policy].map_or(stored, |looked| looked.max(stored))
    }

    /// A leader begins with a view of the cluster of `then`: it sees the end of what is not in there.
    pub(super) fn elected(&mut self, view: &Cluster, then: i64) {
        (self.first_view, self.last_view) = (then, then);
        self.ended = view.objects.keys().copied().collect();
        for ((_, id), mark) in &mut self.marks {
            mark.surely &= view.objects.contains_key(id);
        }
    }

    /// A leader with a dead watch has looked at what it knows: what came due by that, no later edit made due.
    pub(super) fn looked_back(&mut self, leader: &Leader) {
        let last_view = self.last_view;
        for ((policy, id), mark) in self.marks.iter_mut().filter(|(_, mark)| mark.at > last_view) {
            mark.surely &= leader.rows.get(id).is_none_or(|row| row.policy != *policy);
        }
    }

    /// A leader, if it is not a new one, is about to look at the cluster.
    pub(super) fn looks(&mut self, cluster: &Cluster, leader: Option<&Leader>, now: i64) {
        let sees_ends = leader.is_some_and(|leader| leader.sees_ends(now));
        if let Some(leader) = leader {
            self.looked_back(leader);
        }
        for ((_, id), mark) in &mut self.marks {
            mark.end_seen |= sees_ends && !self.ended.contains(id);
        }
        self.last_view = now;
        let due = cluster.due(now);
        self.known = due.iter().map(|(id, (policy, _))| (*id, *policy)).collect();
        self.ended = cluster.objects.keys().copied().collect();
        let known = &self.known;
        self.marks.retain(|(policy, id), _| known.get(id) == Some(policy));
    }

    /// A leader has looked at the cluster as it is.
    pub(super) fn looked(&mut self, leader: &Leader, now: i64) {
        for (policy, looked) in self.looked.iter_mut().enumerate() {
            *looked = leader.leads(policy).then_some(now);
        }
    }

    /// A policy was judged anew.
    pub(super) fn began(&mut self, began: &Began, leader: &Leader, cluster: &Cluster, now: i64) {
        let policy = began.policy;
        (self.looked[policy], self.pending[policy]) = (None, None);
        let Some(record) = &began.resumed else {
            return self.began_anew(policy, leader, now);
        };
        // It forgets the ends that it saw.
        let marks = self.marks.iter_mut().filter(|((of, _), _)| *of == policy);
        marks.for_each(|(_, mark)| mark.end_seen = false);
        let [seen, stored] = [&leader.view, cluster].map(|it| &it.policies[policy].status);
        // What an old status says is refused before it leads to anything.
        if seen != stored {
            return;
        }
        let stepped = |trip: &&Trip| trip.reason() == Reason::ClockStep;
        if leader.trip(policy).filter(stepped) != record.trip.as_ref().filter(stepped) {
            return self.mark_all(policy, leader, now);
        }
        for (id, row) in leader.rows_of(policy) {
            let counts = |trip: &Trip| trip.stops(&row.namespace) && at(row.due) <= trip.at;
            let is_counted = record.trip.as_ref().is_some_and(counts);
            let is_told = is_counted || row.due < record.through.0 - SLACK;
            let waits = matches!(leader.standing(policy, id), Some(Standing::Waiting { .. }));
            self.check(waits == is_told, || format!("{id} stands wrong after {record:?}"));
            if is_counted {
                let mark = Mark { at: now, edited: now, surely: false, end_seen: false };
                self.marks.entry((policy, id)).or_insert(mark);
            } else if !is_told {
                // It came due in its time, or cannot be told from that.
                self.begun[policy].0.remove(&id);
                let mark = self.marks.remove(&(policy, id));
                self.hidden += usize::from(mark.is_some_and(|mark| mark.surely));
                self.overlooked.extend(mark.map(|mark| ((policy, id), mark.edited)));
            }
        }
    }

    fn began_anew(&mut self, policy: usize, leader: &Leader, now: i64) {
        let begun: BTreeMap<_, _> = leader.rows_of(policy).map(|(id, row)| (id, row.due)).collect();
        let count = begun.len();
        self.begun[policy] = (begun, 0);
        self.marks.retain(|(of, id), _| *of != policy || !leader.rows.contains_key(id));
        if let Some(trip) = leader.trip(policy) {
            let has_reason = count > LIMIT || self.stepped[policy];
            self.check(has_reason, || format!("{trip:?} for {count} objects"));
            self.mark_all(policy, leader, now);
        }
    }

    /// A trip counts everything that is due.
    fn mark_all(&mut self, policy: usize, leader: &Leader, now: i64) {
        for (id, _) in leader.rows_of(policy) {
            let mark = Mark { at: now, edited: now, surely: false, end_seen: false };
            self.marks.entry((policy, id)).or_insert(mark).end_seen = false;
        }
    }

    pub(super) fn clock_stepped(&mut self, leader: &Leader, now: i64) {
        for policy in (0..POLICIES).filter(|policy| leader.leads(*policy)) {
            (self.stepped[policy], self.pending[policy]) = (true, None);
            self.mark_all(policy, leader, now);
        }
    }

    /// A leader is gone; what it did not store is forgotten.
    pub(super) fn crashed(&mut self, cluster: &Cluster) {
        (self.pending, self.looked) = ([None, None], [None; POLICIES]);
        self.marks.values_mut().for_each(|mark| mark.end_seen = false);
        for (policy, stepped) in self.stepped.iter_mut().enumerate() {
            let stored = cluster.policies[policy].status.as_ref();
            let trip = stored.and_then(|status| status.trip.as_ref());
            *stepped &= trip.is_some_and(|trip| trip.reason() == Reason::ClockStep);
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
        let status = cluster.policies[policy].status.as_ref();
        let (old, new) = (id(before), id(status));
        // A leader that clears the status of a policy in Audit stores no acknowledgement.
        let pending = self.pending[policy].take().filter(|_| status.is_some());
        if let Some(Acknowledged { trip, ids }) = pending {
            let is_first = old.as_deref() == Some(trip.id.as_str());
            self.check(is_first, || format!("{trip:?} was acknowledged twice"));
            for id in ids {
                self.marks.remove(&(policy, id));
                self.begun[policy].0.remove(&id);
            }
            self.stepped[policy] &= trip.reason() != Reason::ClockStep;
        }
        let is_again = old != new && new.iter().any(|new| self.retired[policy].contains(new));
        self.check(!is_again, || format!("{new:?} comes again"));
        self.retired[policy].extend(old.filter(|old| Some(old) != new.as_ref()));
        match status {
            Some(status) => self.handed_on(policy, status, leader),
            None => self.stepped[policy] = false,
        }
    }

    /// What is expected when a record is stored was let go, unless an edit that nobody saw made it due.
    fn handed_on(&mut self, policy: usize, status: &Record, leader: &Leader) {
        let mut through = leader.looked[policy];
        for (id, row) in leader.rows_of(policy) {
            let Some(Standing::Expected { since }) = leader.standing(policy, id) else { continue };
            through = through.min(row.due);
            let mark = self.marks.get(&(policy, id)).copied();
            if let Some(mark) = mark.filter(|mark| mark.edited <= self.last_view) {
                self.marks.remove(&(policy, id));
                self.released(
                    (policy, mark),
                    leader.view.objects.get(&id).map(|it| it.namespace),
                    since.0,
                );
            }
        }
        self.check(status.through.0 >= through, || format!("{status:?} is held back by nothing"));
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
        let view = &leader.view.policies[policy];
        self.check(view.enforces, || format!("{id} is deleted in audit"));
        self.check(!self.stepped[policy], || format!("{id} is deleted by a suspect clock"));
        let status = cluster.policies[policy].status.as_ref();
        let status = status.filter(|status| status.digest == view.digest());
        self.check(status.is_some(), || format!("{id} is deleted under no stored digest"));
        let trip = status.and_then(|status| status.trip.as_ref());
        let stops = trip.is_some_and(|trip| trip.stops(&row.namespace));
        self.check(!stops, || format!("{id} is deleted in spite of {trip:?}"));
        let (begun, deleted) = &mut self.begun[policy];
        *deleted += usize::from(begun.contains_key(&id));
        let is_few = *deleted <= LIMIT;
        self.check(is_few, || format!("{id} is too many for a new digest"));
        match (self.marks.remove(&(policy, id)), leader.standing(policy, id)) {
            (_, None | Some(Standing::Waiting { .. } | Standing::Unknown { .. })) => {
                self.check(false, || format!("{id} is deleted while it waits"));
            }
            (None, Some(Standing::Expected { .. })) => {}
            (Some(mark), Some(Standing::Expected { since })) => {
                self.released((policy, mark), Some(namespace), since.0);
            }
        }
    }

    /// A marked object was let go at `since`: late enough, and with few others.
    fn released(&mut self, (policy, mark): (usize, Mark), namespace: Option<usize>, since: i64) {
        let Some(namespace) = namespace.filter(|_| mark.surely) else { return };
        let has_waited = since - mark.at >= SETTLING;
        self.check(has_waited, || format!("let go at {since}: {mark:?}"));
        let releases = &mut self.releases[policy];
        releases.push((since, namespace));
        let ends = releases.iter().filter(|(end, _)| (0..SETTLING).contains(&(*end - since)));
        let spans = ends.map(|(end, _)| {
            let within = releases.iter().filter(|(it, _)| (0..SETTLING).contains(&(*end - *it)));
            let there = within.clone().filter(|(_, name)| *name == namespace).count();
            (there, within.count())
        });
        let is_few = spans.max().is_none_or(|(there, all)| there <= LIMIT && all <= 10 * LIMIT);
        self.check(is_few, || format!("too many were let go until {since}"));
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
        let is_late = |id: &Id, policy| !cluster.objects[id].kept && !is_stopped(id, policy);
        due.iter().filter(|(id, (policy, _))| is_late(id, *policy)).map(|(id, _)| *id).collect()
    }

    pub(super) fn check(&mut self, holds: bool, violation: impl FnOnce() -> String) {
        if !holds && self.violation.is_none() {
            self.violation = Some(violation());
        }
    }
}
