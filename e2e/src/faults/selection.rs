//! Which cases a campaign runs, and in which order.

use std::collections::{BTreeMap, BTreeSet};

use super::case::Case;
use super::scenario::{Program, Scenario};

/// Which cases to run.
#[derive(Debug, Clone)]
pub enum Selection {
    /// Every fault at every call of every scenario.
    All,
    /// Those whose name contains one of these; a complete name is run even if its call did not come in
    /// undisturbed lives.
    Matching(Vec<String>),
}

impl Selection {
    /// Those of the known cases that are selected, and those of `lived` scenarios whose complete names are given.
    pub(super) fn of(&self, known: BTreeSet<Case>, lived: impl Fn(Scenario) -> bool) -> Vec<Case> {
        let Self::Matching(patterns) = self else { return known.into_iter().collect() };
        let matches = |case: &&Case| {
            let name = case.to_string();
            // A complete name is that of one case, though others may begin with it.
            patterns.iter().any(|it| if is_case(it) { *it == name } else { name.contains(it) })
        };
        let mut chosen: BTreeSet<Case> = known.iter().filter(matches).cloned().collect();
        let complete = patterns.iter().filter_map(|it| it.parse::<Case>().ok());
        chosen.extend(complete.filter(|case| lived(case.scenario)));
        chosen.into_iter().collect()
    }

    /// The scenarios of a program that it may choose from.
    pub(super) fn scenarios(&self, program: Program) -> Vec<Scenario> {
        let all = Scenario::of(program);
        let Self::Matching(patterns) = self else { return all.to_vec() };
        let begins =
            |pattern: &String, scenario: Scenario| pattern.starts_with(&format!("{scenario}/"));
        let of_all = |pattern: &String| !all.iter().any(|it| begins(pattern, *it));
        let needed = |it: &Scenario| patterns.iter().any(|p| of_all(p) || begins(p, *it));
        all.iter().copied().filter(needed).collect()
    }
}

/// All scenarios at all times: together, lives of one kind would all wait and then all work.
pub(super) fn interleaved(mut cases: Vec<Case>) -> Vec<Case> {
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
            (&["deadline/", "/409"], &Scenario::OPERATOR),
            (&["deadline"], &Scenario::OPERATOR),
        ] {
            let chosen = matching(patterns).scenarios(Program::Operator);
            assert_eq!(chosen, scenarios, "{patterns:?}");
        }
        for program in [Program::Operator, Program::Retention, Program::Accounting] {
            assert_eq!(Selection::All.scenarios(program), Scenario::of(program));
        }
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
