//! Two faults in one life: a sample of all pairs, which are too many.

use std::collections::{BTreeMap, BTreeSet};

use explorer::random::Random;

use super::blow::Blow;
use super::case::{Case, Disturbance};
use super::scenario::Scenario;

/// How often two blows are drawn for one pair before there seem to be no more.
const DRAWS: usize = 100;

/// Which pairs to run.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// How many.
    pub count: usize,
    /// The same seed draws the same pairs, if undisturbed lives make the same calls.
    pub seed: u64,
}

impl Sample {
    /// Draws pairs of these cases, each pair once, none of two faults that are meant for the same call. Every case is as
    /// likely as any other; so a life of many calls is drawn more often than one of few. The first of them are as good a
    /// sample as all, for those who have no time for the rest.
    pub(super) fn draw(self, cases: &[Case]) -> Vec<Case> {
        let mut blows: BTreeMap<Scenario, Vec<&Blow>> = BTreeMap::new();
        for case in cases {
            if let Disturbance::One(blow) = &case.disturbance {
                blows.entry(case.scenario).or_default().push(blow);
            }
        }
        let scenarios: Vec<(usize, Scenario)> =
            blows.iter().map(|(scenario, blows)| (blows.len(), *scenario)).collect();
        let mut random = Random::new(self.seed);
        let (mut known, mut drawn) = (BTreeSet::new(), Vec::new());
        for _ in 0..self.count.saturating_mul(DRAWS) {
            if drawn.len() == self.count {
                break;
            }
            let pair = pair(&mut random, &scenarios, &blows);
            drawn.extend(pair.filter(|pair| known.insert(pair.clone())));
        }
        drawn
    }
}

/// Two blows of one scenario, the lesser first, so that a pair has one name.
fn pair(
    random: &mut Random,
    scenarios: &[(usize, Scenario)],
    blows: &BTreeMap<Scenario, Vec<&Blow>>,
) -> Option<Case> {
    let scenario = random.weighted(scenarios)?;
    let blows = blows.get(&scenario)?;
    let (one, other) = (random.pick(blows)?, random.pick(blows)?);
    let disturbance = Disturbance::Pair(one.min(other).clone(), one.max(other).clone());
    (!one.meets(other)).then_some(Case { scenario, disturbance })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases() -> Vec<Case> {
        let names =
            ["deadline/a 1/409", "deadline/a 1/lost", "deadline/b 1/before", "ttl-zero/a 1/409"];
        names.map(|name| name.parse().unwrap()).into()
    }

    fn draw(count: usize, seed: u64) -> Vec<String> {
        Sample { count, seed }.draw(&cases()).iter().map(Case::to_string).collect()
    }

    #[test]
    fn pairs_are_of_one_life_and_of_two_calls_and_each_is_drawn_once() {
        let all = ["deadline/a 1/409+deadline/b 1/before", "deadline/a 1/lost+deadline/b 1/before"];
        for seed in 0..10 {
            let drawn = draw(5, seed);
            assert!(all.iter().all(|pair| drawn.contains(&(*pair).to_owned())), "{drawn:?}");
            assert_eq!(drawn.len(), all.len());
        }
    }

    #[test]
    fn a_seed_draws_the_same_pairs_each_time_and_another_seed_others() {
        let drawn: Vec<_> = (0..20).map(|seed| draw(1, seed)).collect();
        let again: Vec<_> = (0..20).map(|seed| draw(1, seed)).collect();
        assert_eq!(drawn, again);
        assert!(drawn.iter().any(|it| *it != drawn[0]), "{drawn:?}");
    }
}
