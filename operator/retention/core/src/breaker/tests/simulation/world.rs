//! What happens: to objects, by people, and to leaders.

use super::{
    cluster::{Cluster, Id, NAMESPACES, Object, POLICIES},
    defect::Defect,
    leader::{Leader, Luck},
    oracle::{Cause, Oracle},
    random::Random,
};

/// How long anything may go wrong, in seconds.
const STORM: i64 = 5_400;
const MOST_OBJECTS: usize = 250;
const TTLS: [i64; 5] = [0, 30, 300, 1_200, 3_600];

pub(super) struct World {
    now: i64,
    random: Random,
    cluster: Cluster,
    /// The cluster as it was a while ago.
    past: Vec<(i64, Cluster)>,
    leader: Option<Leader>,
    next_leader: i64,
    watch_dead_until: i64,
    /// How many objects are deleted in one step.
    rate: usize,
    stormy: bool,
    oracle: Oracle,
    defect: Option<Defect>,
    ids: Vec<String>,
    counts: [usize; 7],
}

/// How often what happened: what [`Count`] names, and objects that were hidden.
pub(super) type Numbers = Vec<usize>;

/// What [`World::run`] counts.
#[derive(Clone, Copy)]
enum Count {
    Leaders,
    Deletions,
    Trips,
    Acknowledgements,
    Edits,
    Lost,
    Refused,
}

impl World {
    pub(super) fn new(seed: u64, defect: Option<Defect>) -> Self {
        let mut random = Random(seed);
        let ttl = [0; POLICIES].map(|_| TTLS[random.index(TTLS.len())]);
        let rate = [1, 3, usize::MAX, usize::MAX][random.index(4)];
        Self {
            now: 1_000_000,
            cluster: Cluster::new(ttl),
            past: Vec::new(),
            leader: None,
            next_leader: 0,
            watch_dead_until: 0,
            rate,
            stormy: true,
            oracle: Oracle::default(),
            defect,
            ids: Vec::new(),
            counts: [0; 7],
            random,
        }
    }

    const fn count(&mut self, count: Count, more: usize) {
        self.counts[count as usize] += more;
    }

    /// Lets everything go wrong, then nothing; says how often what happened.
    ///
    /// # Errors
    ///
    /// The rule that was broken.
    pub(super) fn run(mut self) -> Result<Numbers, String> {
        self.pass(STORM)?;
        (self.stormy, self.rate, self.watch_dead_until) = (false, usize::MAX, 0);
        self.next_leader = self.next_leader.min(self.now);
        self.pass(900)?;
        self.check_nothing_is_late()?;
        for _ in 0..12 {
            self.acknowledge_all();
            self.pass(150)?;
        }
        self.pass(600)?;
        self.check_nothing_is_late()?;
        let due = self.cluster.due(self.now);
        for (index, policy) in self.cluster.policies.iter().enumerate() {
            let Some(status) = &policy.status else { continue };
            if let Some(trip) = &status.trip {
                return Err(format!("{trip:?} does not end"));
            }
            let dues = due.values().filter(|(policy, _)| *policy == index).map(|(_, due)| *due);
            if dues.chain([self.now - 80]).min() > Some(status.through.0) {
                return Err(format!("{status:?} is old at {}", self.now));
            }
        }
        Ok(self.counts.into_iter().chain([self.oracle.hidden]).collect())
    }

    fn check_nothing_is_late(&self) -> Result<(), String> {
        let late = Oracle::late(&self.cluster, self.now);
        if late.is_empty() { Ok(()) } else { Err(format!("late at {}: {late:?}", self.now)) }
    }

    fn pass(&mut self, seconds: i64) -> Result<(), String> {
        let end = self.now + seconds;
        while self.now < end {
            self.step();
            if let Some(violation) = self.oracle.violation.take() {
                return Err(format!("at {}: {violation}", self.now));
            }
        }
        Ok(())
    }

    fn step(&mut self) {
        let steps = if self.stormy { [1, 5, 10, 20] } else { [5, 20, 20, 20] };
        self.now += steps[self.random.index(4)];
        self.work();
        if self.stormy {
            self.people();
            self.accidents();
        }
        if self.leader.is_none() && self.now >= self.next_leader {
            self.elect();
        }
        self.lead();
        if self.stormy {
            self.past.push((self.now, self.cluster.clone()));
            self.past.drain(..self.past.len().saturating_sub(8));
        }
    }

