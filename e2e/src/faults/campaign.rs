//! Many cases, several at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::ready;
use futures::stream::{self, StreamExt as _};
use tokio::time::{MissedTickBehavior, interval};

use super::baseline::{Baseline, Presence, TIMES};
use super::case::{Case, Disturbance};
use super::ground::Ground;
use super::pairs::Sample;
use super::scenario::{Program, Scenario};
use super::selection::{Selection, interleaved};
use super::verdict::{Ran, Verdict};

/// The longest silence.
const BEAT: Duration = Duration::from_secs(5);

/// How often a case is tried whose call does not come.
const ATTEMPTS: usize = 2;

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Whose lives.
    pub program: Program,
    /// Which cases.
    pub selection: Selection,
    /// What the cases are.
    pub kind: Kind,
    /// How many at a time.
    pub lanes: usize,
    /// After so long, no further case is begun.
    pub time: Option<Duration>,
}

/// What goes wrong in the cases that are not named in full.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// One fault.
    Single,
    /// Two, of this sample of pairs of single faults.
    Pairs(Sample),
    /// A brown-out.
    BrownOuts,
}

/// What came of a campaign.
#[derive(Debug)]
pub struct Campaign {
    /// Every case.
    pub ran: Vec<Ran>,
    /// What is wrong with undisturbed lives, by scenario.
    pub failed_baselines: BTreeMap<Scenario, String>,
    /// How many were to be run.
    pub planned: usize,
    /// How long it took.
    pub took: Duration,
}

impl Campaign {
    /// Runs the cases of a plan, and tells of its progress.
    pub async fn run(plan: &Plan, say: &dyn Fn(&str)) -> Result<Self> {
        let began = Instant::now();
        say("starting a control plane");
        let ground = Ground::prepare(plan.program).await?;
        let baseline_runs = BaselineRuns::record(&ground, plan, say).await;
        let cases = interleaved(baseline_runs.cases(plan));
        ensure!(
            !cases.is_empty() || !baseline_runs.failed_baselines.is_empty(),
            "there is no such case"
        );
        let planned = cases.len();
        say(&format!("{planned} cases, {} at a time", plan.lanes));
        let ran = baseline_runs.run(&ground, cases, plan, say).await;
        let failed_baselines = baseline_runs.failed_baselines;
        Ok(Self { ran, failed_baselines, planned, took: began.elapsed() })
    }

    /// The names of the cases of a plan.
    pub async fn list(plan: &Plan, say: &dyn Fn(&str)) -> Result<Vec<Case>> {
        let ground = Ground::prepare(plan.program).await?;
        Ok(BaselineRuns::record(&ground, plan, say).await.cases(plan))
    }

    /// Whether nothing was wrong.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.failed_baselines.is_empty() && self.ran.iter().all(|ran| !ran.is_violation())
    }
}

/// What was recorded of undisturbed lives, by scenario.
struct BaselineRuns {
    baselines: BTreeMap<Scenario, Baseline>,
    failed_baselines: BTreeMap<Scenario, String>,
}

impl BaselineRuns {
    async fn record(ground: &Ground, plan: &Plan, say: &dyn Fn(&str)) -> Self {
        let mut baseline_runs =
            Self { baselines: BTreeMap::new(), failed_baselines: BTreeMap::new() };
        let recording = stream::iter(plan.selection.scenarios(plan.program))
            .map(async |scenario| (scenario, Baseline::record(ground, scenario).await))
            .buffer_unordered((plan.lanes / TIMES).max(1));
        let mut recording = std::pin::pin!(recording);
        let mut beat = beats();
        loop {
            tokio::select! {
                recorded = recording.next() => match recorded {
                    Some((scenario, Ok(baseline))) => {
                        say(&format!("{scenario}: {} calls undisturbed", baseline.calls()));
                        baseline_runs.baselines.insert(scenario, baseline);
                    }
                    Some((scenario, Err(error))) => {
                        say(&format!("{scenario}: {error:#}"));
                        baseline_runs.failed_baselines.insert(scenario, format!("{error:#}"));
                    }
                    None => return baseline_runs,
                },
                _ = beat.tick() => say("living undisturbed lives"),
            }
        }
    }

    fn cases(&self, plan: &Plan) -> Vec<Case> {
        let baselines = self.baselines.values();
        let known: BTreeSet<Case> = match plan.kind {
            Kind::Single | Kind::Pairs(_) => baselines.flat_map(Baseline::cases).collect(),
            Kind::BrownOuts => baselines.flat_map(Baseline::brown_outs).collect(),
        };
        let lived = |scenario| self.baselines.contains_key(&scenario);
        let chosen = plan.selection.of(known, lived);
        match plan.kind {
            Kind::Pairs(sample) => sample.draw(&chosen),
            Kind::Single | Kind::BrownOuts => chosen,
        }
    }

    async fn run(
        &self,
        ground: &Ground,
        cases: Vec<Case>,
        plan: &Plan,
        say: &dyn Fn(&str),
    ) -> Vec<Ran> {
        let (all, began) = (cases.len(), Instant::now());
        let in_time = |_: &Case| ready(plan.time.is_none_or(|time| began.elapsed() < time));
        let running = stream::iter(cases)
            .take_while(in_time)
            .map(async |case| self.run_one(ground, case).await)
            .buffer_unordered(plan.lanes);
        let mut running = std::pin::pin!(running);
        let (mut ran, mut violations, mut beat) = (Vec::new(), 0, beats());
        loop {
            tokio::select! {
                one = running.next() => match one.flatten() {
                    Some(one) => {
                        if one.is_violation() {
                            violations += 1;
                            say(&one.to_string());
                        }
                        ran.push(one);
                    }
                    None => return ran,
                },
                _ = beat.tick() => say(&format!(
                    "{} of {all} cases after {} s, {violations} violations",
                    ran.len(),
                    began.elapsed().as_secs(),
                )),
            }
        }
    }

    /// Runs one case; once more if its call did not come.
    async fn run_one(&self, ground: &Ground, case: Case) -> Option<Ran> {
        let baseline = self.baselines.get(&case.scenario)?;
        let began = Instant::now();
        for _ in 0..attempts(&case) {
            let verdict = match ground.live(case.scenario, Some(&case)).await {
                Ok(life) => Verdict::on(&life, &baseline.reference, &case),
                Err(error) => {
                    Verdict::Violated { wrong: vec![format!("{error:#}")], trace: vec![] }
                }
            };
            if !matches!(verdict, Verdict::NotStruck) {
                return Some(Ran { case, verdict, took: began.elapsed() });
            }
        }
        let verdict = match &case.disturbance {
            Disturbance::One(blow) if baseline.presence(&blow.call) == Presence::Always => {
                let wrong = vec!["the call, which always comes undisturbed, did not".to_owned()];
                Verdict::Violated { wrong, trace: Vec::new() }
            }
            _ => Verdict::NotStruck,
        };
        Some(Ran { case, verdict, took: began.elapsed() })
    }
}

/// After one fault, a call that another one is meant for need not come.
const fn attempts(case: &Case) -> usize {
    match case.disturbance {
        Disturbance::Pair(..) => 1,
        Disturbance::One(_) | Disturbance::BrownOut(_) => ATTEMPTS,
    }
}

fn beats() -> tokio::time::Interval {
    let mut beats = interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}
