use proptest::{collection::vec, prelude::*};

use super::*;

fn candidate(uid: u8, finished: i64, takes_place: bool) -> Candidate {
    let group = GroupKey {
        policy: Uid::from("p"),
        rule: "r".into(),
        namespace: "a".into(),
        values: [const { None }; 4],
    };
    let rank = Rank {
        finished: Timestamp(finished),
        created: Timestamp(0),
        uid: Uid::from(&*uid.to_string()),
    };
    Candidate { group, counts_from: rank.finished, rank, takes_place }
}

#[test]
fn an_object_that_was_held_counts_from_the_end_of_its_hold() {
    let mut groups = Groups::default();
    let [old, held, new] = [1, 2, 3].map(|uid| candidate(uid, i64::from(uid), true));
    let held = Candidate { counts_from: Timestamp(600), ..held };
    let since = |groups: &Groups, count| {
        groups.get(&old.group).and_then(|group| group.dispensable_since(&old.rank, count))
    };
    for candidate in [&old, &held] {
        groups.enter(candidate);
    }
    assert_eq!(since(&groups, 1), Some(Timestamp(600)));
    groups.enter(&new);
    assert_eq!((since(&groups, 1), since(&groups, 2)), (Some(Timestamp(3)), Some(Timestamp(600))));
    groups.leave(&held);
    assert_eq!((since(&groups, 1), since(&groups, 2)), (Some(Timestamp(3)), None));
}

proptest! {
    #[test]
    fn object_is_dispensable_since_the_last_of_those_kept_counted(
        holds in vec((0..40_i64, 0..3_i64), 1..30), count in 0..6_u16,
    ) {
        let mut groups = Groups::default();
        let mut candidates = Vec::new();
        for (uid, (finished, held)) in (0..).zip(holds) {
            let candidate = candidate(uid, finished, true);
            let counts_from = candidate.rank.finished.plus(held * 10);
            candidates.push(Candidate { counts_from, ..candidate });
        }
        for candidate in &candidates {
            groups.enter(candidate);
        }
        let group = groups.get(&candidates[0].group).unwrap();
        for old in &candidates {
            let newer = candidates.iter().filter(|newer| newer.rank > old.rank);
            let mut instants: Vec<_> = newer.map(|newer| newer.counts_from).collect();
            instants.sort_unstable();
            let last = usize::from(count).checked_sub(1).and_then(|last| instants.get(last));
            prop_assert_eq!(group.dispensable_since(&old.rank, count), last.copied());
        }
    }
}

#[test]
fn a_group_that_nothing_belongs_to_takes_no_memory() {
    let mut groups = Groups::default();
    let (one, other) = (candidate(1, 1, true), candidate(2, 2, true));
    groups.enter(&one);
    assert_eq!(groups.groups.len(), 1);
    groups.begin_deletion(&one);
    groups.leave(&one);
    assert_eq!(groups.groups.len(), 0);
    groups.leave(&one);
    groups.end_deletion(&one);
    groups.begin_deletion(&other);
    assert_eq!(groups.groups.len(), 1);
    groups.end_deletion(&one);
    assert!(groups.get(&one.group).unwrap().is_deleting_other_than(&one.rank.uid));
    groups.end_deletion(&other);
    assert_eq!(groups.groups.len(), 0);
}

#[test]
fn nobody_waits_for_the_deletion_of_what_takes_no_place() {
    let mut groups = Groups::default();
    let (one, kept) = (candidate(1, 1, true), candidate(2, 2, false));
    groups.enter(&one);
    groups.begin_deletion(&kept);
    assert!(!groups.get(&one.group).unwrap().is_deleting_other_than(&one.rank.uid));
    groups.begin_deletion(&one);
    assert!(groups.get(&one.group).unwrap().is_deleting_other_than(&kept.rank.uid));
}

#[test]
fn what_can_have_passed_the_limit_is_the_newest_that_is_dispensable_and_the_oldest_that_is_kept() {
    let mut groups = Groups::default();
    for (uid, finished) in [(1, 30), (2, 10), (3, 20), (4, 40)] {
        groups.enter(&candidate(uid, finished, true));
    }
    let group = groups.get(&candidate(1, 0, true).group).unwrap();
    for (count, expected) in
        [(1, vec!["1", "4"]), (3, vec!["2", "3"]), (4, vec!["2"]), (9, vec!["2"])]
    {
        let uids: Vec<_> = group.at_limit(count).map(Uid::to_string).collect();
        assert_eq!(uids, expected, "of the last {count}");
    }
}

#[test]
fn whoever_waits_for_a_turn_is_next_when_no_deletion_is_under_way() {
    let mut groups = Groups::default();
    let [one, two, three, held] = [1, 2, 3, 4].map(|uid| candidate(uid, uid.into(), uid < 4));
    for candidate in [&one, &two, &three, &held] {
        groups.enter(candidate);
    }
    let next = |groups: &Groups| {
        let group = groups.get(&one.group);
        group.map(|group| group.next_in_turn().map(Uid::to_string).collect::<Vec<_>>())
    };
    groups.begin_deletion(&one);
    for candidate in [&held, &three, &two] {
        groups.wait_for_turn(candidate, true);
    }
    assert_eq!(next(&groups), Some(vec![]), "another one's deletion is under way");
    groups.leave(&one);
    assert_eq!(next(&groups), Some(vec!["2".into(), "3".into(), "4".into()]));
    groups.wait_for_turn(&two, false);
    groups.leave(&three);
    assert_eq!(next(&groups), Some(vec!["4".into()]));
    groups.leave(&two);
    groups.leave(&held);
    assert_eq!(next(&groups), None, "a group that nothing belongs to takes no memory");
}

proptest! {
    #[test]
    fn an_object_is_dispensable_since_as_many_newer_ones_as_are_kept_had_finished(
        changes in vec((0..12_u8, 0..6_i64, any::<bool>()), 0..40),
        count in 1..5_u16,
        (uid, finished) in (0..12_u8, 0..6_i64),
    ) {
        let mut groups = Groups::default();
        let mut places = Vec::new();
        for (uid, finished, takes_place) in changes {
            let candidate = candidate(uid, finished, takes_place);
            groups.enter(&candidate);
            places.retain(|rank| *rank != candidate.rank);
            if takes_place {
                places.push(candidate.rank);
            }
        }
        let candidate = candidate(uid, finished, true);
        let mut newer: Vec<_> = places.into_iter().filter(|rank| *rank > candidate.rank).collect();
        newer.sort();
        let expected = newer.get(usize::from(count) - 1).map(|rank| rank.finished);
        let group = groups.get(&candidate.group);
        let since = group.and_then(|group| group.dispensable_since(&candidate.rank, count));
        prop_assert_eq!(since, expected);
    }
}
