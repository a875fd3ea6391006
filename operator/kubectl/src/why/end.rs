//! Jobs that have ended, or that are not the operator's to end.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use trainjob_api::{
    conditions::{COMPLETE, FAILED},
    constants::MANAGED_BY_MULTIKUEUE,
    time::Timestamp,
};
use trainjob_core::facts::Outcome;

use super::{
    answer::{Cause, Said},
    release,
    scene::Scene,
    stay::stay,
    words,
};

/// The finalizer of an object that goes after what it owns.
const FOREGROUND: &str = "foregroundDeletion";

/// Another controller manages it.
#[must_use]
pub fn managed_elsewhere(scene: &Scene) -> Option<Said> {
    if !scene.facts.managed_elsewhere {
        return None;
    }
    let manager = scene.job.spec.managed_by.as_deref().unwrap_or_default();
    let mut because = vec![
        "Its spec.managedBy names that controller, so the operator never touches it, unless lifecycle.ttlForManagedElsewhere is true: then its TTL deletes it after its end.".to_owned(),
    ];
    let next = if manager == MANAGED_BY_MULTIKUEUE {
        because.push("MultiKueue runs it in another cluster and mirrors its status.".to_owned());
        format!(
            "See what Kueue says of it: kubectl describe workloads {} --selector kueue.x-k8s.io/job-uid={}",
            words::in_namespace(scene),
            scene.facts.uid
        )
    } else {
        format!("Ask those who run {manager}.")
    };
    because
        .extend(scene.conditions().last().map(|last| format!("Its status says {}.", told(last))));
    Some(Said {
        cause: Cause::ManagedElsewhere,
        summary: format!("is managed by another controller, {manager}"),
        because,
        next: vec![next],
    })
}

fn told(condition: &Condition) -> String {
    let Condition { type_, status, reason, message, .. } = condition;
    format!("{type_}={status} ({reason}): {}", words::quoted(message))
}

/// It is being deleted, and something keeps it.
#[must_use]
pub fn deleting(scene: &Scene) -> Option<Said> {
    let metadata = &scene.job.metadata;
    let since = Timestamp::from(metadata.deletion_timestamp.as_ref()?);
    let finalizers: Vec<&String> = metadata.finalizers.iter().flatten().collect();
    let mut because: Vec<String> = finalizers
        .iter()
        .map(|finalizer| match finalizer.as_str() {
            FOREGROUND => "It goes after everything that it owns.".to_owned(),
            other => format!("Its finalizer {other} keeps it until a program removes that."),
        })
        .collect();
    because.extend(release::left(scene));
    let mut next = Vec::new();
    if finalizers.iter().any(|finalizer| *finalizer != FOREGROUND) {
        next.push(format!(
            "Find out which program has put the finalizer there, and why it does not remove it: kubectl get trainjob {} --output yaml",
            words::name_and_namespace(scene)
        ));
    }
    next.extend(release::advice(scene));
    if next.is_empty() {
        next.push(format!(
            "Wait: this takes seconds. If it stays, look at what it owns: kubectl get jobsets,jobs,pods {} --selector {}",
            words::in_namespace(scene),
            words::selector(scene)
        ));
    }
    let summary = format!("is being deleted since {since} and is still there");
    Some(Said { cause: Cause::Deleting, summary, because, next })
}

