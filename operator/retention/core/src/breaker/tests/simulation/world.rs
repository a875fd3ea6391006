//! What happens: to objects, by people, and to leaders.

mod people;

use super::{
    cluster::{Cluster, NAMESPACES, Object, POLICIES},
    defect::Defect,
    leader::{Leader, Luck},
    oracle::{Cause, DueBy, Oracle},
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
    /// What happened, if it is written down.
    steps: Option<Vec<String>>,
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
            steps: None,
            random,
        }
    }

    /// The same, and what happened is written down.
    pub(super) fn traced(mut self) -> (Result<Numbers, String>, Vec<String>) {
        self.steps = Some(Vec::new());
        let end = self.storm_and_calm();
        (end, self.steps.unwrap_or_default())
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(steps) = &mut self.steps {
            steps.push(format!("{} {}", self.now, what()));
        }
    }

    /// Something has changed what is due.
    fn changed(&mut self, before: &DueBy, cause: Cause) {
        if self.steps.is_some() {
            let after = self.cluster.due(self.now);
            let new = after.iter().filter(|(id, due)| before.get(id) != Some(due));
            let new: Vec<_> = new.map(|(id, due)| (id, due, before.get(id))).collect();
            let text = format!("{cause:?} makes due {new:?}");
            self.note(|| text);
        }
        self.oracle.changed(before, &self.cluster, cause, self.now);
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
        self.storm_and_calm()
    }

    fn storm_and_calm(&mut self) -> Result<Numbers, String> {
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
        Ok(self.counts.iter().copied().chain([self.oracle.hidden]).collect())
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
        self.changed(&before, Cause::End);
    }

    fn accidents(&mut self) {
        match self.random.range(0, 1_000) {
            0..15 => self.kill(),
            15..25 => {
                self.watch_dead_until = self.now + self.random.range(30, 400);
                let until = self.watch_dead_until;
                self.note(|| format!("the watch is dead until {until}"));
            }
            25..28 => {
                self.note(|| "the clock jumps".to_owned());
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
            self.note(|| "the leader is killed".to_owned());
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
        self.oracle.elected(&view, old.map_or(self.now, |(then, _)| *then));
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
        let is_stale = leader.is_stale;
        self.leader = Some(leader);
        self.note(|| format!("a leader begins; its view is old: {is_stale}"));
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
        let mut told = Vec::new();
        for judged in leader.judge(self.now) {
            trips += usize::from(judged.tripped.is_some());
            acknowledgements += usize::from(judged.acknowledged.is_some());
            told.extend(judged.tripped.iter().map(|trip| format!("trips: {trip:?}")));
            let acknowledged = judged.acknowledged.iter();
            told.extend(acknowledged.map(|it| format!("acknowledged: {:?}", it.trip.id)));
            let annotation = leader.view.policies[judged.policy].annotation.clone();
            self.oracle.judged(judged, leader, annotation.as_deref());
        }
        for told in told {
            self.note(|| told);
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
        let mut told = Vec::new();
        for (policy, stored) in leader.store(&mut self.cluster, self.now, luck) {
            let status = &self.cluster.policies[policy].status;
            told.push(format!("stores of policy {policy}: {stored}, {status:?}"));
            if stored {
                self.oracle.stored(policy, before[policy].as_ref(), leader, &self.cluster);
            } else {
                refused += 1;
            }
        }
        for told in told {
            self.note(|| told);
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
        if !deleted.is_empty() {
            let ids: Vec<_> = deleted.iter().map(|(id, ..)| *id).collect();
            self.note(|| format!("deletes {ids:?}"));
        }
        self.count(Count::Deletions, deleted.len());
    }
}
