//! One schedule: at each step a seed picks one of the things that can happen next.

use trainjob_accounting_core::job::FinishedHow;

use super::{
    options::Options, plot::REFUSALS, pods::MOST_PODS, report::Report, rule::Rule, world::World,
};
use crate::{outcome::caught, parallel, totals::Totals};

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
    let mut world = World::new(seed, options);
    let steps = 40 + world.random.below(160);
    for _ in 0..steps {
        if world.rules.violation.is_some() {
            break;
        }
        world.report.steps += 1;
        world.step();
    }
    world.come_to_rest();
    let (counted, uncounted, let_go) = world.rules.numbers();
    Report { violation: world.rules.violation, counted, uncounted, let_go, ..world.report }
}

impl World {
    fn step(&mut self) {
        let process = if self.plot.second.is_some() { self.random.below(2) } else { 0 };
        let pod = self.random.below(MOST_PODS);
        match self.random.below(106) {
            0..7 => self.create(),
            7..15 => self.end(pod),
            15..20 => self.delete(pod),
            20..23 if self.plot.people => self.people(pod),
            20..28 => self.seconds += self.random.between(0, 7),
            28..48 => self.send(process),
            48..66 => self.arrive(),
            66..82 => self.deliver(false),
            82..85 => self.deliver(true),
            85..87 => self.lose_request(),
            87..89 => self.give_up(),
            89..94 => {
                self.watch(process, pod);
            }
            94..97 => {
                // Nothing is in its way for a while.
                for _ in 0..self.random.below(4) {
                    self.seconds += 2;
                    self.round(process);
                }
            }
            97 => self.relist(process),
            98 => self.crash(process),
            99 if self.random.percent(20) => self.finish(FinishedHow::Complete),
            100 if self.random.percent(50) => self.watch_others(process),
            101 if self.plot.forces => self.force(pod),
            102 if self.plot.refuses => self.refuse(),
            103 if self.plot.refuses => self.toggle(),
            104 if self.plot.lives => self.live(),
            105 if self.plot.deletes_record && self.random.percent(50) => self.delete_record(),
            105 if self.plot.remakes && self.random.percent(30) => self.remake(),
            _ => {}
        }
    }

    fn relist(&mut self, process: usize) {
        let now = self.now(process);
        self.say(|| format!("the watch of {process} begins anew"));
        if let Some(process) = self.processes.get_mut(process) {
            process.relist(&self.pods, now);
        }
    }

    /// For a while the record cannot be written, or the API server is silent.
    fn toggle(&mut self) {
        if self.refusal.take().is_some() || std::mem::take(&mut self.is_silent) {
            return self.say(|| "all is well again".into());
        }
        if self.random.percent(30) {
            self.is_silent = true;
        } else {
            self.refusal = self.random.pick(&REFUSALS);
        }
        let (refusal, is_silent) = (self.refusal, self.is_silent);
        self.say(|| format!("refused: {refusal:?}, silent: {is_silent}"));
    }
}
