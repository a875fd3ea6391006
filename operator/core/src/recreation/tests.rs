use proptest::{collection::vec, prelude::*};

use super::*;
use crate::facts::ObjectKey;

fn key(number: usize) -> ObjectKey {
    ObjectKey::new("ns", format!("job-{number}"))
}

fn remembers(memory: &Recreations, number: usize) -> bool {
    memory.names.contains_key(&memory.hasher.hash_one(key(number)))
}

/// Deletes and makes again the jobs of one name: the instants of a deletion and of the creation that follows. Which of
/// the new jobs closed a loop.
fn closed(memory: &mut Recreations, number: usize, cycles: &[(i64, i64)]) -> Vec<bool> {
    let closes = |(at, (deleted, created)): (usize, &(i64, i64))| {
        memory.deleted(&key(number), &format!("U{at}"), Timestamp(*deleted));
        memory.seen(&key(number), &format!("U{}", at + 1), Timestamp(*created))
    };
    cycles.iter().enumerate().map(closes).collect()
}

#[test]
fn name_that_was_deleted_and_made_again_three_times_within_an_hour_loops() {
    for (what, cycles, expected) in [
        ("at once", vec![(0, 1), (2, 3), (4, 5)], vec![false, false, true]),
        (
            "the fourth time too",
            vec![(0, 0), (1, 1), (2, 2), (3, 3)],
            vec![false, false, true, true],
        ),
        ("within the hour", vec![(0, 1), (1_800, 1_801), (3_600, 4_200)], vec![false, false, true]),
        ("a second too slow", vec![(0, 1), (1_800, 1_801), (3_601, 3_602)], vec![false; 3]),
        (
            "made again after ten minutes",
            vec![(0, 600), (700, 1_301), (1_400, 1_401)],
            vec![false; 3],
        ),
        (
            "once in between",
            vec![(0, 1), (9, 700), (800, 801), (900, 901)],
            vec![false, false, false, true],
        ),
        ("twice", vec![(0, 1), (2, 3)], vec![false, false]),
    ] {
        assert_eq!(closed(&mut Recreations::default(), 0, &cycles), expected, "{what}");
    }
}

#[test]
fn job_closes_a_loop_once_however_often_it_is_seen() {
    let mut memory = Recreations::default();
    closed(&mut memory, 0, &[(0, 1), (2, 3)]);
    memory.deleted(&key(0), "C", Timestamp(4));
    assert!(!memory.seen(&key(0), "C", Timestamp(3)), "the deleted job itself");
    assert!(memory.seen(&key(0), "D", Timestamp(5)));
    assert!(!memory.seen(&key(0), "D", Timestamp(5)));
}

#[test]
fn what_no_ttl_has_deleted_closes_no_loop() {
    let mut memory = Recreations::default();
    for at in 0..9 {
        assert!(!memory.seen(&key(0), &at.to_string(), Timestamp(at)));
    }
    closed(&mut memory, 0, &[(0, 1), (2, 3)]);
    assert!(!memory.seen(&key(0), "by hand", Timestamp(4)), "deleted by hand and made again");
}

#[test]
fn names_are_apart() {
    let mut memory = Recreations::default();
    for number in 0..3 {
        let cycles = [(0, 1), (2, 3)];
        assert_eq!(closed(&mut memory, number, &cycles), [false, false]);
    }
    assert_eq!(memory.loops(Timestamp(10)), 0);
}

#[test]
fn name_loops_until_an_hour_has_passed_since_the_first_of_its_last_three_deletions() {
    let mut memory = Recreations::default();
    closed(&mut memory, 0, &[(0, 1), (100, 101), (200, 201)]);
    closed(&mut memory, 1, &[(0, 1), (100, 101)]);
    for (now, loops) in [(201, 1), (3_600, 1), (3_601, 0)] {
        assert_eq!(memory.loops(Timestamp(now)), loops, "at {now}");
    }
    memory.deleted(&key(0), "X", Timestamp(300));
    assert!(memory.seen(&key(0), "Y", Timestamp(301)));
    assert_eq!(memory.loops(Timestamp(3_601)), 1, "the last three count");
}

#[test]
fn storm_of_deletions_hides_no_loop() {
    let mut memory = Recreations::default();
    closed(&mut memory, 0, &[(0, 1), (2, 3)]);
    for number in 1..=3 * MOST_NAMES {
        memory.deleted(&key(number), "U", Timestamp(4));
        assert!(memory.names.len() <= MOST_NAMES);
    }
    assert_eq!(closed(&mut memory, 0, &[(5, 6)]), [true]);
}

#[test]
fn last_names_are_kept_in_a_storm() {
    let mut memory = Recreations::default();
    for number in 0..2 * MOST_NAMES {
        memory.deleted(&key(number), "U", Timestamp(i64::try_from(number).unwrap() / 100));
    }
    let last = MOST_NAMES - FORGOTTEN_AT_ONCE - 100;
    assert!((0..last).all(|back| remembers(&memory, 2 * MOST_NAMES - 1 - back)));
}

#[test]
fn names_that_matter_no_more_make_room_first() {
    let mut memory = Recreations::default();
    closed(&mut memory, 0, &[(0, 1), (2, 3)]);
    for number in 1..MOST_NAMES {
        memory.deleted(&key(number), "U", Timestamp(9));
    }
    memory.deleted(&key(MOST_NAMES), "U", Timestamp(2_000));
    assert_eq!(memory.names.len(), 2, "the one that was made again, and the last");
}

/// What T12 says, counted from the whole past.
fn expected(past: &[(i64, i64)]) -> bool {
    let again: Vec<_> = past.iter().filter(|(deleted, created)| created - deleted <= 600).collect();
    let [.., first, _, last] = &*again else { return false };
    past.last() == Some(*last) && last.0 - first.0 <= 3_600
}

proptest! {
    #[test]
    fn a_loop_is_what_the_whole_past_says(waits in vec((0..2_500_i64, 0..900_i64), 0..12)) {
        let mut now = 0;
        let past: Vec<_> = waits.into_iter().map(|(runs, is_gone)| {
            let deleted = now + runs;
            now = deleted + is_gone;
            (deleted, now)
        }).collect();
        let told = closed(&mut Recreations::default(), 0, &past);
        for (at, told) in told.into_iter().enumerate() {
            prop_assert_eq!(told, expected(&past[..=at]), "{:?}", &past[..=at]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn memory_is_bounded(names in vec((0..MOST_NAMES * 2, 0..5_000_i64), 1..50)) {
        let mut memory = Recreations::default();
        for number in 0..MOST_NAMES {
            memory.deleted(&key(number), "U", Timestamp(0));
        }
        for (number, at) in names {
            memory.deleted(&key(number), "V", Timestamp(at));
            prop_assert!(memory.names.len() <= MOST_NAMES);
            prop_assert!(remembers(&memory, number), "the last is never forgotten");
        }
    }
}
