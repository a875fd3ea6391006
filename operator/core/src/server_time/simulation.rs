//! API servers with clocks of their own, behind a network that takes its time.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};
use trainjob_api::time::Timestamp;

use super::{
    estimator::Estimator,
    interval::{DRIFT_PPM, Micros, SECOND, Sample},
    planner::{Planner, Precision},
};

const PAUSE: Duration = Duration::from_mins(10);

/// What the servers' clocks show when this machine's shows 0.
const START: Micros = 1_767_520_800 * SECOND;

/// The clock of this machine, and how far the clock of each server is ahead of it.
#[derive(Debug, Clone)]
struct World {
    now: Micros,
    ahead: Vec<Micros>,
}

/// An answer and what happens before it.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// How long nothing is asked.
    idle: Micros,
    /// How fast the clocks of the servers go compared with this machine's.
    drift_ppm: Micros,
    /// Which server answers.
    server: usize,
    /// How long the request takes, and then the answer.
    ways: (Micros, Micros),
}

impl World {
    fn new(ahead: &[Micros]) -> Self {
        Self { now: 1_000 * SECOND, ahead: ahead.iter().map(|ahead| START + ahead).collect() }
    }

    fn pass(&mut self, time: Micros, drift_ppm: Micros) {
        self.now += time;
        // Less than allowed by what is cut off.
        self.ahead.iter_mut().for_each(|ahead| *ahead += time * drift_ppm / 1_000_000);
    }

    fn take(&mut self, step: Step) -> Sample {
        self.pass(step.idle, step.drift_ppm);
        let sent = self.now;
        self.pass(step.ways.0, step.drift_ppm);
        let date = self.clock(step.server % self.ahead.len()).div_euclid(SECOND);
        self.pass(step.ways.1, step.drift_ppm);
        Sample { sent: at(sent), received: at(self.now), date: Timestamp(date) }
    }

    fn clock(&self, server: usize) -> Micros {
        self.now + self.ahead[server]
    }
}

fn at(micros: Micros) -> Duration {
    Duration::from_micros(micros.unsigned_abs())
}

fn steps(longest_way: Micros) -> impl Strategy<Value = Vec<Step>> {
    let idle = prop_oneof![0..SECOND, 0..2 * SECOND, 0..100 * SECOND];
    let drift = -DRIFT_PPM..=DRIFT_PPM;
    let ways = (0..longest_way, 0..longest_way);
    let step = (idle, drift, 0..60_usize, ways);
    let step =
        step.prop_map(|(idle, drift_ppm, server, ways)| Step { idle, drift_ppm, server, ways });
    vec(step, 1..60)
}

