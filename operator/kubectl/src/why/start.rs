//! Jobs that have not started.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{ResourceExt as _, api::DynamicObject};
use serde_json::Value;
use trainjob_api::{
    conditions::{self, Reason, SUSPENDED, WAITING},
    jobset::JobSetView,
    time::Timestamp,
};

use super::{
    answer::{Cause, Said},
    scene::{CREATION_FAILED, Scene, Seen},
    words,
};
use crate::{duration::brief, phase};

/// The operator makes a JobSet within this many seconds of the creation of a job.
const PROMPTLY: i64 = 10;

/// Its condition `Waiting` says what is missing.
#[must_use]
pub fn waiting(scene: &Scene) -> Option<Said> {
    let Condition { reason, message, last_transition_time, .. } = scene.holds(WAITING)?;
    let since = Timestamp::from(last_transition_time);
    let mut because = vec![format!("Its status says since {since}: {}.", words::quoted(message))];
    because.extend(words::deadline(scene));
    let summary = format!("waits ({reason})");
    Some(Said { cause: Cause::Waiting, summary, because, next: remedies(scene, reason) })
}

fn remedies(scene: &Scene, reason: &str) -> Vec<String> {
    let namespace = words::in_namespace(scene);
    let is = |known: Reason| reason == known.as_str();
    let remedy = if is(Reason::RuntimeNotFound) {
        format!(
            "Create the runtime, and the job starts by itself; or create the job again with one that exists: kubectl get clustertrainingruntimes; kubectl get trainingruntimes {namespace}"
        )
    } else if is(Reason::JobSetTerminating) {
        words::until_gone(scene, "the JobSet of an earlier job of this name")
    } else if is(Reason::PodGroupNotServed) {
        "Ask an administrator to install the scheduler that the runtime wants, or use another runtime.".to_owned()
    } else if is(Reason::BuildFailed) {
        "Correct the field that the message names, in the runtime or in a new TrainJob.".to_owned()
    } else {
        "Delete or rename the object that the message names and that belongs to somebody else, or create the job under another name.".to_owned()
    };
    vec![remedy]
}

/// It is suspended in a queue of Kueue.
#[must_use]
pub fn queued(scene: &Scene) -> Option<Said> {
    let queue = phase::queue(&scene.job).filter(|_| scene.facts.suspend)?;
    let namespace = words::in_namespace(scene);
    let mut next =
        vec![format!("Look at the queue: kubectl describe localqueue {queue} {namespace}")];
    let workload = scene.workloads.there().map(|workloads| workloads.last());
    let mut because = Vec::new();
    if let Some(Some(workload)) = workload {
        because.extend(said_by(workload));
        let name = workload.name_any();
        next.push(format!("See all that Kueue says: kubectl describe workload {name} {namespace}"));
    } else if workload.is_some() {
        because.push("Kueue has made no Workload for it.".to_owned());
        next.push("Ask an administrator whether Kueue runs and manages TrainJobs.".to_owned());
    }
    because.extend(words::deadline(scene));
    let summary = format!("waits in the queue {queue}: Kueue has not resumed it");
    Some(Said { cause: Cause::QueuedByKueue, summary, because, next })
}

/// What a Workload says of the wait.
fn said_by(workload: &DynamicObject) -> Vec<String> {
    let name = workload.name_any();
    let list = workload.data.pointer("/status/conditions").cloned().unwrap_or_default();
    let list: Vec<Condition> = serde_json::from_value(list).unwrap_or_default();
    let mut said = Vec::new();
    if workload.data.pointer("/spec/active") == Some(&Value::Bool(false)) {
        said.push(format!("Kueue has deactivated its Workload {name}."));
    }
    if let Some(evicted) = conditions::find_true(&list, "Evicted") {
        let (at, why) =
            (Timestamp::from(&evicted.last_transition_time), words::quoted(&evicted.message));
        said.push(format!("Kueue has evicted it at {at} ({}): {why}.", evicted.reason));
    }
    let pending = conditions::find(&list, "QuotaReserved").filter(|it| it.status != "True");
    let admitted = conditions::find(&list, "Admitted");
    said.push(match (pending, admitted) {
        (Some(pending), _) => {
            format!("Kueue says of its Workload {name}: {}.", words::quoted(&pending.message))
        }
        (None, Some(admitted)) if admitted.status == "True" => {
            "Kueue has admitted it and is about to resume it.".to_owned()
        }
        (None, Some(admitted)) => format!(
            "There is quota for its Workload {name}, but it is not admitted: {}.",
            words::quoted(&admitted.message)
        ),
        (None, None) => format!("Kueue has not decided about its Workload {name} yet."),
    });
    said
}

