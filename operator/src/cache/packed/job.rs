//! What is remembered of a TrainJob, as it is written.

use serde::{Deserialize, Serialize};
use trainjob_api::{lifecycle::v1alpha1::hold::HoldWish, time::Timestamp};
use trainjob_core::{
    build::RuntimeKey,
    facts::{
        Finished, JobFacts, ObjectKey, OutOfRange, Outcome, Standing, SuspendedCondition,
        WaitingCondition, is_running,
    },
};

use super::{Counts, Uid, Version};
use crate::cache::record::JobRecord;

/// What is remembered of a TrainJob, as it is written. Instants are in seconds. It begins as [`Beginning`] does.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Form {
    version: Version,
    uid: Uid,
    created_at: i64,
    suspend: bool,
    runs: bool,
    deadline: Option<i64>,
    ttl: Option<u32>,
    finished: Option<(i64, End)>,
    /// Whether it holds, and since when.
    suspended: Option<(bool, i64)>,
    seldom: Option<Seldom>,
    counts: Vec<Counts>,
    runtime: Option<Runtime>,
}

/// The beginning of a [`Form`], from which it is told how the job stands: without a text, so nothing is allocated.
#[derive(Debug, Deserialize)]
pub(super) struct Beginning {
    _version: Version,
    _uid: Uid,
    created_at: i64,
    suspend: bool,
    runs: bool,
    deadline: Option<i64>,
    ttl: Option<u32>,
    finished: Option<(i64, End)>,
    suspended: Option<(bool, i64)>,
    seldom: Option<SeldomBeginning>,
}

/// What most jobs have nothing of. It begins as [`SeldomBeginning`] does.
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

/// The beginning of [`Seldom`].
#[derive(Debug, Default, Deserialize)]
struct SeldomBeginning {
    terminating: bool,
    managed_elsewhere: bool,
    remote_copy: bool,
    hold: Option<Hold>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Hold {
    Until(i64),
    Unreadable,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Bad {
    Deadline(i64),
    Ttl(i64),
}

#[derive(Debug, Serialize, Deserialize)]
enum End {
    Complete,
    Failed,
    DeadlineExceeded,
}

#[derive(Debug, Serialize, Deserialize)]
enum Runtime {
    OfCluster(String),
    OfNamespace(String, String),
}

impl Form {
    pub(super) fn of(record: &JobRecord) -> Self {
        let facts = &record.facts;
        Self {
            version: Version::of(&facts.resource_version),
            uid: Uid::of(&facts.uid),
            created_at: facts.created_at.0,
            suspend: facts.suspend,
            runs: is_running(&facts.jobs_status),
            deadline: facts.deadline,
            ttl: facts.ttl,
            finished: facts.finished.map(|it| (it.at.0, End::of(it.outcome))),
            suspended: facts.suspended.map(|it| (it.holds, it.since.0)),
            seldom: Some(Seldom::of(facts)).filter(|it| *it != Seldom::default()),
            counts: Counts::all(&facts.jobs_status),
            runtime: record.runtime.as_ref().map(Runtime::of),
        }
    }

    pub(super) fn record(self, key: &ObjectKey) -> JobRecord {
        let waiting =
            |(index, reason, message)| Box::new(WaitingCondition { index, reason, message });
        let seldom = self.seldom.unwrap_or_default();
        let facts = JobFacts {
            key: key.clone(),
            uid: self.uid.text(),
            resource_version: self.version.text(),
            created_at: Timestamp(self.created_at),
            terminating: seldom.terminating,
            managed_elsewhere: seldom.managed_elsewhere,
            remote_copy: seldom.remote_copy,
            suspend: self.suspend,
            deadline: self.deadline,
            ttl: self.ttl,
            hold: seldom.hold.map(Hold::wish),
            out_of_range: seldom.out_of_range.map(Bad::problem),
            finished: self.finished.map(finished),
            suspended: self.suspended.map(suspended),
            waiting: seldom.waiting.map(waiting),
            jobs_status: Counts::statuses(self.counts),
        };
        JobRecord { facts, runtime: self.runtime.map(Runtime::key) }
    }
}

impl Beginning {
    pub(super) fn standing(self) -> Standing {
        let seldom = self.seldom.unwrap_or_default();
        Standing {
            created_at: Timestamp(self.created_at),
            terminating: seldom.terminating,
            managed_elsewhere: seldom.managed_elsewhere,
            remote_copy: seldom.remote_copy,
            suspend: self.suspend,
            runs: self.runs,
            deadline: self.deadline,
            ttl: self.ttl,
            hold: seldom.hold.map(Hold::wish),
            finished: self.finished.map(finished),
            suspended: self.suspended.map(suspended),
        }
    }
}

const fn finished((at, end): (i64, End)) -> Finished {
    Finished { at: Timestamp(at), outcome: end.outcome() }
}

const fn suspended((holds, since): (bool, i64)) -> SuspendedCondition {
    SuspendedCondition { holds, since: Timestamp(since) }
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

impl Runtime {
    fn of(key: &RuntimeKey) -> Self {
        match key.clone() {
            RuntimeKey::Cluster { name } => Self::OfCluster(name),
            RuntimeKey::Namespaced { namespace, name } => Self::OfNamespace(namespace, name),
        }
    }

    fn key(self) -> RuntimeKey {
        match self {
            Self::OfCluster(name) => RuntimeKey::Cluster { name },
            Self::OfNamespace(namespace, name) => RuntimeKey::Namespaced { namespace, name },
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
            counts in prop::collection::vec(("[a-z]{1,9}", any::<[i32; 5]>()), 0..3),
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
            let packed = PackedJob::of(&record);
            prop_assert_eq!(packed.standing(), Standing::from(&record.facts));
            let unpacked = packed.record(&record.facts.key);
            prop_assert_eq!(unpacked, record);
        }
    }
}
