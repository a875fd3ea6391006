//! The rule as tables, and what must hold whatever the numbers.

use std::collections::BTreeMap;

use proptest::{option, prelude::*};
use serde_json::{Value, json};
use trainjob_api::constants::{
    DEFAULT_DEADLINE_ANNOTATION, DEFAULT_TTL_ANNOTATION, MAXIMUM_DEADLINE_ANNOTATION,
    MAXIMUM_TTL_ANNOTATION,
};

use super::{annotations::SHOWN, *};
use crate::admission::testing::{self, texts};

const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";

/// The limits of a namespace with these values of default and maximum of TTL, and of deadline.
fn annotated(ttl: [&str; 2], deadline: [&str; 2]) -> Option<NamespaceLimits> {
    let names = [
        DEFAULT_TTL_ANNOTATION,
        MAXIMUM_TTL_ANNOTATION,
        DEFAULT_DEADLINE_ANNOTATION,
        MAXIMUM_DEADLINE_ANNOTATION,
    ];
    let annotations = names.into_iter().zip([ttl, deadline].concat());
    let set = annotations.filter(|(_, text)| !text.is_empty());
    NamespaceLimits::of(&set.map(|(name, text)| (name.to_owned(), text.to_owned())).collect())
}

fn limits(cluster: [Option<i64>; 3], annotated: Option<&NamespaceLimits>) -> Limits<'_> {
    let [default_ttl, maximum_ttl, maximum_deadline] = cluster;
    let cluster = ClusterLimits { default_ttl, maximum_ttl, maximum_deadline };
    Limits { cluster, namespace: "team", annotated }
}

fn labelled(spec: &Value, label: &str) -> TrainJob {
    let mut job = testing::job(spec);
    job.metadata.labels = Some([(label.to_owned(), "x".to_owned())].into());
    job
}

fn nobody() -> Vec<Manager> {
    Vec::new()
}

/// The job with what it gets, and what its author is told.
fn filled(job: &TrainJob, limits: &Limits<'_>, clock: Clock) -> (TrainJob, Vec<String>) {
    let filled = fill_in(job, limits, clock, nobody);
    (patched(job, &filled.patch), filled.warnings)
}