/// It is suspended, and no queue would resume it.
#[must_use]
pub fn suspended(scene: &Scene) -> Option<Said> {
    if !scene.facts.suspend {
        return None;
    }
    let since = scene.holds(SUSPENDED).map(|condition| &condition.last_transition_time);
    let since = since.map_or_else(String::new, |at| format!(" since {}", Timestamp::from(at)));
    let mut because = vec![
        "Its spec.suspend is true, and it has no queue of Kueue that would resume it.".to_owned(),
    ];
    because.extend(words::deadline(scene));
    let resume = format!(
        "Resume it: kubectl patch trainjob {} --type merge --patch '{{\"spec\": {{\"suspend\": false}}}}'",
        words::name_and_namespace(scene)
    );
    let summary = format!("is suspended{since}");
    Some(Said { cause: Cause::Suspended, summary, because, next: vec![resume] })
}

/// What it needs cannot be made.
#[must_use]
pub fn creation_failed(scene: &Scene) -> Option<Said> {
    if scene.job_set.there().is_some() || !scene.is_idle() || scene.has_ended_pods() {
        return None;
    }
    let note = scene.told(CREATION_FAILED)?;
    let mut because = vec![format!("An event says: {}.", words::quoted(note))];
    because.extend(words::deadline(scene));
    let next =
        vec!["Correct what the message names. The operator tries again by itself, at least once a minute.".to_owned()];
    let summary = "has not started: what it needs cannot be created".to_owned();
    Some(Said { cause: Cause::CreationFailed, summary, because, next })
}

/// Nothing was made for it, or nothing of what was made has Pods that run.
#[must_use]
pub fn not_started(scene: &Scene) -> Option<Said> {
    if !scene.is_idle() {
        return None;
    }
    let (cause, summary, why, next) = match &scene.job_set {
        Seen::There(job_set) => without_pods(scene, job_set),
        Seen::Absent => without_job_set(scene),
        Seen::Unknown(_) => {
            let otherwise = "The operator makes a JobSet of it, and JobSet's controller the Pods.";
            let why = refused(scene).or_else(|| ended(scene));
            let why = why.unwrap_or_else(|| otherwise.to_owned());
            let next = "Ask somebody who may read JobSets: kubectl describe jobset";
            let next = format!("{next} {}", words::name_and_namespace(scene));
            let had = scene.has_ended_pods();
            let summary = if had { "has no Pod that runs" } else { "has no Pods yet" };
            (Cause::NoPods, summary, why, next)
        }
    };
    let because = std::iter::once(why).chain(words::deadline(scene)).collect();
    Some(Said { cause, summary: summary.to_owned(), because, next: vec![next] })
}

