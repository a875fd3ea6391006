//! What is remembered of a TrainJob, as it is written.

use serde::{Deserialize, Serialize};
use trainjob_api::{lifecycle::v1alpha1::hold::HoldWish, time::Timestamp};
use trainjob_core::facts::{
    Finished, JobFacts, ObjectKey, OutOfRange, Outcome, Standing, SuspendedCondition,
    WaitingCondition, is_running,
};

use super::{Counts, Uid, Version};
use crate::cache::{named_runtimes::NamedRuntimes, record::JobRecord};

/// What is remembered of a TrainJob, as it is written.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Form {
    beginning: Beginning,
    counts: Vec<Counts>,
}

/// The beginning of a [`Form`], from which it is told how the job stands: few jobs have texts in it, so hardly anything is
/// allocated. Instants are in seconds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Beginning {
    version: Version,
    pub(super) uid: Uid,
    created_at: i64,
    suspend: bool,
    runs: bool,
    deadline: Option<i64>,
    ttl: Option<u32>,
    /// How long after its creation, and how.
    finished: Option<(i64, End)>,
    /// Whether it holds, and since how long after its creation.
    suspended: Option<(bool, i64)>,
    /// Its number among the runtimes that are named.
    pub(super) runtime: Option<usize>,
    seldom: Option<Seldom>,
}