fn patched(job: &TrainJob, patch: &Patch) -> TrainJob {
    let mut value = serde_json::to_value(job).unwrap();
    json_patch::patch(&mut value, patch).unwrap();
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_job_without_a_ttl_gets_the_default_but_no_more_than_the_maximum() {
    let own = "the namespace \"team\" (annotation lifecycle.trainjob.dev/default-ttl-seconds-after-finished)";
    let most = "the namespace \"team\" (annotation lifecycle.trainjob.dev/maximum-ttl-seconds-after-finished)";
    let cluster = "the cluster (setting lifecycle.defaultTTLSecondsAfterFinished)";
    let most_of_cluster = "the cluster (setting lifecycle.maximumTTLSecondsAfterFinished)";
    let text = |seconds: i64, why: &str| {
        vec![format!("spec.ttlSecondsAfterFinished is set to {seconds}, {why}")]
    };
    for (of_cluster, of_namespace, given, expected, told) in [
        ([None, None], ["", ""], json!({}), None, vec![]),
        // One's own value stays, also where it will be refused.
        ([Some(9), Some(90)], ["5", "50"], json!({TTL: 500}), Some(500), vec![]),
        ([Some(9), None], ["", ""], json!({TTL: 0}), Some(0), vec![]),
        (
            [Some(0), None],
            ["", ""],
            json!({}),
            Some(0),
            text(0, &format!("the default of {cluster}")),
        ),
        ([Some(9), None], ["5", ""], json!({}), Some(5), text(5, &format!("the default of {own}"))),
        (
            [Some(9), Some(90)],
            ["5", "50"],
            json!({}),
            Some(5),
            text(5, &format!("the default of {own}")),
        ),
        (
            [None, None],
            ["70", "50"],
            json!({}),
            Some(50),
            text(50, &format!("the maximum of {most}; the default of {own} is 70")),
        ),
        (
            [None, Some(40)],
            ["70", "50"],
            json!({}),
            Some(40),
            text(40, &format!("the maximum of {most_of_cluster}; the default of {own} is 70")),
        ),
        (
            [Some(60), None],
            ["", "50"],
            json!({}),
            Some(50),
            text(50, &format!("the maximum of {most}; the default of {cluster} is 60")),
        ),
        (
            [None, None],
            ["", "50"],
            json!({}),
            Some(50),
            text(50, &format!("the maximum of {most}")),
        ),
        (
            [None, Some(40)],
            ["", "50"],
            json!({}),
            Some(40),
            text(40, &format!("the maximum of {most_of_cluster}")),
        ),
    ] {
        let namespace = annotated(of_namespace, ["", ""]);
        let limits = limits([of_cluster[0], of_cluster[1], None], namespace.as_ref());
        let (job, warnings) = filled(&testing::job(&given), &limits, Clock::Creation);
        let context = format!("{of_cluster:?} {of_namespace:?} {given}");
        assert_eq!(Field::Ttl.of_job(&job), expected, "{context}");
        assert_eq!(Field::Deadline.of_job(&job), None, "{context}");
        assert_eq!(warnings, told, "{context}");
    }
}

const TTL: &str = "ttlSecondsAfterFinished";
const DEADLINE: &str = "activeDeadlineSeconds";

#[test]
fn a_deadline_is_given_unless_it_would_count_while_the_job_waits() {
    let namespace = annotated(["", ""], ["60", ""]);
    let limits = limits([None; 3], namespace.as_ref());
    let queued = labelled(&json!({}), QUEUE_LABEL);
    for (job, clock, expected) in [
        (testing::job(&json!({})), Clock::Creation, Some(60)),
        (testing::job(&json!({"suspend": false})), Clock::Creation, Some(60)),
        (testing::job(&json!({"suspend": true})), Clock::Creation, None),
        (queued.clone(), Clock::Creation, None),
        (testing::job(&json!({"suspend": true})), Clock::LastResume, Some(60)),
        (queued, Clock::LastResume, Some(60)),
        (testing::job(&json!({DEADLINE: 7})), Clock::Creation, Some(7)),
        // Which the schema refuses.
        (testing::job(&json!({DEADLINE: -7})), Clock::Creation, Some(-7)),
        (testing::job(&json!({"runtimeRef": {}})), Clock::Creation, None),
        (labelled(&json!({}), MULTIKUEUE_ORIGIN_LABEL), Clock::Creation, None),
    ] {
        let (job, warnings) = filled(&job, &limits, clock);
        assert_eq!(Field::Deadline.of_job(&job), expected, "{job:?}");
        assert_eq!(warnings.len(), usize::from(expected == Some(60)), "{job:?}");
    }
}

#[test]
fn a_deadline_that_was_given_before_kueue_queued_the_job_is_taken_back() {
    let manager = |owned: Value| {
        serde_json::from_value(json!({
            "manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": owned},
        }))
        .unwrap()
    };
    let (of_user, of_webhook): (Manager, Manager) =
        (manager(json!({"f:activeDeadlineSeconds": {}})), manager(json!({"f:suspend": {}})));
    let namespace = annotated(["", ""], ["60", ""]);
    let limits = limits([None; 3], namespace.as_ref());
    for (deadline, managers, clock, expected) in [
        (60, vec![of_webhook.clone()], Clock::Creation, None),
        (60, vec![of_webhook.clone()], Clock::LastResume, Some(60)),
        (60, vec![of_webhook.clone(), of_user], Clock::Creation, Some(60)),
        // Nobody knows who gave it, or somebody else gave it.
        (60, vec![], Clock::Creation, Some(60)),
        (61, vec![of_webhook], Clock::Creation, Some(61)),
    ] {
        let job = labelled(&json!({DEADLINE: deadline}), QUEUE_LABEL);
        let filled = fill_in(&job, &limits, clock, || managers.clone());
        let after = Field::Deadline.of_job(&patched(&job, &filled.patch));
        assert_eq!(after, expected, "{deadline}, {managers:?}, {clock:?}");
        assert_eq!(filled.warnings.is_empty(), expected.is_some(), "{:?}", filled.warnings);
    }
}

#[test]
fn an_annotation_that_is_no_default_is_told_of_and_has_no_effect() {
    for text in ["1h", "-1", " 5", "2147483648", "1.5", "五"] {
        let namespace = annotated([text, ""], ["", ""]);
        let limits = limits([Some(9), None, None], namespace.as_ref());
        let (job, warnings) = filled(&testing::job(&json!({})), &limits, Clock::Creation);
        assert_eq!(Field::Ttl.of_job(&job), Some(9), "{text}");
        let expected = format!(
            "the annotation lifecycle.trainjob.dev/default-ttl-seconds-after-finished of the namespace \
             \"team\" is {text:?}, expected a whole number of seconds between 0 and 2147483647: it has no \
             effect"
        );
        assert_eq!(warnings.first(), Some(&expected), "{text}");
        assert_eq!(create(&job, &limits, Clock::Creation), [], "{text}");
    }
}

