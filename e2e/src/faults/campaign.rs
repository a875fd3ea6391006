//! Many cases, several at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::stream::{self, StreamExt as _};
use tokio::time::{MissedTickBehavior, interval};

use super::baseline::{Baseline, Presence, TIMES};
use super::case::Case;
use super::ground::Ground;
use super::scenario::Scenario;
use super::verdict::{Ran, Verdict};

/// The longest silence.
const BEAT: Duration = Duration::from_secs(5);

/// How often a case is tried whose call does not come.
const ATTEMPTS: usize = 2;

/// Which cases to run.
#[derive(Debug, Clone)]
pub enum Selection {
    /// Every fault at every call of every scenario.
    All,
    /// Those whose name contains one of these; a complete name is run even if its call did not come in
    /// undisturbed lives.
    Matching(Vec<String>),
}

/// What came of a campaign.
#[derive(Debug)]
pub struct Campaign {
    /// Every case.
    pub ran: Vec<Ran>,
    /// What is wrong with undisturbed lives, by scenario.
    pub failed_baselines: BTreeMap<Scenario, String>,
    /// How long it took.
    pub took: Duration,
}

impl Campaign {
    /// Runs a selection of cases, `lanes` at a time, and tells of its progress.
    pub async fn run(selection: &Selection, lanes: usize, say: &dyn Fn(&str)) -> Result<Self> {
        let began = Instant::now();
        say("starting a control plane");
        let ground = Ground::prepare().await?;
        let baseline_runs = BaselineRuns::record(&ground, selection, lanes, say).await;
        let cases = interleaved(baseline_runs.select(selection));
        ensure!(
            !cases.is_empty() || !baseline_runs.failed_baselines.is_empty(),
            "there is no such case"
        );
        say(&format!("{} cases, {lanes} at a time", cases.len()));
        let ran = baseline_runs.run(&ground, cases, lanes, say).await;
        Ok(Self { ran, failed_baselines: baseline_runs.failed_baselines, took: began.elapsed() })
    }

    /// The names of a selection of cases.
    pub async fn list(
        selection: &Selection,
        lanes: usize,
        say: &dyn Fn(&str),
    ) -> Result<Vec<Case>> {
        let ground = Ground::prepare().await?;
        Ok(BaselineRuns::record(&ground, selection, lanes, say).await.select(selection))
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
    async fn record(
        ground: &Ground,
        selection: &Selection,
        lanes: usize,
        say: &dyn Fn(&str),
    ) -> Self {
        let mut baseline_runs =
            Self { baselines: BTreeMap::new(), failed_baselines: BTreeMap::new() };
        let recording = stream::iter(selection.scenarios())
            .map(async |scenario| (scenario, Baseline::record(ground, scenario).await))
            .buffer_unordered((lanes / TIMES).max(1));
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

    fn select(&self, selection: &Selection) -> Vec<Case> {
        let known: BTreeSet<Case> = self.baselines.values().flat_map(Baseline::cases).collect();
        let Selection::Matching(patterns) = selection else { return known.into_iter().collect() };
        let matches = |case: &&Case| {
            let name = case.to_string();
            // A complete name is that of one case, though others may begin with it.
            patterns.iter().any(|it| if is_case(it) { *it == name } else { name.contains(it) })
        };
        let mut chosen: BTreeSet<Case> = known.iter().filter(matches).cloned().collect();
        let complete = patterns.iter().filter_map(|it| it.parse::<Case>().ok());
        chosen.extend(complete.filter(|case| self.baselines.contains_key(&case.scenario)));
        chosen.into_iter().collect()
    }

    async fn run(
        &self,
        ground: &Ground,
        cases: Vec<Case>,
        lanes: usize,
        say: &dyn Fn(&str),
    ) -> Vec<Ran> {
        let (all, began) = (cases.len(), Instant::now());
        let running = stream::iter(cases)
            .map(async |case| self.run_one(ground, case).await)
            .buffer_unordered(lanes);
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
        for _ in 0..ATTEMPTS {
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
        let verdict = match baseline.presence(&case.call) {
            Presence::Sometimes => Verdict::NotStruck,
            Presence::Always => {
                let wrong = vec!["the call, which always comes undisturbed, did not".to_owned()];
                Verdict::Violated { wrong, trace: Vec::new() }
            }
        };
        Some(Ran { case, verdict, took: began.elapsed() })
    }
}

impl Selection {
    /// The scenarios that it may choose from.
    fn scenarios(&self) -> Vec<Scenario> {
        let Self::Matching(patterns) = self else { return Scenario::ALL.to_vec() };
        let begins =
            |pattern: &String, scenario: Scenario| pattern.starts_with(&format!("{scenario}/"));
        let of_all = |pattern: &String| !Scenario::ALL.iter().any(|it| begins(pattern, *it));
        let needed = |it: &Scenario| patterns.iter().any(|p| of_all(p) || begins(p, *it));
        Scenario::ALL.into_iter().filter(needed).collect()
    }
}

/// All scenarios at all times: together, lives of one kind would all wait and then all work.
fn interleaved(mut cases: Vec<Case>) -> Vec<Case> {
    let mut totals: BTreeMap<Scenario, usize> = BTreeMap::new();
    for case in &cases {
        *totals.entry(case.scenario).or_default() += 1;
    }
    let mut turns: BTreeMap<Scenario, usize> = BTreeMap::new();
    cases.sort_by_cached_key(|case| {
        let turn = turns.entry(case.scenario).or_default();
        *turn += 1;
        let total = totals.get(&case.scenario).copied().unwrap_or(1);
        (*turn * 1_000_000 / total, case.scenario)
    });
    cases
}

fn is_case(pattern: &str) -> bool {
    pattern.parse::<Case>().is_ok()
}

fn beats() -> tokio::time::Interval {
    let mut beats = interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matching(patterns: &[&str]) -> Selection {
        Selection::Matching(patterns.iter().map(|&pattern| pattern.to_owned()).collect())
    }

    #[test]
    fn only_the_scenarios_that_a_selection_may_mean_are_lived() {
        use Scenario::{Deadline, DeadlineTtl, TtlZero};
        for (patterns, scenarios) in [
            (&["deadline/"][..], &[Deadline][..]),
            (&["deadline-ttl/delete", "deadline/a 1/409"], &[Deadline, DeadlineTtl]),
            (&["ttl-zero/a 1/lost"], &[TtlZero]),
            (&["deadline/", "/409"], &Scenario::ALL),
            (&["deadline"], &Scenario::ALL),
        ] {
            assert_eq!(matching(patterns).scenarios(), scenarios, "{patterns:?}");
        }
        assert_eq!(Selection::All.scenarios(), Scenario::ALL);
    }

    #[test]
    fn cases_of_all_scenarios_are_spread_over_the_whole_campaign() {
        let named = |names: &[&str]| -> Vec<Case> {
            names.iter().map(|name| name.parse().unwrap()).collect()
        };
        let many = ["deadline/a 1/409", "deadline/a 2/409", "deadline/a 3/409", "deadline/a 4/409"];
        let few = ["ttl-zero/a 1/409", "ttl-zero/a 2/409"];
        let spread = interleaved(named(&[&many[..], &few[..]].concat()));
        let expected = [many[0], many[1], few[0], many[2], many[3], few[1]];
        assert_eq!(spread, named(&expected));
    }
}