/// What most jobs have nothing of.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seldom {
    terminating: bool,
    managed_elsewhere: bool,
    remote_copy: bool,
    hold: Option<Hold>,
    out_of_range: Option<Bad>,
    /// Index, reason and message.
    waiting: Option<(usize, String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Hold {
    Until(i64),
    Unreadable,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Bad {
    Deadline(i64),
    Ttl(i64),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum End {
    Complete,
    Failed,
    DeadlineExceeded,
}

impl Form {
    pub(super) fn of(facts: &JobFacts, runtime: Option<usize>) -> Self {
        Self { beginning: Beginning::of(facts, runtime), counts: Counts::all(&facts.jobs_status) }
    }

    pub(super) fn record(self, key: &ObjectKey, runtimes: &NamedRuntimes) -> JobRecord {
        let Self { beginning, counts } = self;
        let standing = beginning.standing();
        let Beginning { version, uid, runtime, seldom, .. } = beginning;
        let Seldom { out_of_range, waiting, .. } = seldom.unwrap_or_default();
        let waiting =
            waiting.map(|(index, reason, message)| WaitingCondition { index, reason, message });
        let facts = JobFacts {
            key: key.clone(),
            uid: uid.text().unwrap_or_default(),
            resource_version: version.text(),
            created_at: standing.created_at,
            terminating: standing.terminating,
            managed_elsewhere: standing.managed_elsewhere,
            remote_copy: standing.remote_copy,
            suspend: standing.suspend,
            deadline: standing.deadline,
            ttl: standing.ttl,
            hold: standing.hold,
            out_of_range: out_of_range.map(Bad::problem),
            finished: standing.finished,
            suspended: standing.suspended,
            waiting: waiting.map(Box::new),
            jobs_status: Counts::statuses(counts),
        };
        let runtime = runtime.and_then(|number| runtimes.runtime(number)).cloned();
        JobRecord { facts, runtime }
    }
}

impl Beginning {
    fn of(facts: &JobFacts, runtime: Option<usize>) -> Self {
        // Shorter than an instant.
        let after = |at: Timestamp| at.0.wrapping_sub(facts.created_at.0);
        Self {
            version: Version::of(&facts.resource_version),
            uid: Uid::of(&facts.uid),
            created_at: facts.created_at.0,
            suspend: facts.suspend,
            runs: is_running(&facts.jobs_status),
            deadline: facts.deadline,
            ttl: facts.ttl,
            finished: facts.finished.map(|it| (after(it.at), End::of(it.outcome))),
            suspended: facts.suspended.map(|it| (it.holds, after(it.since))),
            runtime,
            seldom: Some(Seldom::of(facts)).filter(|it| *it != Seldom::default()),
        }
    }

    pub(super) fn standing(&self) -> Standing {
        let at = |after: i64| Timestamp(self.created_at.wrapping_add(after));
        let finished =
            |(after, end): (i64, End)| Finished { at: at(after), outcome: end.outcome() };
        let suspended = |(holds, after)| SuspendedCondition { holds, since: at(after) };
        let seldom = self.seldom.as_ref();
        Standing {
            created_at: Timestamp(self.created_at),
            terminating: seldom.is_some_and(|it| it.terminating),
            managed_elsewhere: seldom.is_some_and(|it| it.managed_elsewhere),
            remote_copy: seldom.is_some_and(|it| it.remote_copy),
            suspend: self.suspend,
            runs: self.runs,
            deadline: self.deadline,
            ttl: self.ttl,
            hold: seldom.and_then(|it| it.hold).map(Hold::wish),
            finished: self.finished.map(finished),
            suspended: self.suspended.map(suspended),
        }
    }
}

impl Seldom {
    fn of(facts: &JobFacts) -> Self {
        let waiting = facts.waiting.as_deref();
        Self {
            terminating: facts.terminating,
            managed_elsewhere: facts.managed_elsewhere,
            remote_copy: facts.remote_copy,
            hold: facts.hold.map(Hold::of),
            out_of_range: facts.out_of_range.map(Bad::of),
            waiting: waiting.map(|it| (it.index, it.reason.clone(), it.message.clone())),
        }
    }
}

impl Hold {
    const fn of(wish: HoldWish) -> Self {
        match wish {
            HoldWish::Until(at) => Self::Until(at.0),
            HoldWish::Unreadable => Self::Unreadable,
        }
    }

    const fn wish(self) -> HoldWish {
        match self {
            Self::Until(at) => HoldWish::Until(Timestamp(at)),
            Self::Unreadable => HoldWish::Unreadable,
        }
    }
}

impl Bad {
    fn of(problem: OutOfRange) -> Self {
        let value = problem.value;
        if problem == OutOfRange::deadline(value) {
            Self::Deadline(value)
        } else {
            Self::Ttl(value)
        }
    }

    const fn problem(self) -> OutOfRange {
        match self {
            Self::Deadline(value) => OutOfRange::deadline(value),
            Self::Ttl(value) => OutOfRange::ttl(value),
        }
    }
}

impl End {
    const fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Complete => Self::Complete,
            Outcome::Failed => Self::Failed,
            Outcome::DeadlineExceeded => Self::DeadlineExceeded,
        }
    }

    const fn outcome(self) -> Outcome {
        match self {
            Self::Complete => Outcome::Complete,
            Self::Failed => Outcome::Failed,
            Self::DeadlineExceeded => Outcome::DeadlineExceeded,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::cache::packed::PackedJob;

    fn second() -> impl Strategy<Value = String> {
        any::<u32>().prop_map(|at| Timestamp(i64::from(at)).to_string())
    }

    fn condition() -> impl Strategy<Value = Value> {
        const KINDS: &[&str] = &["Complete", "Failed", "Suspended", "Waiting", "Other"];
        const REASONS: &[&str] = &["DeadlineExceeded", "RuntimeNotFound", "☃"];
        let (kind, reason) = (prop::sample::select(KINDS), prop::sample::select(REASONS));
        (kind, any::<bool>(), reason, ".{0,9}", second()).prop_map(
            |(kind, holds, reason, message, at)| {
                json!({"type": kind, "status": if holds { "True" } else { "False" }, "reason": reason,
                    "message": message, "lastTransitionTime": at})
            },
        )
    }

    fn identity() -> impl Strategy<Value = (String, String)> {
        let number = any::<u128>().prop_map(|it| uuid::Uuid::from_u128(it).to_string());
        let uid = prop_oneof![number, ".{0,40}", Just(String::new())];
        let version = any::<u64>().prop_map(|version| version.to_string());
        (uid, prop_oneof![version, Just("007".to_owned()), Just(String::new()), ".{0,9}"])
    }

    prop_compose! {
        fn stored()(
            (uid, version) in identity(),
            created in second(),
            deleted in prop::option::of(second()),
            (suspend, copied) in any::<(Option<bool>, bool)>(),
            manager in prop::sample::select(&[None, Some("example.com/other")]),
            (deadline, ttl) in any::<(Option<i64>, Option<i32>)>(),
            hold in prop::option::of(prop_oneof![second(), Just("soon".to_owned())]),
            conditions in prop::collection::vec(condition(), 0..4),
            counts in prop::collection::vec(("node|[a-z]{1,9}", any::<[i32; 5]>()), 0..3),
            kind in prop::sample::select(&["ClusterTrainingRuntime", "TrainingRuntime", "Pod"]),
        ) -> Value {
            let labels = if copied { json!({"kueue.x-k8s.io/multikueue-origin": "a"}) } else { json!({}) };
            let annotations = hold.map(|at| json!({"lifecycle.trainjob.dev/hold-until": at}));
            let counts: Vec<_> = counts.into_iter().map(|(name, [r, s, f, a, u])| json!({
                "name": name, "ready": r, "succeeded": s, "failed": f, "active": a, "suspended": u,
            })).collect();
            json!({
                "metadata": {
                    "namespace": "ns", "name": "job", "uid": uid, "resourceVersion": version,
                    "creationTimestamp": created, "deletionTimestamp": deleted, "labels": labels,
                    "annotations": annotations,
                },
                "spec": {
                    "runtimeRef": {"name": "r", "kind": kind, "apiGroup": "trainer.kubeflow.org"},
                    "suspend": suspend, "managedBy": manager, "activeDeadlineSeconds": deadline,
                    "ttlSecondsAfterFinished": ttl,
                },
                "status": {"conditions": conditions, "jobsStatus": counts},
            })
        }
    }

    proptest! {
        #[test]
        fn whatever_is_known_of_a_job_is_known_after_it_was_packed(stored in stored()) {
            let (record, _) = JobRecord::of(serde_json::from_value(stored).unwrap());
            let mut runtimes = NamedRuntimes::default();
            let number = runtimes.name(None, record.runtime.as_ref());
            let packed = PackedJob::of(&record, number);
            prop_assert_eq!(packed.runtime(), number);
            prop_assert_eq!(packed.standing(), Standing::from(&record.facts));
            let unpacked = packed.record(&record.facts.key, &runtimes);
            prop_assert_eq!(unpacked, record);
        }
    }
}
