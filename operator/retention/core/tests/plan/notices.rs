//! What users are told of an object (`docs/retention.md`, R36 and R52).

use trainjob_retention_core::{
    facts::Facts,
    keep_last::Groups,
    plan::{Answers, Notice},
    policy::{Annotation, Policy},
    seconds::Seconds,
    wish::{HoldWish, TtlWish, Wishes},
};

use crate::scene::{at, cluster_policy, hold, job, limits, policy, there, ttl};

/// What is told of an object that is due an hour after its end, when it is looked at so many seconds after that, and the
/// next such instant. Its policy takes annotations, and says at most a day.
fn told(object: &Facts, edited: bool, now: i64) -> (Vec<Notice>, Option<i64>) {
    let limits = cluster_policy(ttl(0), limits(None, Some(86_400)));
    let policies =
        there(vec![Policy { annotation: Annotation::Allowed, ..policy(ttl(3_600)) }, limits]);
    let governed = policies.governing(object).unwrap();
    let plan = governed.plan(&Answers::default(), &Groups::default(), at(now));
    let next = governed.next_notice(&plan, at(now));
    (governed.untold(&plan, &[], edited, at(now)), next.map(|next| next.since(at(0))))
}

fn with(wishes: Wishes) -> Facts {
    Facts { wishes, ..job() }
}

fn annotated(ttl: TtlWish) -> Facts {
    with(Wishes { ttl: Some(ttl), hold: None })
}

#[test]
fn a_hold_is_told_when_it_begins_to_delay_the_deletion_and_an_hour_before_it_ends() {
    let (held, until) = (with(hold(20_000)), at(20_000));
    for (now, expected, next) in [
        (3_599, vec![], Some(3_600)),
        (3_600, vec![Notice::Held { until }], Some(16_400)),
        (7_200, vec![Notice::Held { until }], Some(16_400)),
        // Somebody else has told it.
        (7_201, vec![], Some(16_400)),
        (16_400, vec![Notice::HoldEnding { until }], None),
        (19_999, vec![Notice::HoldEnding { until }], None),
    ] {
        assert_eq!(told(&held, false, now), (expected, next), "at {now}");
    }
    let edited = vec![Notice::Held { until }];
    assert_eq!(told(&held, true, 9_000).0, edited, "it was edited just now");
    let short = with(hold(7_200));
    assert_eq!(told(&short, false, 3_700), (vec![Notice::Held { until: at(7_200) }], None));
    assert_eq!(told(&with(hold(3_600)), false, 3_700), (vec![], None), "it delays nothing");
}

#[test]
fn wishes_that_are_cut_or_unreadable_are_told_at_once() {
    let longest = at(3_600 + 2_592_000);
    let unreadable = Wishes { hold: Some(HoldWish::Unreadable), ttl: None };
    for (object, expected) in [
        (with(hold(9_999_999)), Notice::HoldCapped { until: longest }),
        (with(unreadable), Notice::HoldInvalid { until: longest }),
        (annotated(TtlWish::Unreadable), Notice::OverrideInvalid),
        (
            annotated(TtlWish::Seconds(Seconds::new(90_000).unwrap())),
            Notice::OverrideClamped { due: at(86_400) },
        ),
    ] {
        assert_eq!(told(&object, false, 0).0, [expected], "{object:?}");
        assert_eq!(told(&object, false, 3_601).0, [], "an hour later it counts as told");
        assert_eq!(told(&object, true, 3_601).0.first(), Some(&expected), "unless just edited");
    }
    assert_eq!(told(&annotated(TtlWish::Seconds(Seconds::ZERO)), false, 0), (vec![], None));
}

#[test]
fn what_was_told_is_not_told_again_until_it_says_something_else() {
    let policies = there(vec![policy(ttl(3_600))]);
    let object = with(hold(20_000));
    let governed = policies.governing(&object).unwrap();
    let plan = governed.plan(&Answers::default(), &Groups::default(), at(3_600));
    let all = governed.notices(&plan, at(3_600));
    assert_eq!(governed.untold(&plan, &all, true, at(3_600)), []);
    let other = [Notice::Held { until: at(9) }];
    assert_eq!(governed.untold(&plan, &other, true, at(3_600)), *all);
}

#[test]
fn an_object_that_is_terminating_for_ten_minutes_is_stuck() {
    let (since, object) = (at(100), Facts { terminating: at(100).into(), ..job() });
    let stuck = vec![Notice::StuckTerminating { since }];
    for (now, expected, next) in
        [(699, vec![], Some(700)), (700, stuck.clone(), None), (4_300, stuck, None)]
    {
        assert_eq!(told(&object, false, now), (expected, next), "at {now}");
    }
}
