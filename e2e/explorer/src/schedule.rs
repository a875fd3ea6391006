//! One schedule: at each step a seed picks one of the things that can happen next.

mod ending;
mod report;
mod users;
mod world;

pub use self::report::{Options, Report};
use self::world::World;
use crate::{
    operator::{Fate, Kind},
    outcome::caught,
    parallel,
    random::Random,
    rule::Rule,
    server::requests::Refusal,
    totals::Totals,
};

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
    let mut world = World::new(&mut random, options);
    for name in 0..world.server.slots.len() {
        users::create(&mut world, name, &mut random);
    }
    world.start_leaders(&mut random);
    if random.percent(50) {
        world.settle_in();
    }
    let steps = random.between(30, 250);
    for _ in 0..steps {
        step(&mut world, &mut random);
        if world.server.violation.is_some() {
            return world.report();
        }
    }
    world.end(&mut random);
    world.report()
}

#[derive(Debug, Clone, Copy)]
enum Chance {
    Operator,
    Delivery,
    User,
    Controllers,
    Time,
    Stray,
    Relist,
    Crash,
    Clock,
    Eviction,
}

/// What happens how often.
const CHANCES: [(usize, Chance); 10] = [
    (60, Chance::Operator),
    (24, Chance::Delivery),
    (9, Chance::User),
    (10, Chance::Controllers),
    (7, Chance::Time),
    (3, Chance::Stray),
    (1, Chance::Relist),
    (1, Chance::Crash),
    (1, Chance::Clock),
    (2, Chance::Eviction),
];

fn step(world: &mut World, random: &mut Random) {
    match random.weighted(&CHANCES) {
        Some(Chance::Operator) => operate(world, random),
        Some(Chance::Delivery) => {
            let number = random.below(world.operators.len());
            if let Some(kind) = random.pick(&Kind::ALL) {
                world.deliver(number, kind);
            }
        }
        Some(Chance::User) => users::act(world, random),
        Some(Chance::Controllers) => users::control(world, random),
        Some(Chance::Time) => {
            let steps = [50, 300, 1_000, 1_000, 2_000, 5_000, 20_000];
            world.wait(random.pick(&steps).unwrap_or_default());
        }
        Some(Chance::Stray) => {
            let number = random.below(world.strays.len());
            world.arrive(number);
        }
        Some(Chance::Relist) => {
            let number = random.below(world.operators.len());
            if let Some(kind) = random.pick(&Kind::ALL) {
                world.relist(number, kind);
            }
        }
        Some(Chance::Crash) => {
            let number = random.below(world.operators.len());
            let survives = random.percent(60);
            world.crash(number, survives);
        }
        Some(Chance::Clock) => {
            let number = random.below(world.operators.len());
            world.hold_time(number);
        }
        Some(Chance::Eviction) => {
            let number = random.below(world.operators.len());
            world.evict(number);
        }
        None => {}
    }
}

fn operate(world: &mut World, random: &mut Random) {
    let number = random.below(world.operators.len());
    let turns = world.turns(number);
    if let Some(turn) = random.pick(&turns) {
        return world.take(number, turn, fate(random));
    }
    if let Some(kind) = random.pick(&Kind::ALL) {
        world.deliver(number, kind);
    }
}

/// What becomes of requests and answers. Few are checks for Pods, the only ones that may come late.
const FATES: [(usize, Fate); 11] = [
    (50, Fate::Arrives),
    (30, Fate::Later),
    (4, Fate::Lost),
    (5, Fate::GivenUp),
    (3, Fate::Refused(Refusal::Unknown)),
    (2, Fate::Refused(Refusal::Conflict)),
    (1, Fate::Refused(Refusal::NotFound)),
    (2, Fate::Refused(Refusal::Denied)),
    (1, Fate::Refused(Refusal::Throttled(1_000))),
    (1, Fate::Refused(Refusal::Throttled(7_000))),
    (1, Fate::Refused(Refusal::Throttled(30_000))),
];

fn fate(random: &mut Random) -> Fate {
    random.weighted(&FATES).unwrap_or(Fate::Arrives)
}