#[test]
fn an_annotation_that_is_no_maximum_refuses_every_new_job_and_every_raise() {
    let namespace = annotated(["5", ""], ["", "0"]);
    let limits = limits([None, None, Some(90)], namespace.as_ref());
    let expected = "spec.activeDeadlineSeconds: Forbidden: the annotation \
                    lifecycle.trainjob.dev/maximum-active-deadline-seconds of the namespace \"team\" is \"0\", \
                    expected a whole number of seconds between 1 and 2147483647: nothing is admitted before \
                    whoever administers the namespace has corrected it";
    let jobs = [json!({}), json!({DEADLINE: 5})].map(|spec| testing::job(&spec));
    for job in &jobs {
        let (job, _) = filled(job, &limits, Clock::Creation);
        assert_eq!(texts(&create(&job, &limits, Clock::Creation)), [expected]);
        // What can be told is told.
        assert_eq!(Field::Ttl.of_job(&job), Some(5));
    }
    let [without, with] = jobs;
    assert_eq!(texts(&update(&with, &without, &limits)), [expected]);
    assert_eq!(texts(&update(&without, &with, &limits)), [""; 0]);
}

#[test]
fn no_more_of_an_annotation_is_repeated_than_shows_what_it_is() {
    let long = "9".repeat(200_000);
    let namespace = annotated([&long, ""], ["", ""]).unwrap();
    assert_eq!(namespace.ttl.default, Some(Err("9".repeat(SHOWN))));
}

#[test]
fn a_new_job_is_refused_for_more_than_the_lower_maximum_and_for_none() {
    let namespace = annotated(["", "50"], ["", "500"]);
    let limits = limits([None, Some(40), Some(900)], namespace.as_ref());
    let ttl = "expected at most 40, the maximum of the cluster (setting lifecycle.maximumTTLSecondsAfterFinished)";
    let deadline = "expected at most 500, the maximum of the namespace \"team\" (annotation \
                    lifecycle.trainjob.dev/maximum-active-deadline-seconds)";
    for (job, clock, expected) in [
        (testing::job(&json!({TTL: 40, DEADLINE: 500})), Clock::Creation, vec![]),
        (
            testing::job(&json!({TTL: 41, DEADLINE: 501})),
            Clock::Creation,
            vec![
                format!("spec.activeDeadlineSeconds: Invalid value: 501: {deadline}"),
                format!("spec.ttlSecondsAfterFinished: Invalid value: 41: {ttl}"),
            ],
        ),
        // They have been given theirs, unless somebody took them away.
        (
            testing::job(&json!({"suspend": true})),
            Clock::LastResume,
            vec![
                format!("spec.activeDeadlineSeconds: Required value: {deadline}"),
                format!("spec.ttlSecondsAfterFinished: Required value: {ttl}"),
            ],
        ),
        (
            testing::job(&json!({"suspend": true, TTL: 0})),
            Clock::Creation,
            vec![format!(
                "spec.activeDeadlineSeconds: Required value: {deadline}; there is no default, because the \
                 TrainJob is suspended and the time until it starts counts"
            )],
        ),
        (labelled(&json!({TTL: 41}), MULTIKUEUE_ORIGIN_LABEL), Clock::Creation, vec![]),
    ] {
        assert_eq!(texts(&create(&job, &limits, clock)), expected, "{job:?}");
    }
}

#[test]
fn an_update_is_refused_only_if_it_raises_a_field_beyond_the_maximum() {
    let namespace = annotated(["", "50"], ["", "50"]);
    let limits = limits([None; 3], namespace.as_ref());
    for (old, new, is_refused) in [
        (json!(10), json!(50), false),
        (json!(10), json!(51), true),
        (json!(10), json!(null), true),
        // Stored before there was a maximum.
        (json!(90), json!(90), false),
        (json!(90), json!(80), false),
        (json!(90), json!(91), true),
        (json!(null), json!(null), false),
        (json!(null), json!(90), false),
        // Out of range, which counts as unset.
        (json!(-1), json!(90), false),
        (json!(-1), json!(null), false),
    ] {
        for field in [TTL, DEADLINE] {
            let job = |value: &Value| testing::job(&json!({field: value}));
            let errors = update(&job(&old), &job(&new), &limits);
            assert_eq!(
                errors.len(),
                usize::from(is_refused),
                "{field}: {old} to {new}: {errors:?}"
            );
        }
    }
}

