//! Which of several wishes wins (`docs/retention.md`, R30 to R32).

use trainjob_api::time::Timestamp;
use trainjob_retention_core::{
    facts::Facts,
    kind::BuiltIn,
    plan::{Act, Delay, HoldEnd, OverrideProblem, Source, State},
    policy::{Annotation, Lifetime, Limits, Mode, OwnTtl, Policy, RuleAction},
    seconds::Seconds,
    wish::{HoldWish, TtlWish, Wishes},
};

use crate::scene::{
    at, cluster_policy, decide, hold, job, job_with, limits, own_ttl, plan_at, policy, seconds,
    there, there_for, ttl,
};

fn asks_for(seconds: i64) -> Wishes {
    Wishes { ttl: Seconds::new(seconds).map(TtlWish::Seconds), hold: None }
}

/// Namespaced N: 3600, annotations allowed.
fn n() -> Policy {
    Policy { annotation: Annotation::Allowed, ..policy(ttl(3600)) }
}

fn n_says(action: RuleAction) -> Policy {
    Policy { annotation: Annotation::Allowed, ..policy(action) }
}

/// Cluster C: 86400, limits 600 to 604800.
fn c() -> Policy {
    cluster_policy(ttl(86400), limits(600, 604_800))
}

/// When an object is due after its start, and why.
type Expected = Option<(i64, &'static str, Source, Option<Delay>)>;

fn due(object: &Facts, policies: Vec<Policy>) -> Expected {
    let policies = there(policies);
    let plan = plan_at(object, &policies, 0)?;
    let due = plan.due?;
    let policy = if plan.policy.name == "n".into() { "N" } else { "C" };
    Some((due.at.since(at(0)), policy, due.source, due.delay))
}

#[test]
fn the_twelve_cases_of_the_specification() {
    let wishing = |wishes| Facts { wishes, ..job() };
    let year_2100 = Wishes { hold: Some(HoldWish::Until(Timestamp(4_102_444_800))), ttl: None };
    let unreadable = Wishes { ttl: Some(TtlWish::Unreadable), hold: Some(HoldWish::Unreadable) };
    let held = |end| Some(Delay::Hold(end));
    let disallowing = || policy(ttl(3600));
    let deferring_c = || cluster_policy(RuleAction::Defer, limits(600, 604_800));
    let auditing_n = || Policy { mode: Mode::Audit, ..n() };
    let (policy, annotation) = (Source::Policy, Source::Annotation);
    for (case, object, n, c, expected) in [
        (1, job(), n(), c(), Some((3600, "N", policy, None))),
        (2, wishing(asks_for(60)), n(), c(), Some((600, "N", annotation, None))),
        (3, wishing(asks_for(60)), disallowing(), c(), Some((3600, "N", policy, None))),
        (4, own_ttl(60), n(), c(), Some((660, "N", Source::OwnTtl, None))),
        (5, own_ttl(2_000_000), n(), c(), Some((604_800, "N", Source::Maximum, None))),
        (
            6,
            job(),
            n_says(decide(Lifetime::Never)),
            c(),
            Some((604_800, "N", Source::Maximum, None)),
        ),
        (7, job(), n_says(RuleAction::Defer), c(), Some((86400, "C", policy, None))),
        (8, job(), n_says(RuleAction::Defer), deferring_c(), None),
        (
            9,
            wishing(hold(700_000)),
            n(),
            c(),
            Some((700_000, "N", policy, held(HoldEnd::AsWished))),
        ),
        (10, wishing(year_2100), n(), c(), Some((2_595_600, "N", policy, held(HoldEnd::Capped)))),
        (
            11,
            wishing(unreadable),
            n(),
            c(),
            Some((2_595_600, "N", policy, held(HoldEnd::Unreadable))),
        ),
        (12, job(), auditing_n(), c(), Some((86400, "C", policy, None))),
    ] {
        assert_eq!(due(&object, vec![c, n]), expected, "case {case}");
    }
    let policies = there(vec![auditing_n(), c()]);
    let job = job();
    let shown: Vec<_> = policies.audited(&job).map(|it| (&*it.policy.name, it.rule)).collect();
    assert_eq!(shown.len(), 1, "case 12");
    assert_eq!(shown.first().map(|(name, _)| *name), Some("n"), "case 12");
}

#[test]
fn each_unreadable_wish_keeps_the_object_as_long_as_a_hold_may() {
    let unreadable_ttl = Wishes { ttl: Some(TtlWish::Unreadable), hold: None };
    let unreadable_hold = Wishes { hold: Some(HoldWish::Unreadable), ttl: None };
    let allowing = || n();
    let ignoring = || policy(ttl(3600));
    let without_holds = || Policy { maximum_hold: Seconds::ZERO, ..n() };
    for (wishes, policy, expected) in [
        (unreadable_ttl, allowing(), 2_595_600),
        (unreadable_hold, allowing(), 2_595_600),
        (unreadable_ttl, ignoring(), 3600),
        (unreadable_hold, ignoring(), 2_595_600),
        (unreadable_ttl, without_holds(), 3600),
        (unreadable_hold, without_holds(), 3600),
    ] {
        let object = Facts { wishes, ..job() };
        let due = due(&object, vec![policy]).map(|(due, ..)| due);
        assert_eq!(due, Some(expected), "{wishes:?}");
    }
}

#[test]
fn the_largest_minimum_and_the_smallest_maximum_bind() {
    let cluster = |name: &str, limits| Policy {
        name: name.into(),
        ..cluster_policy(RuleAction::Defer, limits)
    };
    let limiting = |bounds: &[(Option<i64>, Option<i64>)]| {
        let named = bounds.iter().enumerate();
        named
            .map(|(index, bound)| cluster(&index.to_string(), limits(bound.0, bound.1)))
            .collect::<Vec<_>>()
    };
    for (bounds, ttl, expected, crossing) in [
        (vec![(Some(100), None), (Some(200), None)], 150, 200, false),
        (vec![(None, Some(100)), (None, Some(200))], 150, 100, false),
        (vec![(Some(100), None), (None, Some(200))], 150, 150, false),
        (vec![(Some(300), None), (None, Some(200))], 150, 300, true),
        (vec![(Some(300), None), (None, Some(200))], 400, 300, true),
        (vec![], 150, 150, false),
    ] {
        let mut policies = limiting(&bounds);
        policies.push(policy(self::ttl(ttl)));
        assert_eq!(
            due(&job(), policies.clone()).map(|(due, ..)| due),
            Some(expected),
            "{bounds:?}"
        );
        let (there, job) = (there(policies), job());
        assert_eq!(there.governing(&job).unwrap().bounds.cross(), crossing, "{bounds:?}");
    }
}

#[test]
fn limits_of_a_policy_that_audits_are_shown_to_it_alone() {
    let auditing = Policy { mode: Mode::Audit, priority: 1, ..c() };
    let enforcing = Policy { name: "e".into(), ..cluster_policy(ttl(60), Limits::default()) };
    let policies = there(vec![enforcing, Policy { ..auditing }]);
    assert_eq!(plan_at(&job(), &policies, 0).unwrap().due.unwrap().at, at(60));
    let job = job();
    let shown = policies.audited(&job).map(|governed| governed.bounds.minimum());
    assert_eq!(shown.collect::<Vec<_>>(), [seconds(600)]);
}

#[test]
fn a_hold_reaches_as_far_as_the_strictest_policy_lets_it() {
    let far = || Facts { wishes: hold(1_000_000), ..job() };
    let maximum_hold = |hold| Limits::new(None, None, Some(seconds(hold))).unwrap();
    for (own, of_cluster, expected) in
        [(1000, None, 1100), (1000, Some(500), 600), (500, Some(1000), 600), (0, Some(1000), 100)]
    {
        let own = Policy { maximum_hold: seconds(own), ..policy(ttl(100)) };
        let limits = of_cluster.map(|hold| cluster_policy(ttl(5), maximum_hold(hold)));
        let policies = limits.into_iter().chain([own]).collect();
        assert_eq!(due(&far(), policies).map(|(due, ..)| due), Some(expected), "{of_cluster:?}");
    }
}

#[test]
fn an_object_is_held_until_its_hold_ends_and_then_goes() {
    let object = Facts { wishes: hold(5000), ..job() };
    let policies = there(vec![n()]);
    for (now, state, act, next) in [
        (0, State::Held, Act::Nothing, Some(at(5000))),
        (4999, State::Held, Act::Nothing, Some(at(5000))),
        (5000, State::Due, Act::DeleteObject, None),
    ] {
        let plan = plan_at(&object, &policies, now).unwrap();
        assert_eq!((plan.state, plan.act, plan.next), (state, act, next), "{now}");
    }
    let past = Facts { wishes: hold(100), ..job() };
    assert_eq!(plan_at(&past, &policies, 0).unwrap().state, State::Pending);
}

#[test]
fn a_hold_is_capped_only_beyond_what_it_may() {
    let policies = there(vec![Policy { maximum_hold: seconds(100), ..policy(ttl(60)) }]);
    let held = |end| Some(Delay::Hold(end));
    for (until, expected, delay) in [
        (60, 60, None),
        (61, 61, held(HoldEnd::AsWished)),
        (160, 160, held(HoldEnd::AsWished)),
        (161, 160, held(HoldEnd::Capped)),
    ] {
        let object = Facts { wishes: hold(until), ..job() };
        let due = plan_at(&object, &policies, 0).unwrap().due.unwrap();
        assert_eq!((due.at, due.delay), (at(expected), delay), "{until}");
    }
}

#[test]
fn what_is_wrong_with_an_annotation_is_said() {
    for (ttl, expected) in [
        (None, None),
        (Some(60), Some(OverrideProblem::Clamped)),
        (Some(600), None),
        (Some(604_800), None),
        (Some(604_801), Some(OverrideProblem::Clamped)),
    ] {
        let object = Facts { wishes: ttl.map(asks_for).unwrap_or_default(), ..job() };
        let policies = there(vec![n(), c()]);
        assert_eq!(plan_at(&object, &policies, 0).unwrap().override_problem, expected, "{ttl:?}");
    }
    let unreadable = Wishes { ttl: Some(TtlWish::Unreadable), hold: None };
    let object = Facts { wishes: unreadable, ..job() };
    for (policy, expected) in [(n(), Some(OverrideProblem::Unreadable)), (policy(ttl(5)), None)] {
        let policies = there(vec![policy]);
        assert_eq!(plan_at(&object, &policies, 0).unwrap().override_problem, expected);
    }
}

#[test]
fn an_own_ttl_is_followed_a_minute_later_or_at_an_earlier_maximum() {
    let ignoring = || Policy { own_ttl: OwnTtl::Ignored, ..n() };
    for (own, maximum, policy, expected) in [
        (100, None, n(), Some((160, Source::OwnTtl))),
        (100, Some(159), n(), Some((159, Source::Maximum))),
        (100, Some(160), n(), Some((160, Source::OwnTtl))),
        (0, None, n(), Some((60, Source::OwnTtl))),
        (100, None, ignoring(), Some((3600, Source::Policy))),
    ] {
        let limits = cluster_policy(RuleAction::Defer, limits(None, maximum));
        let due = due(&own_ttl(own), vec![policy, limits]).map(|(due, _, source, _)| (due, source));
        assert_eq!(due, expected, "{own} {maximum:?}");
    }
}

#[test]
fn an_object_that_its_own_controller_deletes_too_early_is_counted() {
    let held = |object| Facts { wishes: hold(700), ..object };
    let ignoring = || Policy { own_ttl: OwnTtl::Ignored, ..n() };
    let minimum = || vec![n(), c()];
    let (job, train_job) = (BuiltIn::Job, BuiltIn::TrainJob);
    for (object, kind, policies, expected) in [
        (own_ttl(1000), job, minimum(), State::Pending),
        (own_ttl(60), job, minimum(), State::NativeTtl),
        (own_ttl(60), train_job, minimum(), State::NativeTtl),
        (held(own_ttl(60)), job, vec![n()], State::NativeTtl),
        (held(own_ttl(60)), train_job, vec![n()], State::Held),
        (own_ttl(60), job, vec![ignoring()], State::NativeTtl),
        (
            own_ttl(60),
            job,
            vec![Policy { own_ttl: OwnTtl::Ignored, ..policy(decide(Lifetime::Never)) }],
            State::NativeTtl,
        ),
        (crate::scene::job(), job, vec![ignoring()], State::Pending),
    ] {
        let there = there_for(kind, policies);
        assert_eq!(plan_at(&object, &there, 0).unwrap().state, expected, "{object:?}");
    }
}

#[test]
fn when_its_own_controller_deletes_an_object_is_told_if_that_is_earlier() {
    let held = |seconds, object: Facts| Facts { wishes: hold(seconds), ..object };
    let ignoring = || Policy { own_ttl: OwnTtl::Ignored, ..n() };
    let keeping = || Policy { own_ttl: OwnTtl::Ignored, ..n_says(decide(Lifetime::Never)) };
    let (job_kind, train_job) = (BuiltIn::Job, BuiltIn::TrainJob);
    for (kind, object, policy, expected) in [
        (job_kind, job(), n(), None),
        (job_kind, own_ttl(60), n(), Some(60)),
        (job_kind, held(700, own_ttl(60)), n(), Some(60)),
        (job_kind, own_ttl(60), ignoring(), Some(60)),
        (job_kind, own_ttl(3600), ignoring(), None),
        (job_kind, own_ttl(7200), ignoring(), None),
        (job_kind, own_ttl(60), keeping(), Some(60)),
        (train_job, own_ttl(60), n(), Some(60)),
        // Its operator heeds the hold.
        (train_job, held(700, own_ttl(60)), n(), None),
    ] {
        let policies = there_for(kind, vec![policy]);
        let native = plan_at(&object, &policies, 0).unwrap().native;
        assert_eq!(native, expected.map(at), "{kind:?} {object:?}");
    }
}

#[test]
fn the_later_of_finish_and_creation_is_the_start() {
    for (finished, created, expected) in [(0, -100, 3600), (0, 500, 4100), (9000, -100, 12600)] {
        let object = job_with(|finish| finish.time = at(finished).into());
        let object = Facts { created: at(created), ..object };
        assert_eq!(
            due(&object, vec![n()]).map(|(due, ..)| due),
            Some(expected),
            "{finished} {created}"
        );
    }
}
