//! Three processes that share a Lease: each with a clock of its own, behind a network that delays and loses
//! requests, replies and news, and with processes that stand still, are killed and release.
//!
//! A process does here what the shell does: it asks the elector, sends at most one request at a time, and
//! gives up an answer after a while, though the request may still be carried out. Times are milliseconds.

use std::collections::BTreeMap;

use k8s_openapi::jiff;
use proptest::prelude::*;

use super::*;

const PROCESSES: usize = 3;
/// How long anything may go wrong, and how long nothing does after that.
const STORM: u64 = 600_000;
const CALM: u64 = 120_000;

/// A small generator of its own, so that a seed tells everything.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn range(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from)
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.range(0, 100) < chance
    }
}

/// What happens to a process, or on its behalf.
#[derive(Debug, Clone)]
enum Event {
    /// It looks at what to do, unless it has since been told to do so at another time.
    Wake(u64),
    /// A request reaches the API server.
    Arrive(u64, Option<Box<Lease>>),
    /// An answer comes back: what there is now, or that the write was refused.
    Answer(u64, Result<Option<Box<Lease>>, ()>),
    /// It waits for an answer no longer.
    GiveUp(u64),
    /// Its watch shows what there is.
    News(Option<Box<Lease>>),
    /// For so long nothing reaches it, and nothing of it reaches anybody.
    Cut(u64),
    /// It is killed.
    Kill,
    /// It is asked to stop, and releases what it holds.
    Stop,
    /// It begins, as somebody new, who is not ready.
    Begin,
    /// The one that was born so is ready.
    Ready(u32),
}

struct Process {
    elector: Option<Elector>,
    born: u32,
    /// What its clock shows at 0, and how many thousandths of the true time it counts.
    clock: (u64, u64),
    /// The request it waits for: its number, when it was sent, and whether it is a write.
    asked: Option<(u64, Duration, bool)>,
    /// When it looks next: the number of that event.
    wake: u64,
    /// Until when it is cut off.
    cut: u64,
}

impl Process {
    fn local(&self, now: u64) -> Duration {
        Duration::from_millis(self.clock.0 + now * self.clock.1 / 1_000)
    }

    /// The first instant at which its clock shows this.
    fn global(&self, local: Duration) -> u64 {
        let local = u64::try_from(local.as_millis()).unwrap();
        local.saturating_sub(self.clock.0).saturating_mul(1_000).div_ceil(self.clock.1)
    }

    fn leads(&self, now: u64) -> bool {
        self.elector.as_ref().is_some_and(|elector| elector.leads(self.local(now)))
    }
}

struct World {
    now: u64,
    random: Random,
    times: Times,
    stored: Option<Lease>,
    version: u64,
    requests: u64,
    events: BTreeMap<(u64, u64), (usize, Event)>,
    processes: Vec<Process>,
    reigns: u32,
}

impl World {
    fn new(seed: u64, times: Times) -> Self {
        let mut random = Random(seed);
        let process = |random: &mut Random| Process {
            elector: None,
            born: 0,
            clock: (random.range(0, 1_000_000), random.range(950, 1_050)),
            asked: None,
            wake: 0,
            cut: 0,
        };
        let processes = (0..PROCESSES).map(|_| process(&mut random)).collect();
        let mut world = Self {
            now: 0,
            random,
            times,
            stored: None,
            version: 0,
            requests: 0,
            events: BTreeMap::new(),
            processes,
            reigns: 0,
        };
        for who in 0..PROCESSES {
            let begin = world.random.range(0, 5_000);
            world.later(begin, who, Event::Begin);
        }
        for _ in 0..world.random.range(0, 30) {
            let (at, who) = (world.random.range(0, STORM), world.one());
            let event = match world.random.range(0, 4) {
                0 => Event::Kill,
                1 => Event::Stop,
                _ => Event::Cut(world.random.range(1_000, 40_000)),
            };
            world.later(at, who, event);
        }
        world
    }

    fn one(&mut self) -> usize {
        usize::try_from(self.random.range(0, PROCESSES as u64)).unwrap()
    }

