//! One schedule: at each step a seed picks one of the things that can happen next.

use super::{
    ending,
    judge::Rule,
    options::Options,
    process::Process,
    report::Report,
    server::{JOBS, SOURCES},
    users,
    world::{Fate, Refusal, World},
};
use crate::{outcome::caught, parallel, random::Random, totals::Totals};

/// Runs the schedule of a seed.
#[must_use]
pub fn run(seed: u64, options: Options) -> Report {
    caught(Rule::NoPanic, || schedule(seed, options))
}

/// Runs the schedules of so many seeds from `from` on; tells `progress` now and then how far it is.
#[must_use]
pub fn explore(
    from: u64,
    schedules: u64,
    progress: impl Fn(&Totals<Report>) + Sync,
) -> Totals<Report> {
    parallel::explore((from, schedules), |seed| run(seed, Options::default()), progress)
}

fn schedule(seed: u64, options: Options) -> Report {
    let mut random = Random::new(seed);
    let is_calm = random.percent(25);
    let mut world = World::new(options, is_calm);
    world.is_steady = is_calm && random.percent(40);
    users::begin(&mut world, &mut random);
    if is_calm || random.percent(70) {
        world.settle();
        settle_in(&mut world);
    }
    let steps = random.between(40, 300);
    for _ in 0..steps {
        step(&mut world, &mut random);
        if world.judge.violation.is_some() {
            return report(world);
        }
    }
    ending::end(&mut world, &mut random);
    report(world)
}

fn report(world: World) -> Report {
    Report { violation: world.judge.violation, ..world.report }
}

/// The first replica has judged everything.
fn settle_in(world: &mut World) {
    for _ in 0..8 {
        world.wait(1_000);
        world.settle();
        world.tick(0, 100);
        world.tick(1, 100);
        world.settle();
    }
}

#[derive(Debug, Clone, Copy)]
enum Chance {
    Turn,
    Delivery,
    Work,
    User,
    Time,
    Stray,
    Freeze,
    Relist,
    KindLost,
    Crash,
    Election,
    Clock,
    Jump,
    Right,
}

impl Chance {
    /// Whether a replica begins anew by that, and so cannot tell ends that are told late from edits (R41).
    const fn forgets(self) -> bool {
        match self {
            Self::Relist | Self::KindLost | Self::Crash | Self::Election => true,
            Self::Turn
            | Self::Delivery
            | Self::Work
            | Self::User
            | Self::Time
            | Self::Stray
            | Self::Freeze
            | Self::Clock
            | Self::Jump
            | Self::Right => false,
        }
    }
}

/// What happens how often.
const CHANCES: [(usize, Chance); 14] = [
    (120, Chance::Turn),
    (50, Chance::Delivery),
    (24, Chance::Work),
    (14, Chance::User),
    (40, Chance::Time),
    (4, Chance::Stray),
    (2, Chance::Freeze),
    (2, Chance::Relist),
    (1, Chance::KindLost),
    (2, Chance::Crash),
    (2, Chance::Election),
    (2, Chance::Clock),
    (1, Chance::Jump),
    (2, Chance::Right),
];

fn step(world: &mut World, random: &mut Random) {
    let index = random.below(world.processes.len());
    let chance = random.weighted(&CHANCES).filter(|it| !world.is_steady || !it.forgets());
    match chance {
        Some(Chance::Turn) => turn(world, random, index),
        Some(Chance::Delivery) => {
            let source = random.below(SOURCES);
            deliver(world, index, source);
        }
        Some(Chance::Work) => users::work(world, random),
        Some(Chance::User) if !world.is_calm => users::edit(world, random),
        Some(Chance::Time) => pass_time(world, random),
        Some(Chance::Stray) => {
            let number = random.below(world.strays.len());
            world.stray(number);
        }
        Some(Chance::Freeze) => freeze(world, random, index),
        Some(Chance::Relist) => {
            let source = random.below(SOURCES);
            if let Some(process) = world.processes.get_mut(index) {
                process.relist(source);
            }
        }
        Some(Chance::KindLost) => {
            if let Some(process) = world.processes.get_mut(index) {
                process.lose_kind();
            }
        }
        Some(Chance::Crash) => world.crash(index),
        Some(Chance::Election) => {
            let lingers = if random.percent(40) { random.between(1_000, 10_000) } else { 0 };
            world.elect(index, lingers);
        }
        Some(Chance::Clock) => set_clock(world, random, index),
        Some(Chance::Jump) if !world.is_calm && random.percent(30) => {
            let far = random.pick(&[-4_000_000, -90_000, 90_000, 4_000_000]);
            world.jump(far.unwrap_or_default());
        }
        Some(Chance::Right) => {
            world.server.may_delete = !world.server.may_delete || random.percent(60);
        }
        Some(Chance::User | Chance::Jump) | None => {}
    }
}

