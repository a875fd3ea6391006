//! Random runs of a small cluster: two processes that may both believe that they lead, requests that are carried out late
//! and in any order, replies that are lost, watches that are behind, crashes, and people who remove and put back
//! finalizers. Every stored version and every released Pod is judged by the rules A1 to A6 (`docs/accounting.md`, 10).
//!
//! The processes do what the program has to do around `plan`: they keep versions, carry out actions and take replies.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

mod process;
mod rules;
mod world;

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use self::world::{Defect, Step, World};

fn any_step() -> impl Strategy<Value = Step> {
    let process = 0..2_usize;
    let pod = 0..12_usize;
    prop_oneof![
        3 => (any::<bool>(), 0..3_u64).prop_map(|(exact, restart)| Step::Create { exact, restart }),
        4 => (pod.clone(), any::<bool>()).prop_map(|(pod, success)| Step::End { pod, success }),
        4 => pod.clone().prop_map(|pod| Step::Delete { pod }),
        1 => pod.clone().prop_map(|pod| Step::Strip { pod }),
        1 => pod.clone().prop_map(|pod| Step::PutBack { pod }),
        1 => Just(Step::TouchRecord),
        1 => Just(Step::FinishJob),
        3 => (0..8_u64).prop_map(|seconds| Step::Wait { seconds }),
        10 => process.clone().prop_map(|process| Step::Plan { process }),
        8 => any::<usize>().prop_map(|request| Step::CarryOut { request }),
        8 => any::<usize>().prop_map(|reply| Step::Answer { reply }),
        2 => any::<usize>().prop_map(|reply| Step::LoseReply { reply }),
        6 => (process.clone(), pod).prop_map(|(process, pod)| Step::Watch { process, pod }),
        1 => process.prop_map(|process| Step::Crash { process }),
    ]
}

fn runs() -> ProptestConfig {
    ProptestConfig { cases: 3_000, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(runs())]

    /// A1 to A6: whatever happens, no Pod is counted twice, none is lost that was held, and all are released.
    #[test]
    fn every_pod_is_counted_once(steps in prop::collection::vec(any_step(), 0..160)) {
        let mut world = World::new(Defect::None);
        steps.iter().for_each(|step| world.step(step));
        world.come_to_rest();
        prop_assert_eq!(world.violations(), Vec::<String>::new());
    }
}

/// The rules find what they are there for: with each defect some run breaks the rule.
#[test]
fn each_seeded_defect_breaks_its_rule() {
    for (defect, rule) in Defect::ALL {
        let found = first_violations(defect);
        assert!(found.iter().any(|it| it.starts_with(rule)), "{defect:?} breaks {rule}: {found:?}");
    }
}

/// The violations of the first random run that has some.
fn first_violations(defect: Defect) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let runs = prop::collection::vec(any_step(), 0..160);
    for _ in 0..3_000 {
        let steps = runs.new_tree(&mut runner).unwrap().current();
        let mut world = World::new(defect);
        steps.iter().for_each(|step| world.step(step));
        world.come_to_rest();
        let found = world.violations();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}
