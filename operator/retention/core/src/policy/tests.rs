use super::*;
use crate::{
    finished::configured::{DescriptionError, FieldPath, Phase},
    operator::Operator,
    outcome::Outcome,
    pattern::ReasonPattern,
    selector::Requirement,
};

fn seconds(seconds: i64) -> Seconds {
    Seconds::new(seconds).unwrap()
}

fn rule(name: &str) -> Rule {
    Rule { name: name.into(), action: RuleAction::Defer }
}

fn any() -> Match {
    Match::new(None, None, Selector::default()).unwrap()
}

#[test]
fn rules_are_1_to_32_with_names_of_their_own_and_a_last_one_that_fits_everything() {
    let long = "a".repeat(63);
    let many = |count: usize| (0..count).map(|index| (None, rule(&format!("r{index}")))).collect();
    let same = || PolicyError::SameRuleName("a".to_owned());
    for (rules, expected) in [
        (vec![], Err(PolicyError::RuleCount(0))),
        (many(33), Err(PolicyError::RuleCount(33))),
        (many(32), Ok(())),
        (vec![(Some(any()), rule("a")), (None, rule("b"))], Ok(())),
        (vec![(None, rule(&long))], Ok(())),
        (vec![(None, rule("0-a"))], Ok(())),
        (vec![(Some(any()), rule("a"))], Err(PolicyError::LastRuleMatches)),
        (vec![(Some(any()), rule("a")), (None, rule("a"))], Err(same())),
        (vec![(None, rule("a")), (Some(any()), rule("a"))], Err(same())),
    ] {
        assert_eq!(Rules::new(rules.clone()).map(|_| ()), expected, "{rules:?}");
    }
    for name in ["", "A", "a_b", "a.b", "-a", "a-", "ä", &"a".repeat(64)] {
        let refused = Err(PolicyError::RuleName(name.to_owned()));
        assert_eq!(Rules::new(vec![(None, rule(name))]), refused);
    }
}

#[test]
fn a_match_that_nothing_could_fit_is_none() {
    let reasons = |count: usize| Some(vec![ReasonPattern::from("R"); count]);
    let outcomes = |outcomes: &[Outcome]| Some(outcomes.to_vec());
    for (outcomes, reasons, expected) in [
        (None, None, Ok(())),
        (outcomes(&Outcome::ALL), reasons(16), Ok(())),
        (outcomes(&[]), None, Err(PolicyError::EmptyList("outcomes"))),
        (None, reasons(0), Err(PolicyError::EmptyList("reasons"))),
        (None, reasons(17), Err(PolicyError::TooMany { field: "reasons", most: 16 })),
    ] {
        let matches = Match::new(outcomes, reasons, Selector::default());
        assert_eq!(matches.map(|_| ()), expected);
    }
}

#[test]
fn a_count_is_1_to_10000_in_groups_of_up_to_four_labels() {
    let keys = |keys: &[&str]| keys.iter().map(|key| Arc::from(*key)).collect::<Vec<_>>();
    let count = |value| Err(PolicyError::OutOfBounds { value, least: 1, most: 10_000 });
    let crossing = Err(PolicyError::AgesCross { minimum: 2, maximum: 1 });
    for (number, group_by, minimum, maximum, expected) in [
        (1, keys(&[]), 0, None, Ok(())),
        (10_000, keys(&["a", "b", "c", "d"]), 1, Some(1), Ok(())),
        (0, keys(&[]), 0, None, count(0)),
        (-1, keys(&[]), 0, None, count(-1)),
        (10_001, keys(&[]), 0, None, count(10_001)),
        (65_537, keys(&[]), 0, None, count(65_537)),
        (
            1,
            keys(&["a", "b", "c", "d", "e"]),
            0,
            None,
            Err(PolicyError::TooMany { field: "groupBy", most: 4 }),
        ),
        (1, keys(&[]), 2, Some(1), crossing),
    ] {
        let keep_last =
            KeepLast::new(number, group_by.clone(), seconds(minimum), maximum.map(seconds));
        assert_eq!(keep_last.map(|_| ()), expected, "{number} {group_by:?}");
    }
    assert!(KeepLast::new(1, keys(&["not a key"]), Seconds::ZERO, None).is_err());
}