proptest! {
    #[test]
    fn estimate_contains_the_clock_of_servers_that_agree_and_is_never_early(
        ahead in 0..10 * SECOND,
        steps in steps(10 * SECOND),
        silence in (0..100_000 * SECOND, -DRIFT_PPM..=DRIFT_PPM),
    ) {
        let mut world = World::new(&[ahead]);
        let mut estimator = Estimator::new(PAUSE);
        let check = |world: &World, estimator: &mut Estimator| {
            let reading = estimator.reading(at(world.now)).unwrap();
            let clock = world.clock(0);
            prop_assert!(reading.clock.low <= clock && clock <= reading.clock.high, "{reading:?} {clock}");
            let reached = reading.now().reached().unwrap();
            prop_assert!(reached.0 <= clock.div_euclid(SECOND));
            Ok(())
        };
        for step in steps {
            estimator.observe(&world.take(step));
            check(&world, &mut estimator)?;
        }
        prop_assert_eq!(estimator.jumps(), 0);
        world.pass(silence.0, silence.1);
        check(&world, &mut estimator)?;
    }

    #[test]
    fn estimate_contains_the_clocks_of_all_servers_that_have_answered_lately(
        others in vec((3 * SECOND..100_000 * SECOND, any::<bool>()), 1..3),
        steps in steps(50_000),
    ) {
        let mut clocks = vec![0];
        for (apart, later) in others {
            let end = if later { clocks.iter().max() } else { clocks.iter().min() };
            clocks.push(end.unwrap() + if later { apart } else { -apart });
        }
        let mut world = World::new(&clocks);
        let mut estimator = Estimator::new(PAUSE);
        let mut heard = vec![None; clocks.len()];
        for step in steps {
            estimator.observe(&world.take(step));
            heard[step.server % clocks.len()] = Some(world.now);
            let reading = estimator.reading(at(world.now)).unwrap();
            for (server, heard) in heard.iter().enumerate() {
                let clock = world.clock(server);
                let within = reading.clock.low <= clock && clock <= reading.clock.high;
                let lately = heard.is_some_and(|heard| world.now - heard < 299 * SECOND);
                prop_assert!(within || !lately, "{reading:?} {clock}");
            }
        }
    }

    /// Most answers agree with both.
    #[test]
    fn servers_whose_clocks_differ_by_less_than_an_answer_tells_are_known_for_hours(
        apart in 5_000..900_000_i64,
        steps in vec((0..4 * SECOND, 0..2_usize, 0..20_000_i64, 0..20_000_i64), 50..100),
        drift_ppm in -DRIFT_PPM..=DRIFT_PPM,
    ) {
        let mut world = World::new(&[0, apart]);
        let mut estimator = Estimator::new(PAUSE);
        for (idle, server, up, down) in steps.into_iter().cycle().take(10_000) {
            estimator.observe(&world.take(Step { idle, drift_ppm, server, ways: (up, down) }));
        }
        let reading = estimator.reading(at(world.now)).unwrap();
        prop_assert!(world.clock(0) - reading.clock.low <= SECOND * 3 / 2, "{reading:?}");
        prop_assert!(reading.clock.width() <= SECOND * 5 / 2, "{reading:?}");
        prop_assert_eq!(estimator.jumps(), 0);
    }

    #[test]
    fn clock_that_is_set_is_noticed_with_the_next_answer_and_both_times_are_possible(
        before in steps(50_000),
        after in steps(50_000),
        by in prop_oneof![-1_000_000..-62_i64, 62..1_000_000_i64],
    ) {
        let mut world = World::new(&[0]);
        let mut estimator = Estimator::new(PAUSE);
        for step in before {
            estimator.observe(&world.take(step));
        }
        let old = world.ahead[0];
        world.ahead[0] += by * SECOND;
        let mut first = after[0];
        first.idle %= SECOND;
        estimator.observe(&world.take(first));
        prop_assert_eq!(estimator.jumps(), 1);
        let reading = estimator.reading(at(world.now)).unwrap();
        prop_assert!(reading.paused && reading.now().reached().is_none());
        for ahead in [old, world.ahead[0]] {
            let clock = world.now + ahead;
            prop_assert!(reading.clock.low <= clock + 1_000 && clock - 1_000 <= reading.clock.high);
        }
    }

    /// An answer takes up to 50 milliseconds in all.
    #[test]
    fn time_is_known_to_100_milliseconds_after_a_dozen_answers_and_stays_known(
        ahead in 0..10 * SECOND,
        steps in vec((-DRIFT_PPM..=DRIFT_PPM, 0..25_000_i64, 0..25_000_i64, 0..3_000_i64), 40),
    ) {
        let mut world = World::new(&[ahead]);
        let (mut estimator, mut planner) = (Estimator::new(PAUSE), Planner::default());
        for (number, (drift_ppm, up, down, late)) in steps.into_iter().enumerate() {
            let next = planner.next(&estimator, at(world.now), Precision::Promised);
            let idle = i64::try_from(next.as_micros()).unwrap() - world.now;
            prop_assert!(idle <= 31 * SECOND);
            if number >= 12 {
                let mut world = world.clone();
                world.pass(idle.max(0), drift_ppm);
                let reading = estimator.clone().reading(at(world.now)).unwrap();
                prop_assert!(reading.clock.width() <= 100_000, "{number}: {reading:?}");
            }
            // A sleep ends a little late.
            let idle = idle.max(0) + late;
            let sample = world.take(Step { idle, drift_ppm, server: 0, ways: (up, down) });
            estimator.observe(&sample);
            planner.asked(Some(at(up + down)), &estimator, at(world.now));
        }
    }

    /// An answer takes up to two milliseconds in all.
    #[test]
    fn time_is_known_to_four_milliseconds_while_something_is_due_soon(
        ahead in 0..10 * SECOND,
        steps in vec((-DRIFT_PPM..=DRIFT_PPM, 0..1_000_i64, 0..1_000_i64, 0..100_i64), 60),
    ) {
        let mut world = World::new(&[ahead]);
        let (mut estimator, mut planner) = (Estimator::new(PAUSE), Planner::default());
        for (number, (drift_ppm, up, down, late)) in steps.into_iter().enumerate() {
            let next = planner.next(&estimator, at(world.now), Precision::Best);
            let idle = i64::try_from(next.as_micros()).unwrap() - world.now;
            prop_assert!(idle <= 3 * SECOND);
            let sample = world.take(Step { idle: idle.max(0) + late, drift_ppm, server: 0, ways: (up, down) });
            estimator.observe(&sample);
            planner.asked(Some(at(up + down)), &estimator, at(world.now));
            if number >= 20 {
                let reading = estimator.clone().reading(at(world.now)).unwrap();
                prop_assert!(reading.clock.width() <= 4_000, "{number}: {reading:?}");
            }
        }
    }
}
