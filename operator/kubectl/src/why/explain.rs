//! The causes, in the order in which they win.

use super::{
    answer::{Answer, Cause, Said},
    conflict, end, pods, release,
    scene::Scene,
    start, words,
};
use crate::phase::Phase;

/// Says why a TrainJob is as it is.
#[must_use]
pub fn explain(scene: &Scene) -> Answer {
    let rules: [fn(&Scene) -> Option<Said>; 12] = [
        end::managed_elsewhere,
        end::deleting,
        release::not_released,
        end::finished,
        start::waiting,
        conflict::job_set_conflict,
        start::queued,
        start::suspended,
        start::creation_failed,
        pods::unknown,
        pods::not_running,
        start::not_started,
    ];
    let said = rules.into_iter().find_map(|rule| rule(scene)).unwrap_or_else(|| running(scene));
    // Most answers do not depend on it, and most users may not read it.
    let depends =
        matches!(said.cause, Cause::Deleting | Cause::NotReleased | Cause::NoPods | Cause::Unknown);
    let job_set = scene.job_set.unread().filter(|_| depends).map(str::to_owned);
    // Whoever looks for its Pods by their label finds those of a foreign JobSet.
    let is_said = matches!(said.cause, Cause::ManagedElsewhere | Cause::Waiting);
    let foreign = conflict::note(scene).filter(|_| !is_said);
    let unread = scene.unread.iter().cloned().chain(job_set);
    let key = scene.key();
    let phase = Phase::of(&scene.job, &scene.facts, !scene.running().is_empty());
    Answer {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        phase,
        cause: said.cause,
        summary: format!("TrainJob {} {}.", key.name, said.summary),
        because: said.because.into_iter().chain(foreign).chain(unread).collect(),
        next: said.next,
    }
}