/// It has finished, and stays until its TTL has passed, or for ever.
#[must_use]
pub fn finished(scene: &Scene) -> Option<Said> {
    let finished = scene.facts.finished?;
    let at = finished.at;
    let kind = if finished.outcome == Outcome::Complete { COMPLETE } else { FAILED };
    let condition = scene.holds(kind);
    let summary = match finished.outcome {
        Outcome::Complete => format!("is complete since {at}"),
        Outcome::DeadlineExceeded => {
            let free = if scene.is_idle() { ", and holds nothing any more" } else { "" };
            format!("was stopped by its deadline at {at}{free}")
        }
        Outcome::Failed => {
            let reason = condition.map(|condition| condition.reason.as_str()).unwrap_or_default();
            format!("has failed at {at} ({reason})")
        }
    };
    let message = condition.map(|condition| words::quoted(&condition.message));
    let message = message.filter(|message| !message.is_empty());
    let mut because: Vec<String> =
        message.map(|message| format!("Its status says: {message}.")).into_iter().collect();
    because.extend(scene.told("PodOOMKilled").map(|note| format!("An event says: {note}.")));
    let (cause, stays, mut next) = stay(scene);
    because.extend(stays);
    if finished.outcome == Outcome::Failed && !scene.labelled().is_empty() {
        let logs = format!(
            "Read the end of its logs: kubectl logs {} --selector {} --tail 50 --prefix",
            words::in_namespace(scene),
            words::selector(scene)
        );
        next.insert(0, logs);
    }
    Some(Said { cause, summary, because, next })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_api::lifecycle::v1alpha1::HOLD_ANNOTATION;

    use super::*;
    use crate::why::{
        scene::Seen,
        testing::{condition, scene},
    };

    fn page(said: &Said) -> String {
        format!("{}\n{}\n{}", said.summary, said.because.join("\n"), said.next.join("\n"))
    }

    fn assert_contains(page: &str, texts: &[&str]) {
        for text in texts {
            assert!(page.contains(text), "{text:?} is not in\n{page}");
        }
    }

    fn ended(metadata: &Value, spec: &Value, kind: &str, reason: &str) -> Scene {
        scene(metadata, spec, &json!([condition(kind, reason, "all said.")]))
    }

    #[test]
    fn a_finished_job_says_how_it_ended() {
        let none = json!({});
        for (kind, reason, texts) in [
            (
                "Complete",
                "Done",
                &["is complete since 1970-01-01T00:10:00Z", "Its status says: all said."][..],
            ),
            ("Failed", "FailedJobs", &["has failed at 1970-01-01T00:10:00Z (FailedJobs)"]),
            (
                "Failed",
                "DeadlineExceeded",
                &[
                    "was stopped by its deadline at 1970-01-01T00:10:00Z, and holds nothing any more",
                ],
            ),
        ] {
            assert_contains(&page(&finished(&ended(&none, &none, kind, reason)).unwrap()), texts);
        }
    }

    #[test]
    fn of_pods_that_could_not_be_read_nobody_says_that_they_are_gone() {
        let mut blind = ended(&json!({}), &json!({}), "Failed", "DeadlineExceeded");
        blind.pods = Seen::Unknown("Pods are forbidden.".to_owned());
        let said = finished(&blind).unwrap();
        assert_eq!(said.summary, "was stopped by its deadline at 1970-01-01T00:10:00Z");
    }

    #[test]
    fn a_finished_job_says_how_long_it_stays() {
        let none = json!({});
        let ttl = |seconds: i64| json!({"ttlSecondsAfterFinished": seconds});
        let hold = json!({"annotations": {HOLD_ANNOTATION: "1970-01-01T03:00:00Z"}});
        let copy = json!({"labels": {"kueue.x-k8s.io/multikueue-origin": "m"}});
        let delete = "kubectl delete trainjob llm --namespace team";
        for (metadata, spec, cause, texts) in [
            (
                &none,
                ttl(6_600),
                Cause::TtlRunning,
                &["deletes it at 1970-01-01T02:00:00Z, in 1h.", "hold-until=TIME", delete][..],
            ),
            (
                &hold,
                ttl(60),
                Cause::Held,
                &["keeps it until 1970-01-01T03:00:00Z, for 2h", "hold-until-"],
            ),
            (
                &none,
                ttl(60),
                Cause::TtlPassed,
                &["passed at 1970-01-01T00:11:00Z", "whether the operator runs"],
            ),
            (&none, json!({}), Cause::KeptForEver, &["no ttlSecondsAfterFinished", delete]),
            (&none, ttl(-1), Cause::KeptForEver, &["is -1 and counts as unset"]),
            (&copy, ttl(60), Cause::RemoteCopy, &["MultiKueue"]),
        ] {
            let said = finished(&ended(metadata, &spec, "Complete", "Done")).unwrap();
            assert_eq!(said.cause, cause, "{said:?}");
            assert_contains(&page(&said), texts);
        }
    }

    #[test]
    fn a_job_that_was_killed_for_its_memory_says_so() {
        let job = ended(&json!({}), &json!({}), "Failed", "FailedJobs")
            .with_event("PodOOMKilled", "container node of Pod p ran out of memory")
            .with_pod("p", Some("n"), &json!({"phase": "Failed"}));
        let texts = ["container node of Pod p ran out of memory", "kubectl logs --namespace team"];
        assert_contains(&page(&finished(&job).unwrap()), &texts);
    }

    #[test]
    fn a_job_that_is_being_deleted_says_what_keeps_it() {
        let going = |finalizers: Value| json!({"deletionTimestamp": "1970-01-01T00:50:00Z", "finalizers": finalizers});
        let status = json!({"phase": "Running", "startTime": "1970-01-01T00:30:00Z"});
        let kept = scene(&going(json!(["example.com/backup"])), &json!({}), &json!([]));
        let waits = scene(&going(json!(["foregroundDeletion"])), &json!({}), &json!([]));
        for (scene, texts) in [
            (
                kept,
                &[
                    "is being deleted since 1970-01-01T00:50:00Z",
                    "Its finalizer example.com/backup keeps it",
                    "kubectl get trainjob llm --namespace team --output yaml",
                ][..],
            ),
            (
                waits.clone().with_pod("p", Some("n1"), &status),
                &[
                    "It goes after everything that it owns.",
                    "Pod p on node n1 since 1970-01-01T00:30:00Z (nobody has deleted it yet): 4 GPUs.",
                    "the garbage collector deletes",
                ],
            ),
            (waits, &["kubectl get jobsets,jobs,pods --namespace team"]),
        ] {
            assert_contains(&page(&deleting(&scene).unwrap()), texts);
        }
    }

    #[test]
    fn a_job_of_another_controller_says_whose_it_is() {
        let job = |manager: &str| {
            scene(
                &json!({}),
                &json!({"managedBy": manager}),
                &json!([condition("Suspended", "Suspended", "m")]),
            )
        };
        for (manager, texts) in [
            (
                "kueue.x-k8s.io/multikueue",
                [
                    "MultiKueue runs it in another cluster",
                    "Suspended=True (Suspended): m.",
                    "kueue.x-k8s.io/job-uid=U",
                ],
            ),
            (
                "example.com/other",
                [
                    "managed by another controller, example.com/other",
                    "never touches it, unless lifecycle.ttlForManagedElsewhere is true",
                    "Ask those who run",
                ],
            ),
        ] {
            assert_contains(&page(&managed_elsewhere(&job(manager)).unwrap()), &texts);
        }
    }
}