#[test]
fn a_namespace_without_the_annotations_has_no_limits() {
    assert_eq!(annotated(["", ""], ["", ""]), None);
    let other = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    assert_eq!(NamespaceLimits::of(&other), None);
    assert!(!Limits::default().concern_ttl() && !Limits::default().concern_deadline());
}

/// A number as text, or an annotation that is not there.
fn annotation() -> impl Strategy<Value = String> {
    option::of(1..100_i64).prop_map(|it| it.map_or_else(String::new, |seconds| seconds.to_string()))
}

prop_compose! {
    fn any_limits()(
        cluster in [option::of(0..100_i64), option::of(0..100_i64), option::of(1..100_i64)],
        texts in [annotation(), annotation(), annotation(), annotation()],
    ) -> (ClusterLimits, Option<NamespaceLimits>) {
        let [a, b, c, d] = &texts;
        (limits(cluster, None).cluster, annotated([a, b], [c, d]))
    }
}

prop_compose! {
    fn any_job()(
        ttl in option::of(0..200_i64),
        deadline in option::of(1..200_i64),
        suspend in any::<bool>(),
        label in option::of(prop_oneof![Just(QUEUE_LABEL), Just(MULTIKUEUE_ORIGIN_LABEL)]),
    ) -> TrainJob {
        let spec = json!({TTL: ttl, DEADLINE: deadline, "suspend": suspend});
        label.map_or_else(|| testing::job(&spec), |label| labelled(&spec, label))
    }
}

fn any_clock() -> impl Strategy<Value = Clock> {
    prop_oneof![Just(Clock::Creation), Just(Clock::LastResume)]
}

proptest! {
    #[test]
    fn what_a_job_gets_is_never_refused_and_what_it_has_never_changes(
        (cluster, namespace) in any_limits(), job in any_job(), clock in any_clock(),
    ) {
        let limits = Limits { cluster, namespace: "team", annotated: namespace.as_ref() };
        let (after, _) = filled(&job, &limits, clock);
        let refused = create(&after, &limits, clock);
        for field in Field::ALL {
            let (given, left) = (field.of_job(&job), field.of_job(&after));
            prop_assert!(given.is_none() || given == left);
            let error = refused.iter().find(|error| error.path == field.path());
            let is_given = given.is_none() && left.is_some();
            prop_assert!(!is_given || error.is_none(), "{error:?}");
            // Nobody escapes a maximum by leaving the field out, or by waiting.
            let maximum = limits.maximum_of(field).unwrap();
            let is_beyond = maximum.is_some_and(|most| left.is_none_or(|left| left > most.seconds));
            prop_assert_eq!(error.is_some(), is_beyond && !is_copy(&job));
        }
    }

    #[test]
    fn what_is_given_once_is_not_given_again(
        (cluster, namespace) in any_limits(), job in any_job(), clock in any_clock(),
    ) {
        let limits = Limits { cluster, namespace: "team", annotated: namespace.as_ref() };
        let (once, _) = filled(&job, &limits, clock);
        prop_assert_eq!(fill_in(&once, &limits, clock, nobody), Filled::default());
    }

    #[test]
    fn lowering_is_never_refused(
        (cluster, namespace) in any_limits(), job in any_job(), by in 0..50_i64,
    ) {
        let limits = Limits { cluster, namespace: "team", annotated: namespace.as_ref() };
        let mut lower = job.clone();
        let deadline = job.spec.active_deadline_seconds;
        lower.spec.active_deadline_seconds = deadline.map(|seconds| (seconds - by).max(1));
        lower.spec.ttl_seconds_after_finished.get_or_insert(0);
        let ttl = &mut lower.spec.ttl_seconds_after_finished;
        *ttl = ttl.map(|seconds| (i64::from(seconds) - by).max(0).try_into().unwrap());
        prop_assert_eq!(update(&job, &lower, &limits), []);
    }

    #[test]
    fn without_limits_nothing_is_given_and_nothing_refused(
        job in any_job(), other in any_job(), clock in any_clock(),
    ) {
        let limits = Limits::default();
        prop_assert_eq!(fill_in(&job, &limits, clock, nobody), Filled::default());
        prop_assert_eq!(create(&job, &limits, clock), []);
        prop_assert_eq!(update(&job, &other, &limits), []);
    }
}