fn deliver(world: &mut World, index: usize, source: usize) {
    if let Some(process) = world.processes.get_mut(index)
        && process.lags(source, &world.server)
    {
        process.deliver(source, &world.server);
        let number = process.number;
        world.note(|| format!("{number} is told by watch {source}"));
    }
}

/// Something that a replica does by itself, or that becomes of what it has sent.
fn turn(world: &mut World, random: &mut Random, index: usize) {
    let Some(process) = world.processes.get(index) else { return };
    let (ready, under_way) = (process.ready.len(), process.under_way.len());
    match random.below(6) {
        0 | 1 if ready > 0 => {
            let key = process.ready.iter().nth(random.below(ready)).cloned();
            match key {
                Some(key) if random.percent(4) => world.pass_in_vain(index, &key),
                Some(key) => world.pass(index, &key),
                None => {}
            }
        }
        2 | 3 if under_way > 0 => {
            let number = random.below(under_way);
            let fate = random.weighted(&FATES).unwrap_or(Fate::Arrives);
            world.network(index, number, fate);
        }
        4 => world.maintain(index, random.below(4) + 1),
        _ => {
            let count = random.below(6) + 1;
            if let Some(process) = world.processes.get_mut(index) {
                process.evaluate(&world.server, count);
            }
            world.give_leave(index);
        }
    }
}

const FATES: [(usize, Fate); 10] = [
    (60, Fate::Arrives),
    (20, Fate::Later),
    (3, Fate::Lost),
    (4, Fate::Unanswered),
    (3, Fate::Stray),
    (3, Fate::Refused(Refusal::Failed)),
    (2, Fate::Refused(Refusal::Denied)),
    (1, Fate::Refused(Refusal::Missing)),
    (2, Fate::Refused(Refusal::Conflict)),
    (2, Fate::Refused(Refusal::Throttled)),
];

fn pass_time(world: &mut World, random: &mut Random) {
    let steps = [50, 300, 1_000, 1_000, 2_000, 5_000, 5_000, 20_000, 60_000];
    let step = random.pick(&steps).unwrap_or_default();
    if world.is_calm {
        tell_all(world);
    }
    world.wait(step);
    for index in 0..world.processes.len() {
        if random.percent(60) {
            for source in 0..SOURCES {
                for _ in 0..random.below(4) {
                    deliver(world, index, source);
                }
            }
            world.tick(index, 100);
        }
    }
}

/// Every watch that is not silent tells all. So in calm schedules nothing is told later than the breaker bridges (R41).
fn tell_all(world: &mut World) {
    for index in 0..world.processes.len() {
        for source in 0..SOURCES {
            tell_what_is_there(world, index, source);
        }
    }
}

fn tell_what_is_there(world: &mut World, index: usize, source: usize) {
    while world.processes.get(index).is_some_and(|it| it.may_tell(source, &world.server)) {
        deliver(world, index, source);
    }
}

/// A watch is silent for a while. In calm schedules for less than what the breaker bridges (R41).
fn freeze(world: &mut World, random: &mut Random, index: usize) {
    let longest = if world.is_calm { 60 } else { 300 };
    let until = world.server.monotonic() + random.between(5, longest) * 1_000;
    let source = if random.percent(50) { JOBS } else { random.below(SOURCES) };
    if world.is_calm {
        let is_silent = |it: &Process| it.is_frozen(source, &world.server);
        if world.processes.get(index).is_none_or(is_silent) {
            return;
        }
        tell_what_is_there(world, index, source);
    }
    if let Some(frozen) =
        world.processes.get_mut(index).and_then(|it| it.frozen_until.get_mut(source))
    {
        *frozen = until;
    }
}

fn set_clock(world: &mut World, random: &mut Random, index: usize) {
    let Some(process) = world.processes.get_mut(index) else { return };
    let known = (random.between(0, 2_500), random.between(0, 2_500));
    process.clock = (!random.percent(25)).then_some(known);
}