    fn later(&mut self, after: u64, who: usize, event: Event) {
        self.requests += 1;
        self.events.insert((self.now + after, self.requests), (who, event));
    }

    fn stormy(&self) -> bool {
        self.now < STORM
    }

    /// How long something takes on its way to or from a process; `None`: it is lost.
    fn delay(&mut self, who: usize) -> Option<u64> {
        let cut = self.now < self.processes[who].cut;
        if self.stormy() && (cut || self.random.percent(8)) {
            return None;
        }
        if self.stormy() && self.random.percent(10) {
            return Some(self.random.range(50, 30_000));
        }
        Some(self.random.range(1, 50))
    }

    /// How much later than it should a process runs: most of the time hardly, sometimes it stood still.
    fn lateness(&mut self) -> u64 {
        if self.stormy() && self.random.percent(2) {
            return self.random.range(50, 40_000);
        }
        self.random.range(0, 20)
    }

    /// A time of day that says nothing: each process has another, and it jumps.
    fn wall(&mut self) -> MicroTime {
        let seconds = i64::try_from(self.random.range(0, 4_000_000_000)).unwrap();
        MicroTime(jiff::Timestamp::from_second(seconds).unwrap())
    }

    fn run(&mut self) {
        while let Some(((at, _), (who, event))) = self.events.pop_first() {
            if at > STORM + CALM {
                return;
            }
            self.now = at;
            let led = self.leaders();
            self.happen(who, event);
            let leaders = self.leaders();
            assert!(leaders.len() <= 1, "{leaders:?} lead at {at}");
            self.reigns += u32::from(!leaders.is_empty() && leaders != led);
        }
    }

    fn leaders(&self) -> Vec<(usize, u32)> {
        let leads = |(_, process): &(usize, &Process)| process.leads(self.now);
        let processes = self.processes.iter().enumerate();
        processes.filter(leads).map(|(who, process)| (who, process.born)).collect()
    }

    fn happen(&mut self, who: usize, event: Event) {
        let now = self.now;
        let local = self.processes[who].local(now);
        match event {
            Event::Begin => {
                let process = &mut self.processes[who];
                if process.elector.is_none() {
                    process.born += 1;
                    let name = format!("{who} {}", process.born);
                    process.elector = Some(Elector::unready(name, self.times));
                    let born = process.born;
                    let prepares = self.random.range(0, 60_000);
                    self.later(prepares, who, Event::Ready(born));
                    self.act(who);
                }
            }
            Event::Ready(born) => {
                let process = &mut self.processes[who];
                if let Some(elector) = process.elector.as_mut().filter(|_| process.born == born) {
                    elector.ready();
                    self.act(who);
                }
            }
            Event::Cut(lasts) => self.processes[who].cut = now + lasts,
            Event::Kill => self.end(who),
            Event::Stop => self.stop(who),
            Event::Wake(number) => {
                if self.processes[who].wake == number {
                    self.act(who);
                }
            }
            Event::News(lease) => {
                if let Some(elector) = &mut self.processes[who].elector {
                    elector.heard(lease.map(|lease| *lease), local);
                    self.act(who);
                }
            }
            Event::Arrive(number, lease) => {
                let answer = match lease {
                    None => Ok(self.stored.clone().map(Box::new)),
                    Some(lease) => self.store(*lease).map(|lease| Some(Box::new(lease))),
                };
                if let Some(delay) = self.delay(who) {
                    self.later(delay, who, Event::Answer(number, answer));
                }
            }
            Event::Answer(number, answer) => self.answered(who, number, answer),
            Event::GiveUp(number) => {
                let pause = self.pause();
                let process = &mut self.processes[who];
                if process.asked.take_if(|(asked, ..)| *asked == number).is_some() {
                    process.elector.as_mut().unwrap().failed(local, pause);
                    self.act(who);
                }
            }
        }
    }

    fn pause(&mut self) -> Duration {
        let full = u64::try_from(self.times.retry_period.as_millis()).unwrap();
        Duration::from_millis(self.random.range(full / 2, full))
    }