/// Cause, summary, what shows it and what to do.
type Parts = (Cause, &'static str, String, String);

fn without_job_set(scene: &Scene) -> Parts {
    let age = scene.now.since(scene.facts.created_at).max(0);
    let why = format!(
        "It has no JobSet and no condition, {} after its creation.",
        brief(age.unsigned_abs())
    );
    let next = if age <= PROMPTLY {
        "Wait some seconds and ask again."
    } else {
        "Ask an administrator whether the operator runs: kubectl get lease trainer.kubeflow.org --namespace kubeflow-system"
    };
    let summary = if scene.has_ended_pods() {
        "has no JobSet, and no Pod that runs"
    } else {
        "has not been started by the operator yet"
    };
    (Cause::NotStarted, summary, why, next.to_owned())
}

fn without_pods(scene: &Scene, job_set: &JobSetView) -> Parts {
    let why = match (refused(scene), ended(scene)) {
        (Some(refused), _) => refused,
        (None, _) if job_set.spec.suspend => "Its JobSet is still suspended.".to_owned(),
        (None, Some(ended)) => ended,
        (None, None) => {
            "JobSet's controller has not made Jobs and Pods from its JobSet.".to_owned()
        }
    };
    let look =
        format!("Look at its JobSet: kubectl describe jobset {}", words::name_and_namespace(scene));
    let summary = if scene.has_ended_pods() {
        "has a JobSet, but no Pod that runs"
    } else {
        "has a JobSet, but no Pods"
    };
    (Cause::NoPods, summary, why, look)
}

/// What the Job controller says of Pods that it cannot make.
fn refused(scene: &Scene) -> Option<String> {
    let note = scene.told("FailedCreate").map(words::quoted)?;
    Some(format!("The Job controller says: {note}."))
}

/// That there were Pods, if there were.
fn ended(scene: &Scene) -> Option<String> {
    let said = "Every Pod of it has ended, and no other Pod and no end of it has followed yet.";
    scene.has_ended_pods().then(|| said.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::why::testing::{condition, scene};

    fn assert_contains(said: Option<Said>, texts: &[&str]) {
        let said = said.unwrap();
        let page =
            format!("{}\n{}\n{}", said.summary, said.because.join("\n"), said.next.join("\n"));
        for text in texts {
            assert!(page.contains(text), "{text:?} is not in\n{page}");
        }
    }

    #[test]
    fn each_reason_to_wait_has_its_remedy() {
        for (reason, remedy) in [
            (Reason::RuntimeNotFound, "kubectl get trainingruntimes --namespace team"),
            (Reason::JobSetTerminating, "kubectl get jobset llm --namespace team"),
            (Reason::PodGroupNotServed, "install the scheduler"),
            (Reason::BuildFailed, "Correct the field"),
            (Reason::JobSetConflict, "Delete or rename"),
            (Reason::NameConflict, "Delete or rename"),
        ] {
            let list = json!([condition("Waiting", reason.as_str(), "the message.")]);
            let job = scene(&json!({}), &json!({"activeDeadlineSeconds": 7_200}), &list);
            let summary = format!("waits ({})", reason.as_str());
            let since = "Its status says since 1970-01-01T00:10:00Z: the message.";
            assert_contains(waiting(&job), &[&summary, since, "Its deadline fails it", remedy]);
        }
    }

    #[test]
    fn a_queued_job_says_what_kueue_says() {
        let queue = json!({"labels": {"kueue.x-k8s.io/queue-name": "gpu"}});
        let job = || scene(&queue, &json!({"suspend": true}), &json!([]));
        let not = |kind: &str, reason: &str, message: &str| {
            let mut condition = condition(kind, reason, message);
            condition["status"] = json!("False");
            condition
        };
        let pending =
            not("QuotaReserved", "Pending", "insufficient unused quota for nvidia.com/gpu");
        let evicted = condition("Evicted", "Preempted", "to make room for a higher priority");
        let reserved = condition("QuotaReserved", "QuotaReserved", "");
        for (scene, texts) in [
            (
                job(),
                &[
                    "waits in the queue gpu",
                    "made no Workload",
                    "kubectl describe localqueue gpu --namespace team",
                ][..],
            ),
            (
                job().with_workload(true, &json!([pending.clone()])),
                &[
                    "Workload trainjob-llm-1: insufficient unused quota",
                    "kubectl describe workload trainjob-llm-1",
                ],
            ),
            (
                job().with_workload(false, &json!([pending, evicted])),
                &[
                    "has deactivated",
                    "has evicted it at 1970-01-01T00:10:00Z (Preempted): to make room",
                ],
            ),
            (
                job().with_workload(
                    true,
                    &json!([reserved.clone(), condition("Admitted", "Admitted", "")]),
                ),
                &["about to resume it"],
            ),
            (
                job().with_workload(
                    true,
                    &json!([reserved, not("Admitted", "NoChecks", "check a is pending")]),
                ),
                &["not admitted: check a is pending."],
            ),
            (job().with_workload(true, &json!([])), &["has not decided"]),
        ] {
            assert_contains(queued(&scene), texts);
        }
    }

    #[test]
    fn a_job_that_is_suspended_says_how_to_resume_it() {
        let list = json!([condition("Suspended", "Suspended", "")]);
        let job = scene(&json!({}), &json!({"suspend": true}), &list);
        let texts = [
            "is suspended since 1970-01-01T00:10:00Z",
            "kubectl patch trainjob llm --namespace team",
        ];
        assert_contains(suspended(&job), &texts);
    }

    #[test]
    fn a_refused_creation_says_what_was_refused() {
        let job = scene(&json!({}), &json!({}), &json!([]));
        let note = "TrainJob resources reconciliation failed: unknown field";
        let told = job.with_event("TrainJobResourcesCreationFailed", note);
        assert_contains(
            creation_failed(&told),
            &["An event says: TrainJob resources", "tries again"],
        );
        let runs = told.with_pod("p", None, &json!({"phase": "Pending"}));
        assert_eq!(creation_failed(&runs), None);
    }

    #[test]
    fn a_job_of_which_every_pod_has_ended_says_what_the_next_one_waits_for() {
        let ended = || {
            let job = scene(&json!({}), &json!({}), &json!([]));
            job.with_pod("llm-init-0-0", Some("n"), &json!({"phase": "Succeeded"}))
        };
        let mut blind = ended();
        blind.job_set = Seen::Unknown("forbidden".to_owned());
        let job_set = || ended().with_job_set(&json!({}));
        for (scene, texts) in [
            (job_set(), &["has a JobSet, but no Pod that runs", "Every Pod of it has ended"][..]),
            (
                job_set().with_event("FailedCreate", "exceeded quota: gpus"),
                &["The Job controller says: exceeded quota: gpus."],
            ),
            (ended(), &["has no JobSet, and no Pod that runs"]),
            (blind.clone(), &["has no Pod that runs", "Every Pod of it has ended"]),
            (
                blind.with_event("FailedCreate", "exceeded quota: gpus"),
                &["has no Pod that runs", "The Job controller says: exceeded quota: gpus."],
            ),
        ] {
            assert_contains(not_started(&scene), texts);
            assert_eq!(creation_failed(&scene.with_event(CREATION_FAILED, "m")), None);
        }
        let runs = job_set().with_pod("llm-node-0-0", Some("n"), &json!({"phase": "Running"}));
        assert_eq!(not_started(&runs), None);
    }

    #[test]
    fn of_pods_that_could_not_be_read_nothing_is_concluded() {
        let mut blind = scene(&json!({}), &json!({}), &json!([])).with_event(CREATION_FAILED, "m");
        blind.pods = Seen::Unknown("forbidden".to_owned());
        assert_eq!((creation_failed(&blind), not_started(&blind)), (None, None));
    }

    #[test]
    fn a_job_without_pods_says_what_is_missing() {
        let job = || scene(&json!({}), &json!({}), &json!([]));
        let mut young = job();
        young.now = Timestamp(5);
        for (scene, texts) in [
            (
                job(),
                &["no JobSet and no condition, 1h after its creation", "kubectl get lease"][..],
            ),
            (young, &["5s after its creation", "Wait some seconds"]),
            (
                job().with_job_set(&json!({})),
                &[
                    "has a JobSet, but no Pods",
                    "JobSet's controller",
                    "kubectl describe jobset llm",
                ],
            ),
            (job().with_job_set(&json!({"spec": {"suspend": true}})), &["still suspended"]),
            (
                job().with_job_set(&json!({})).with_event("FailedCreate", "exceeded quota: gpus"),
                &["The Job controller says: exceeded quota: gpus."],
            ),
        ] {
            assert_contains(not_started(&scene), texts);
        }
        let mut blind = job();
        blind.job_set = Seen::Unknown("forbidden".to_owned());
        assert_contains(not_started(&blind), &["has no Pods yet", "kubectl describe jobset llm"]);
    }
}
