//! `extend`: more time for a TrainJob.
//!
//! The new deadline is computed from the stored one, so the write is fenced by the UID and the version that it was read
//! from. Whether the cluster lets the field change is for the server to say.

use std::{fmt, io::Write};

use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use trainjob_api::{TrainJob, time::Timestamp};
use trainjob_core::facts::JobFacts;

use crate::{
    access::Access, arguments::ExtendArguments, deadline::Deadline, duration::brief,
    failure::Failure, read,
};

/// As which manager the field is written.
const FIELD_MANAGER: &str = "kubectl-trainjob";

/// How often a write is tried that others come before. The operator writes the status often, and each write is a version.
const ATTEMPTS: usize = 10;

/// What the deadline is to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// So many seconds more than it is.
    By(i64),
    /// So many seconds.
    To(i64),
}

/// A change of a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The stored seconds.
    pub from: i64,
    /// The new ones.
    pub to: i64,
}

/// Why a deadline is not raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Another controller manages the job.
    ManagedElsewhere,
    /// It is being deleted.
    Terminating,
    /// It has finished.
    Finished(Timestamp),
    /// It has no deadline and may run for ever.
    Unlimited,
    /// That is no more than it has.
    NotMore {
        /// The stored seconds.
        stored: i64,
        /// Those that were asked for.
        wished: i64,
    },
    /// There are no so large numbers.
    TooLarge {
        /// The stored seconds.
        stored: i64,
    },
}

/// What `wish` changes in a job.
///
/// # Errors
///
/// The deadline means nothing for the job any more, or would not become longer.
pub fn plan(job: &JobFacts, wish: Wish) -> Result<Change, Refusal> {
    if job.managed_elsewhere {
        return Err(Refusal::ManagedElsewhere);
    }
    if let Some(finished) = job.finished {
        return Err(Refusal::Finished(finished.at));
    }
    if job.terminating {
        return Err(Refusal::Terminating);
    }
    let stored = job.deadline.ok_or(Refusal::Unlimited)?;
    match wish {
        Wish::By(seconds) => {
            let to = stored.checked_add(seconds).ok_or(Refusal::TooLarge { stored })?;
            Ok(Change { from: stored, to })
        }
        Wish::To(wished) if wished > stored => Ok(Change { from: stored, to: wished }),
        Wish::To(wished) => Err(Refusal::NotMore { stored, wished }),
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ManagedElsewhere => f.write_str(
                "another controller manages it (spec.managedBy), so its deadline is not this operator's",
            ),
            Self::Terminating => f.write_str("it is being deleted"),
            Self::Finished(at) => {
                write!(f, "it has finished at {at}; create another TrainJob to train on")
            }
            Self::Unlimited => f.write_str(
                "it has no activeDeadlineSeconds and may run for ever, so there is nothing to extend",
            ),
            Self::NotMore { stored, wished } => write!(
                f,
                "--to: {wished} is not more than its {stored} seconds; give a larger number, or add to them with --by"
            ),
            Self::TooLarge { stored } => write!(
                f,
                "--by: with its {stored} seconds that is more than a deadline can be; give a shorter duration"
            ),
        }
    }
}

/// The write. The server refuses it if the object was changed or made again since.
fn patch(job: &JobFacts, change: Change) -> Value {
    json!({
        "metadata": {"uid": job.uid, "resourceVersion": job.resource_version},
        "spec": {"activeDeadlineSeconds": change.to},
    })
}

/// What has become of a deadline since it was to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    /// It is as it was.
    None,
    /// It is as it was to become: a write has taken effect although its answer says otherwise, as if something on the way
    /// to the server has sent it twice.
    Done,
    /// It is another one, or that of another job.
    Other,
}

fn news(before: &JobFacts, change: Change, now: &JobFacts) -> News {
    if now.uid != before.uid {
        News::Other
    } else if now.deadline == before.deadline {
        News::None
    } else if now.deadline == Some(change.to) {
        News::Done
    } else {
        News::Other
    }
}