    fn answered(&mut self, who: usize, number: u64, answer: Result<Option<Box<Lease>>, ()>) {
        let pause = self.pause();
        let process = &mut self.processes[who];
        let local = process.local(self.now);
        let Some((_, sent, write)) = process.asked.take_if(|(asked, ..)| *asked == number) else {
            return;
        };
        let elector = process.elector.as_mut().unwrap();
        match (answer, write) {
            (Ok(Some(lease)), true) => elector.wrote(*lease, sent, local),
            (Ok(lease), _) => elector.saw(lease.map(|lease| *lease), local),
            (Err(()), _) => elector.failed(local, pause),
        }
        self.act(who);
    }

    /// Asks a process what it does now, unless it waits for an answer.
    fn act(&mut self, who: usize) {
        let wall = self.wall();
        let process = &mut self.processes[who];
        let local = process.local(self.now);
        let Some(elector) = process.elector.as_ref().filter(|_| process.asked.is_none()) else {
            return;
        };
        let patience = elector.patience(local);
        let (lease, write) = match elector.next(local, &wall) {
            Step::Wait(until) => {
                let wait = process.global(until).saturating_sub(self.now);
                let late = self.lateness();
                self.requests += 1;
                let number = self.requests;
                self.processes[who].wake = number;
                return self.later(wait + late, who, Event::Wake(number));
            }
            Step::StepDown(_) => return self.end(who),
            Step::Read => (None, false),
            Step::Write(lease) => (Some(lease), true),
        };
        self.requests += 1;
        let number = self.requests;
        let process = &mut self.processes[who];
        process.asked = Some((number, local, write));
        let give_up = process.global(local + patience).saturating_sub(self.now);
        let late = self.lateness();
        self.later(give_up + late, who, Event::GiveUp(number));
        if let Some(delay) = self.delay(who) {
            self.later(delay, who, Event::Arrive(number, lease));
        }
    }

    fn stop(&mut self, who: usize) {
        let wall = self.wall();
        let elector = self.processes[who].elector.as_mut();
        let given = elector.and_then(|elector| elector.release(&wall));
        if let (Some(lease), Some(delay)) = (given, self.delay(who)) {
            self.later(delay, who, Event::Arrive(0, Some(Box::new(lease))));
        }
        self.end(who);
    }

    fn end(&mut self, who: usize) {
        let process = &mut self.processes[who];
        process.elector = None;
        process.asked = None;
        let rest = self.random.range(0, 10_000);
        self.later(rest, who, Event::Begin);
    }

    /// What the API server does with a write.
    fn store(&mut self, mut lease: Lease) -> Result<Lease, ()> {
        let stored = self.stored.as_ref().and_then(|it| it.metadata.resource_version.as_ref());
        if stored != lease.metadata.resource_version.as_ref() {
            return Err(());
        }
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        self.stored = Some(lease.clone());
        for who in 0..PROCESSES {
            if let Some(delay) = self.delay(who) {
                self.later(delay, who, Event::News(Some(Box::new(lease.clone()))));
            }
        }
        Ok(lease)
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn never_do_two_believe_to_lead_and_in_the_end_one_does(
        seed in any::<u64>(),
        // Up to what clocks of so different speeds allow.
        renew_deadline in 10_000_u64..13_500,
    ) {
        let renew_deadline = Duration::from_millis(renew_deadline);
        let mut world = World::new(seed, Times { renew_deadline, ..Times::default() });
        world.run();
        prop_assert_eq!(world.leaders().len(), 1, "nobody leads after two calm minutes");
        prop_assert!(world.reigns >= 1);
    }
}

#[test]
fn a_belief_that_outlasts_the_lease_is_found() {
    let wrong = Times { renew_deadline: Duration::from_secs(17), ..Times::default() };
    let found =
        (0..20).filter(|seed| std::panic::catch_unwind(|| World::new(*seed, wrong).run()).is_err());
    assert!(found.count() > 5);
}

#[test]
fn storms_change_who_leads() {
    let mut world = World::new(1, Times::default());
    world.run();
    assert!(world.reigns > 3, "{} reigns", world.reigns);
}
