//! A cluster with two policies over many namespaces, people who edit everything, and leaders that come and go.
//!
//! A [cluster](cluster) keeps objects, policies and what was stored in their status; its resource versions refuse what
//! rests on old ones. A [leader](leader) does what the program does around the breaker: it looks at its view of the
//! cluster, judges, stores and deletes, and is killed between any two of these. The [judge](oracle) sees only the cluster:
//! which edit made which object due, and which deletion followed. [Defects](defect) show that it finds what is wrong.

mod cluster;
mod defect;
mod leader;
mod oracle;
mod random;
mod world;

use std::panic::catch_unwind;

use proptest::prelude::*;

use self::{
    defect::{ALL, Defect},
    world::World,
};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_is_deleted_that_an_edit_made_due_in_mass_and_all_else_in_time(seed in any::<u64>()) {
        World::new(seed, None).run();
    }
}

#[test]
fn every_seeded_defect_is_found() {
    for defect in ALL {
        let found = (0..150).find(|seed| fails(*seed, defect));
        assert!(found.is_some(), "{defect:?} is never found");
    }
}

fn fails(seed: u64, defect: Defect) -> bool {
    catch_unwind(|| World::new(seed, Some(defect)).run()).is_err()
}

#[test]
fn worlds_are_full_of_accidents() {
    let mut seen = [0; 8];
    for seed in 0..40 {
        let mut world = World::new(seed, None);
        world.run();
        let numbers = world.numbers();
        for (seen, number) in seen.iter_mut().zip(numbers) {
            *seen += number;
        }
    }
    println!(
        "leaders, deletions, trips, acknowledgements, edits, lost stores, refused, hidden: {seen:?}"
    );
    assert!(seen[..7].iter().all(|number| *number > 40), "{seen:?}");
}

#[test]
fn debug_seeds() {
    let get = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
    };
    let (from, to) = (get("FROM", 0), get("TO", 0));
    let defect =
        std::env::var("DEFECT").ok().and_then(|it| it.parse::<usize>().ok()).map(|it| ALL[it]);
    let mut bad = 0;
    for seed in from..to {
        if catch_unwind(|| World::new(seed, defect).run()).is_err() {
            eprintln!("^^^ seed {seed}");
            bad += 1;
        }
    }
    eprintln!("{bad} bad of {}", to - from);
}