    /// Objects end, now or, as their controller says it late, a while ago.
    fn work(&mut self) {
        if self.cluster.objects.len() >= MOST_OBJECTS {
            return;
        }
        let (count, ago, spread) = match self.random.range(0, 100) {
            0..30 => (self.random.range(1, 4), 0, true),
            30..32 if self.stormy => (self.random.range(10, 60), 0, self.random.percent(50)),
            32..34 if self.stormy => {
                (self.random.range(6, 20), self.random.range(100, 3_000), false)
            }
            _ => return,
        };
        let before = self.cluster.due(self.now);
        let one = self.random.index(NAMESPACES);
        for _ in 0..count {
            let namespace = if spread { self.random.index(NAMESPACES) } else { one };
            let selected = [self.random.percent(50), self.random.percent(60)];
            let finished = self.now - ago;
            let ttl = self.random.percent(5).then(|| TTLS[self.random.index(TTLS.len())]);
            let kept = self.stormy && self.random.percent(3);
            self.cluster.add(Object { namespace, finished, selected, ttl, kept, version: 1 });
        }
        self.oracle.changed(&before, &self.cluster, Cause::End, self.now);
    }

    fn people(&mut self) {
        let what = self.random.range(0, 1_000);
        if what >= 260 {
            return;
        }
        let before = self.cluster.due(self.now);
        let policy = self.random.index(POLICIES);
        let cause = match what {
            0..60 => {
                let few = usize::try_from(self.random.range(1, 4)).unwrap();
                self.edit_some(few)
            }
            60..90 => self.edit_some(MOST_OBJECTS),
            90..96 => {
                let ids: Vec<Id> = self.cluster.objects.keys().copied().collect();
                self.edit(&ids)
            }
            96..110 => {
                let namespace = self.random.index(NAMESPACES);
                let namespace = &mut self.cluster.namespaces[namespace];
                namespace.selected[policy] = !namespace.selected[policy];
                Cause::Edit
            }
            110..125 => {
                let ttl = TTLS[self.random.index(TTLS.len())];
                self.cluster.edit_policy(policy, |policy| {
                    policy.ttl = ttl;
                    policy.edition += 1;
                });
                Cause::Policy(policy)
            }
            125..135 => {
                self.cluster.edit_policy(policy, |policy| policy.enforces = !policy.enforces);
                Cause::Policy(policy)
            }
            135..150 => {
                let chance = self.random.range(1, 60);
                let random = &mut self.random;
                self.cluster.objects.retain(|_, _| !random.percent(chance));
                Cause::Edit
            }
            150..210 => {
                self.keep_or_release();
                Cause::Edit
            }
            _ => return self.annotate(policy),
        };
        self.count(Count::Edits, 1);
        self.oracle.changed(&before, &self.cluster, cause, self.now);
    }

    /// Edits objects of one namespace.
    fn edit_some(&mut self, most: usize) -> Cause {
        let namespace = self.random.index(NAMESPACES);
        let objects = self.cluster.objects.iter();
        let within = objects.filter(|(_, object)| object.namespace == namespace);
        let ids: Vec<Id> = within.map(|(id, _)| *id).take(most).collect();
        self.edit(&ids)
    }

    fn edit(&mut self, ids: &[Id]) -> Cause {
        let policy = self.random.index(POLICIES);
        let ttl = TTLS[self.random.index(TTLS.len())];
        match self.random.range(0, 5) {
            0 | 1 => self.cluster.edit(ids, |object| object.selected[policy] = true),
            2 => self.cluster.edit(ids, |object| object.selected[policy] = false),
            3 => self.cluster.edit(ids, |object| object.ttl = Some(ttl)),
            _ => self
                .cluster
                .edit(ids, |object| (object.selected, object.ttl) = ([true; 2], Some(0))),
        }
        Cause::Edit
    }

    fn keep_or_release(&mut self) {
        let ids: Vec<Id> = self.cluster.objects.keys().copied().collect();
        let keep = self.random.percent(40);
        let chance = if keep { 10 } else { 70 };
        let ids: Vec<Id> = ids.into_iter().filter(|_| self.random.percent(chance)).collect();
        self.cluster.edit(&ids, |object| object.kept = keep);
    }

    /// Somebody acknowledges: what the status says, or something of before.
    fn annotate(&mut self, policy: usize) {
        let current = self.trip_id(policy).filter(|_| self.random.percent(60));
        let id = current.or_else(|| {
            let length = self.ids.len();
            (length > 0).then(|| self.ids[self.random.index(length)].clone())
        });
        let Some(id) = id else { return };
        let policy = &mut self.cluster.policies[policy];
        policy.annotation = Some(id);
        policy.version += 1;
    }

    fn acknowledge_all(&mut self) {
        for policy in 0..POLICIES {
            if let Some(id) = self.trip_id(policy) {
                let policy = &mut self.cluster.policies[policy];
                policy.annotation = Some(id);
                policy.version += 1;
            }
        }
    }