#[test]
fn pods_go_no_later_than_their_object_and_are_not_made_again() {
    let pods = PodsStage::new(("batch", "Job"), seconds(60), Phases::Terminal).unwrap();
    let late = Err(PolicyError::PodsAfterObject { pods: 60, object: 59 });
    for (lifetime, expected) in [
        (Lifetime::Ttl(seconds(60)), Ok(())),
        (Lifetime::Ttl(seconds(59)), late),
        (Lifetime::Never, Ok(())),
    ] {
        let decide = Decide::new(lifetime, Some(pods), Delete::Object);
        assert_eq!(decide.map(|_| ()), expected);
    }
    let ray = PodsStage::new(("ray.io", "RayJob"), seconds(60), Phases::All);
    assert_eq!(ray, Err(PolicyError::PodsUnsupported));
}

#[test]
fn limits_of_one_policy_do_not_cross() {
    let crossing = Err(PolicyError::LimitsCross { minimum: 2, maximum: 1 });
    for (minimum, maximum, expected) in [
        (None, None, Ok(())),
        (Some(2), None, Ok(())),
        (None, Some(1), Ok(())),
        (Some(1), Some(1), Ok(())),
        (Some(2), Some(1), crossing),
    ] {
        let limits = Limits::new(minimum.map(seconds), maximum.map(seconds), None);
        assert_eq!(limits.map(|_| ()), expected, "{minimum:?} {maximum:?}");
    }
}

#[test]
fn what_finished_means_is_known_or_said() {
    let job = ("batch", "Job");
    assert_eq!(definition(job, None), Ok(Definition::BuiltIn(BuiltIn::Job)));
    let ray_job = ("ray.io", "RayJob");
    assert_eq!(definition(ray_job, None), Err(PolicyError::UnknownKind));
    let nothing = definition(ray_job, Some(Description::default()));
    assert_eq!(nothing, Err(PolicyError::Description(DescriptionError::NoEnd)));
    let done = [("Done".to_owned(), crate::finished::configured::DescribedOutcome::Succeeded)];
    let phase = Phase::new(FieldPath::parse("status.phase").unwrap(), done, None).unwrap();
    for kind in [job, ray_job] {
        let description = Description { phase: Some(phase.clone()), ..Description::default() };
        let definition = definition(kind, Some(description));
        assert!(matches!(definition, Ok(Definition::Configured(_))), "{kind:?}");
    }
}

#[test]
fn a_policy_reads_the_labels_of_its_selector_its_matches_and_its_groups() {
    let selector = |key: &str| -> Selector {
        [Requirement::new(key, Operator::Exists, &[]).unwrap()].into_iter().collect()
    };
    let grouped = |key: &str| {
        let keep_last = KeepLast::new(1, vec![key.into()], Seconds::ZERO, None).unwrap();
        let decide = Decide::new(Lifetime::KeepLast(keep_last), None, Delete::Object).unwrap();
        Rule { name: key.into(), action: RuleAction::Decide(decide) }
    };
    let matching = Match::new(None, None, selector("b")).unwrap();
    let policy = Policy {
        name: "p".into(),
        uid: Uid::from("p"),
        created: Timestamp(0),
        scope: Scope::Namespace("a".into()),
        selector: selector("a"),
        mode: Mode::Audit,
        priority: 0,
        definition: Arc::new(Definition::BuiltIn(BuiltIn::Job)),
        rules: Rules::new(vec![(Some(matching), grouped("c")), (None, grouped("d"))]).unwrap(),
        owned: Owned::Skip,
        annotation: Annotation::Ignored,
        own_ttl: OwnTtl::Respected,
        maximum_hold: Seconds::ZERO,
        propagation: Propagation::Foreground,
    };
    assert_eq!(policy.label_keys().map(|key| &**key).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
}