/// Nothing keeps it from running.
fn running(scene: &Scene) -> Said {
    let running = scene.running();
    let (pods, gpus) = (words::count(running.len(), "Pod"), words::gpus(&running));
    let next = vec![format!(
        "See what it does: kubectl logs {} --selector {} --tail 20 --prefix",
        words::in_namespace(scene),
        words::selector(scene)
    )];
    Said {
        cause: Cause::Running,
        summary: format!("runs: {pods} with {gpus}"),
        because: words::deadline(scene).into_iter().collect(),
        next,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::why::{
        scene::{CREATION_FAILED, Seen},
        testing::{condition, scene},
    };

    /// Sees that an answer has this cause, and that it contains these texts.
    fn assert_says(scene: &Scene, cause: Cause, texts: &[&str]) {
        let answer = explain(scene);
        assert_eq!(answer.cause, cause, "{answer}");
        let page = answer.to_string();
        for text in texts {
            assert!(page.contains(text), "{text:?} is not in\n{page}");
        }
    }

    #[test]
    fn of_several_causes_the_first_one_wins() {
        let (none, list) = (json!({}), json!([]));
        let going = json!({"deletionTimestamp": "1970-01-01T00:10:00Z"});
        let suspend = json!({"suspend": true});
        let elsewhere = json!({"managedBy": "kueue.x-k8s.io/multikueue", "suspend": true});
        let waiting = json!([condition("Waiting", "RuntimeNotFound", "no runtime r")]);
        let queue = json!({"labels": {"kueue.x-k8s.io/queue-name": "gpu"}});
        for (metadata, spec, conditions, expected) in [
            (&going, &elsewhere, &waiting, Cause::ManagedElsewhere),
            (&going, &suspend, &waiting, Cause::Deleting),
            (&none, &suspend, &waiting, Cause::Waiting),
            (&queue, &suspend, &list, Cause::QueuedByKueue),
            (&none, &suspend, &list, Cause::Suspended),
            (&queue, &none, &list, Cause::NotStarted),
        ] {
            assert_says(&scene(metadata, spec, conditions), expected, &[]);
        }
    }

    #[test]
    fn a_job_that_runs_says_with_what_and_until_when() {
        let job = scene(&json!({}), &json!({"activeDeadlineSeconds": 7_200}), &json!([]));
        let running = job
            .with_job_set(&json!({}))
            .with_pod("llm-node-0-0", Some("n1"), &json!({"phase": "Running"}))
            .with_pod("llm-node-0-1", Some("n2"), &json!({"phase": "Running"}))
            .with_pod("llm-init-0-0", Some("n2"), &json!({"phase": "Succeeded"}));
        assert_says(
            &running,
            Cause::Running,
            &[
                "TrainJob llm runs: 2 Pods with 8 GPUs.",
                "Its deadline fails it at 1970-01-01T02:00:00Z, in 1h.",
                "kubectl logs --namespace team --selector jobset.sigs.k8s.io/jobset-name=llm",
            ],
        );
    }

    #[test]
    fn pods_of_a_jobset_that_belongs_to_somebody_else_are_not_taken_for_those_of_the_job() {
        let (empty, list) = (json!({}), json!([]));
        let going = json!({"deletionTimestamp": "1970-01-01T00:50:00Z"});
        let exceeded = json!([condition("Failed", "DeadlineExceeded", "m")]);
        for (metadata, conditions, cause, text) in [
            (&empty, &list, Cause::Waiting, "TrainJob llm waits (JobSetConflict)."),
            (&empty, &exceeded, Cause::KeptForEver, "and holds nothing any more."),
            (&going, &list, Cause::Deleting, "jobset-name=llm,jobset.sigs.k8s.io/jobset-uid!=J"),
        ] {
            for phase in ["Running", "Pending", "Succeeded"] {
                let taken = scene(metadata, &empty, conditions)
                    .with_pod("llm-a-0-0", Some("n1"), &json!({"phase": phase}))
                    .with_foreign_job_set(&empty);
                let note = "JobSet team/llm exists and does not belong to this TrainJob.";
                assert_says(&taken, cause, &[text, note]);
                let page = explain(&taken).to_string();
                assert!(!page.contains("llm-a-0-0") && !page.contains("GPU"), "{page}");
            }
        }
    }

    #[test]
    fn what_could_not_be_read_is_said() {
        let mut blind = scene(&json!({}), &json!({"suspend": true}), &json!([]));
        blind.unread = vec!["This answer lacks what the events would tell: forbidden.".to_owned()];
        assert_says(&blind, Cause::Suspended, &["lacks what the events would tell: forbidden."]);
    }

    #[test]
    fn that_a_jobset_could_not_be_read_is_said_where_it_matters() {
        for (spec, cause, is_said) in
            [(json!({}), Cause::NoPods, true), (json!({"suspend": true}), Cause::Suspended, false)]
        {
            let mut blind = scene(&json!({}), &spec, &json!([]));
            blind.job_set = Seen::Unknown("JobSets are forbidden.".to_owned());
            let answer = explain(&blind);
            assert_eq!(answer.cause, cause, "{answer}");
            assert_eq!(answer.to_string().contains("JobSets are forbidden."), is_said, "{answer}");
        }
    }

    #[test]
    fn of_pods_that_could_not_be_read_nobody_says_that_there_are_none() {
        let bare = || scene(&json!({}), &json!({}), &json!([]));
        for (mut blind, texts) in [
            (bare(), &["to run, but whether it does is not known", "kubectl get pods"][..]),
            (bare().with_job_set(&json!({})), &["is not known"]),
            (
                bare().with_event(CREATION_FAILED, "no such field."),
                &["An event says: no such field."],
            ),
        ] {
            blind.pods = Seen::Unknown("Pods are forbidden.".to_owned());
            assert_says(&blind, Cause::Unknown, texts);
        }
    }

    #[test]
    fn a_job_of_which_every_pod_has_ended_does_not_run() {
        let ended = scene(&json!({}), &json!({}), &json!([]))
            .with_job_set(&json!({}))
            .with_pod("llm-dataset-initializer-0-0", Some("n"), &json!({"phase": "Succeeded"}))
            .with_event("FailedCreate", "exceeded quota: gpus");
        let texts = ["no Pod that runs", "The Job controller says: exceeded quota: gpus."];
        assert_says(&ended, Cause::NoPods, &texts);
    }

    #[test]
    fn programs_read_cause_and_sentences() {
        let suspended = scene(&json!({}), &json!({"suspend": true}), &json!([]));
        let answer = serde_json::to_value(explain(&suspended)).unwrap();
        assert_eq!(answer["cause"], "Suspended");
        assert_eq!(answer["phase"], "Suspended");
        assert_eq!(answer["summary"], "TrainJob llm is suspended.");
        assert!(answer["next"][0].as_str().unwrap().contains("\"suspend\": false"));
    }
}