    fn trip_id(&self, policy: usize) -> Option<String> {
        let status = self.cluster.policies[policy].status.as_ref()?;
        status.trip.as_ref().map(|trip| trip.id.to_string())
    }

    fn accidents(&mut self) {
        match self.random.range(0, 1_000) {
            0..15 => self.kill(),
            15..25 => self.watch_dead_until = self.now + self.random.range(30, 400),
            25..28 => {
                if let Some(leader) = &mut self.leader {
                    leader.step_clock(self.now);
                    self.oracle.clock_stepped(leader, self.now);
                }
            }
            _ => {}
        }
    }

    fn kill(&mut self) {
        if self.leader.take().is_some() {
            self.oracle.crashed(&self.cluster);
            let long = self.random.percent(20);
            let outage =
                if long { self.random.range(100, 2_000) } else { self.random.range(0, 20) };
            self.next_leader = self.now + outage;
        }
    }

    /// A leader begins, sometimes with what its watches knew a while ago.
    fn elect(&mut self) {
        self.count(Count::Leaders, 1);
        let stale = self.stormy && self.random.percent(20);
        let old = self.past.first().filter(|(then, _)| stale && self.now - then <= 60);
        let view = old.map_or_else(|| self.cluster.clone(), |(_, cluster)| cluster.clone());
        self.oracle.elected(&view);
        let mut leader = Leader::new(view.clone(), self.now, self.defect);
        let began = leader.look(Some(&view), self.now);
        if old.is_none() {
            leader.is_stale = false;
            self.oracle.looks(&self.cluster, None, self.now);
        }
        for began in began {
            self.oracle.began(&began, &leader, &self.cluster, self.now);
        }
        if !leader.is_stale {
            self.oracle.looked(&leader, self.now);
        }
        self.leader = Some(leader);
        self.act();
    }

    fn lead(&mut self) {
        let live = self.now >= self.watch_dead_until;
        let Some(leader) = &mut self.leader else { return };
        if live {
            self.oracle.looks(&self.cluster, Some(leader), self.now);
            leader.is_stale = false;
        }
        let began = leader.look(live.then_some(&self.cluster), self.now);
        for began in began {
            self.oracle.began(&began, leader, &self.cluster, self.now);
        }
        if live {
            self.oracle.looked(leader, self.now);
        } else {
            self.oracle.looked_back(leader);
        }
        self.act();
    }

    /// Judges, stores and deletes, unless it is killed before.
    fn act(&mut self) {
        for stage in [Self::judge, Self::store, Self::delete] {
            if self.stormy && self.random.percent(1) {
                return self.kill();
            }
            stage(self);
        }
    }

    fn judge(&mut self) {
        let Some(leader) = &mut self.leader else { return };
        let (mut trips, mut acknowledgements) = (0, 0);
        for judged in leader.judge(self.now) {
            trips += usize::from(judged.tripped.is_some());
            acknowledgements += usize::from(judged.acknowledged.is_some());
            let annotation = leader.view.policies[judged.policy].annotation.clone();
            self.oracle.judged(judged, leader, annotation.as_deref());
        }
        self.count(Count::Trips, trips);
        self.count(Count::Acknowledgements, acknowledgements);
    }

    fn store(&mut self) {
        let Some(leader) = &mut self.leader else { return };
        let before = self.cluster.policies.clone().map(|policy| policy.status);
        let (random, stormy) = (&mut self.random, self.stormy);
        let (mut lost, mut refused) = (0, 0);
        let luck = || match random.range(0, 20) {
            0 if stormy => {
                lost += 1;
                Luck::Lost
            }
            1 if stormy => Luck::Unanswered,
            _ => Luck::Good,
        };
        for (policy, stored) in leader.store(&mut self.cluster, self.now, luck) {
            if stored {
                self.oracle.stored(policy, before[policy].as_ref(), leader, &self.cluster);
            } else {
                refused += 1;
            }
        }
        self.count(Count::Lost, lost);
        self.count(Count::Refused, refused - lost);
        let ids: Vec<_> = (0..POLICIES).filter_map(|policy| self.trip_id(policy)).collect();
        self.ids.extend(ids);
        self.ids.dedup();
    }

    fn delete(&mut self) {
        let Some(leader) = &mut self.leader else { return };
        let deleted = leader.delete(&mut self.cluster, self.now, self.rate);
        for (id, row, namespace) in &deleted {
            self.oracle.deleted(*id, row, *namespace, leader, &self.cluster);
        }
        self.count(Count::Deletions, deleted.len());
    }
}