/// Raises the deadline, and prints what it was and is.
///
/// # Errors
///
/// See [`Refusal`]; or the API server refuses, which it does where deadlines are immutable, or does not answer.
pub async fn run(
    access: &Access,
    arguments: &ExtendArguments,
    mut out: impl Write,
) -> Result<(), Failure> {
    let wish = match (arguments.by, arguments.to) {
        (Some(seconds), _) => Wish::By(seconds),
        (None, Some(seconds)) => Wish::To(seconds),
        (None, None) => {
            let what = "say by how much, such as --by 2h, or give all seconds with --to".to_owned();
            return Err(Failure::Flag { flag: "--by", what });
        }
    };
    let name = &arguments.name;
    let (stored, change) = write(access, name, wish, arguments.dry_run).await?;
    let Change { from, to } = change;
    let dry = if arguments.dry_run { " (server dry run)" } else { "" };
    writeln!(
        out,
        "trainjob.trainer.kubeflow.org/{name} extended{dry}: activeDeadlineSeconds is {to}, was {from}"
    )?;
    let now = access.now().await;
    if let Some(end) = end_of(Deadline::of(&JobFacts::of(&stored), None, now)) {
        writeln!(out, "{end}")?;
    }
    Ok(())
}

/// When a deadline ends that was raised.
fn end_of(deadline: Deadline) -> Option<String> {
    match deadline {
        Deadline::Running { due, left_seconds, exact } => {
            let at_least = if exact { "" } else { " at the earliest" };
            let left = brief(left_seconds.unsigned_abs());
            Some(format!("Its deadline ends at {due}{at_least}, in {left}."))
        }
        Deadline::DueByCreation { due, .. } => Some(format!(
            "If deadlines count from the creation here (lifecycle.deadlineClock), its deadline has passed at {due} all the same."
        )),
        Deadline::Due { .. } => Some("Its deadline has passed all the same.".to_owned()),
        Deadline::None | Deadline::Stopped | Deadline::Endless => None,
    }
}

/// Reads, decides and writes, again if somebody else has written in between.
async fn write(
    access: &Access,
    name: &str,
    wish: Wish,
    dry_run: bool,
) -> Result<(TrainJob, Change), Failure> {
    let api: Api<TrainJob> = Api::namespaced(access.client.clone(), &access.namespace);
    let field_manager = Some(FIELD_MANAGER.to_owned());
    let how = PatchParams { dry_run, field_manager, ..PatchParams::default() };
    let mut first: Option<(JobFacts, Change)> = None;
    for _ in 0..ATTEMPTS {
        let stored = read::train_job(&access.client, &access.namespace, name).await?;
        let facts = JobFacts::of(&stored);
        match first.as_ref().map(|(before, change)| (news(before, *change, &facts), *change)) {
            Some((News::Done, change)) if !dry_run => return Ok((stored, change)),
            Some((News::Done | News::Other, _)) => break,
            Some((News::None, _)) | None => {}
        }
        let change = plan(&facts, wish)
            .map_err(|refusal| Failure::Nonsense(format!("TrainJob {name}: {refusal}")))?;
        match api.patch(name, &how, &Patch::Merge(patch(&facts, change))).await {
            Ok(stored) => return Ok((stored, change)),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(refused(name, error)),
        }
        first.get_or_insert((facts, change));
    }
    let what = format!("others change TrainJob {name} at the same time; look at it and try again");
    Err(Failure::Nonsense(what))
}

/// What the server says, and what that means where deadlines are immutable.
fn refused(name: &str, error: kube::Error) -> Failure {
    let failure = Failure::of_request(format!("extend TrainJob {name}"), error);
    if failure.to_string().contains("immutable") {
        Failure::Nonsense(format!(
            "{failure}\nhint: deadlines change only where the administrator has set lifecycle.fieldUpdates: Mutable"
        ))
    } else {
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(metadata: &Value, spec: &Value, conditions: &Value) -> JobFacts {
        let mut meta = json!({"name": "job", "uid": "U", "resourceVersion": "7"});
        meta.as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        let mut whole = json!({"runtimeRef": {"name": "r"}, "activeDeadlineSeconds": 3_600});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let job = json!({"metadata": meta, "spec": whole, "status": {"conditions": conditions}});
        JobFacts::of(&serde_json::from_value::<TrainJob>(job).unwrap())
    }

    #[test]
    fn a_deadline_becomes_longer_or_stays() {
        let (none, list) = (json!({}), json!([]));
        let done = json!([{"type": "Complete", "status": "True", "reason": "", "message": "", "lastTransitionTime": "1970-01-01T00:00:09Z"}]);
        let going = json!({"deletionTimestamp": "1970-01-01T00:00:00Z"});
        let stored = 3_600;
        for (metadata, spec, conditions, wish, expected) in [
            (&none, &none, &list, Wish::By(60), Ok(Change { from: 3_600, to: 3_660 })),
            (&none, &none, &list, Wish::To(3_601), Ok(Change { from: 3_600, to: 3_601 })),
            (&none, &none, &list, Wish::To(3_600), Err(Refusal::NotMore { stored, wished: 3_600 })),
            (&none, &none, &list, Wish::To(1), Err(Refusal::NotMore { stored, wished: 1 })),
            (&none, &none, &list, Wish::By(i64::MAX), Err(Refusal::TooLarge { stored })),
            (
                &none,
                &json!({"activeDeadlineSeconds": null}),
                &list,
                Wish::By(60),
                Err(Refusal::Unlimited),
            ),
            (&none, &none, &done, Wish::By(60), Err(Refusal::Finished(Timestamp(9)))),
            (&going, &none, &list, Wish::By(60), Err(Refusal::Terminating)),
            (
                &none,
                &json!({"managedBy": "kueue.x-k8s.io/multikueue"}),
                &list,
                Wish::By(60),
                Err(Refusal::ManagedElsewhere),
            ),
        ] {
            let facts = job(metadata, spec, conditions);
            assert_eq!(plan(&facts, wish), expected, "{metadata} {spec} {wish:?}");
        }
    }

    #[test]
    fn the_write_names_uid_and_version_of_what_it_was_decided_on() {
        let facts = job(&json!({}), &json!({}), &json!([]));
        let expected = json!({
            "metadata": {"uid": "U", "resourceVersion": "7"},
            "spec": {"activeDeadlineSeconds": 7_200},
        });
        assert_eq!(patch(&facts, Change { from: 3_600, to: 7_200 }), expected);
    }

    #[test]
    fn a_write_that_took_effect_is_told_from_those_of_others() {
        let none = json!({});
        let before = job(&none, &none, &json!([]));
        let change = Change { from: 3_600, to: 7_200 };
        for (uid, deadline, expected) in [
            ("U", json!(3_600), News::None),
            ("U", json!(7_200), News::Done),
            ("U", json!(7_201), News::Other),
            ("U", json!(null), News::Other),
            ("V", json!(3_600), News::Other),
            ("V", json!(7_200), News::Other),
        ] {
            let spec = json!({"activeDeadlineSeconds": deadline});
            let now = job(&json!({"uid": uid}), &spec, &json!([]));
            assert_eq!(news(&before, change, &now), expected, "{uid} {deadline}");
        }
    }

    #[test]
    fn whoever_raises_a_deadline_is_told_when_it_ends_as_far_as_that_is_known() {
        let due = Timestamp(3_600);
        let (at, left_seconds) = ("1970-01-01T01:00:00Z", 60);
        for (deadline, expected) in [
            (
                Deadline::Running { due, left_seconds, exact: true },
                Some(format!("Its deadline ends at {at}, in 1m.")),
            ),
            (
                Deadline::Running { due, left_seconds, exact: false },
                Some(format!("Its deadline ends at {at} at the earliest, in 1m.")),
            ),
            (
                Deadline::DueByCreation { due, left_seconds: Some(left_seconds) },
                Some(format!(
                    "If deadlines count from the creation here (lifecycle.deadlineClock), its deadline has passed at {at} all the same."
                )),
            ),
            (
                Deadline::Due { due, exact: true },
                Some("Its deadline has passed all the same.".to_owned()),
            ),
            (Deadline::Endless, None),
        ] {
            assert_eq!(end_of(deadline), expected, "{deadline:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_flag_and_what_would_be_right() {
        for (refusal, said) in [
            (
                Refusal::NotMore { stored: 60, wished: 60 },
                "--to: 60 is not more than its 60 seconds; give a larger",
            ),
            (
                Refusal::TooLarge { stored: 60 },
                "--by: with its 60 seconds that is more than a deadline can be",
            ),
            (
                Refusal::Finished(Timestamp(0)),
                "it has finished at 1970-01-01T00:00:00Z; create another",
            ),
            (Refusal::Unlimited, "may run for ever"),
        ] {
            assert!(refusal.to_string().contains(said), "{refusal}");
        }
    }

    #[test]
    fn an_immutable_deadline_gets_a_hint_and_any_other_refusal_none() {
        for (message, hinted) in [
            ("spec.activeDeadlineSeconds: Invalid value: field is immutable", true),
            ("trainjobs is forbidden", false),
        ] {
            let status = kube::core::Status { message: message.into(), ..Default::default() };
            let failure = refused("job", kube::Error::Api(Box::new(status))).to_string();
            assert!(failure.contains(message), "{failure}");
            assert_eq!(failure.contains("lifecycle.fieldUpdates"), hinted, "{failure}");
        }
    }
}
