//! What is remembered of a JobSet, as it is written.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};
use trainjob_api::time::Timestamp;
use trainjob_core::facts::{JobSetEnd, JobSetFacts};

use super::{Counts, Uid, Version};

/// What is remembered of a JobSet, as it is written: fifty-five bytes, usually. Instants are in seconds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Form {
    version: Version,
    uid: Uid,
    generation: i64,
    created_at: i64,
    train_job_uid: Uid,
    flags: Flags,
    seldom: Option<Seldom>,
    counts: Vec<Counts>,
}

/// Whether it is suspended, has never run, and holds its Pods.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Flags(u8);

/// What most JobSets have nothing of.
#[derive(Debug, Serialize, Deserialize)]
struct Seldom {
    terminating_since: Option<i64>,
    ended: Option<End>,
}

/// How it ended, with the condition that says so.
#[derive(Debug, Serialize, Deserialize)]
struct End {
    completed: bool,
    kind: String,
    status: String,
    reason: String,
    message: String,
    since: i64,
    observed_generation: Option<i64>,
}

impl Form {
    pub(super) fn of(facts: &JobSetFacts) -> Self {
        Self {
            version: Version::of(&facts.resource_version),
            uid: Uid::of(&facts.uid),
            generation: facts.generation,
            created_at: facts.created_at.0,
            train_job_uid: facts.train_job_uid.as_deref().map_or(Uid::None, Uid::of),
            flags: Flags::of([facts.suspended, facts.never_ran, facts.holds_pods]),
            seldom: Seldom::of(facts),
            counts: Counts::all(&facts.jobs_status),
        }
    }

    pub(super) fn facts(self) -> JobSetFacts {
        let [suspended, never_ran, holds_pods] = self.flags.each();
        let (terminating_since, ended) =
            self.seldom.map(|it| (it.terminating_since, it.ended)).unwrap_or_default();
        JobSetFacts {
            uid: self.uid.text().unwrap_or_default(),
            resource_version: self.version.text(),
            generation: self.generation,
            created_at: Timestamp(self.created_at),
            terminating_since: terminating_since.map(Timestamp),
            train_job_uid: self.train_job_uid.text(),
            suspended,
            never_ran,
            holds_pods,
            ended: ended.map(|end| Box::new(end.of_job_set())),
            jobs_status: Counts::statuses(self.counts),
        }
    }
}

impl Flags {
    fn of(flags: [bool; 3]) -> Self {
        Self(flags.into_iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(flag)))
    }

    fn each(self) -> [bool; 3] {
        [0, 1, 2].map(|bit| self.0 >> bit & 1 == 1)
    }
}

impl Seldom {
    fn of(facts: &JobSetFacts) -> Option<Self> {
        let terminating_since = facts.terminating_since.map(|at| at.0);
        let ended = facts.ended.as_deref().map(End::of);
        let is_something = terminating_since.is_some() || ended.is_some();
        is_something.then_some(Self { terminating_since, ended })
    }
}

impl End {
    fn of(end: &JobSetEnd) -> Self {
        let condition = end.condition.clone();
        Self {
            completed: end.completed,
            kind: condition.type_,
            status: condition.status,
            reason: condition.reason,
            message: condition.message,
            since: Timestamp::from(&condition.last_transition_time).0,
            observed_generation: condition.observed_generation,
        }
    }

    fn of_job_set(self) -> JobSetEnd {
        let condition = Condition {
            last_transition_time: Timestamp(self.since).into(),
            message: self.message,
            observed_generation: self.observed_generation,
            reason: self.reason,
            status: self.status,
            type_: self.kind,
        };
        JobSetEnd { completed: self.completed, condition }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::cache::packed::PackedJobSet;

    fn second() -> impl Strategy<Value = String> {
        any::<u32>().prop_map(|at| Timestamp(i64::from(at)).to_string())
    }

    fn condition() -> impl Strategy<Value = Value> {
        const KINDS: &[&str] = &["Completed", "Failed", "Suspended"];
        let generation = any::<Option<i64>>();
        (prop::sample::select(KINDS), any::<bool>(), ".{0,9}", second(), generation).prop_map(
            |(kind, holds, said, at, generation)| {
                json!({"type": kind, "status": if holds { "True" } else { "False" }, "reason": said,
                    "message": said, "lastTransitionTime": at, "observedGeneration": generation})
            },
        )
    }

    prop_compose! {
        fn stored()(
            uid in prop_oneof![".{0,40}", any::<u128>().prop_map(|it| uuid::Uuid::from_u128(it).to_string())],
            version in prop_oneof![".{0,9}", any::<u64>().prop_map(|it| it.to_string())],
            (generation, suspend, marked, owned) in any::<(i64, bool, bool, bool)>(),
            (created, deleted) in (second(), prop::option::of(second())),
            conditions in prop::collection::vec(condition(), 0..3),
            counts in prop::collection::vec(("node|[a-z]{1,9}", any::<[i32; 5]>()), 0..3),
        ) -> Value {
            let counts: Vec<_> = counts.into_iter().map(|(name, [r, s, f, a, u])| json!({
                "name": name, "ready": r, "succeeded": s, "failed": f, "active": a, "suspended": u,
            })).collect();
            let owner = json!([{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
                "name": "job", "uid": "U", "controller": owned}]);
            let marks: &[&str] = if marked { &["lifecycle.trainjob.dev/accounting"] } else { &[] };
            let pod = json!({"metadata": {"finalizers": marks}});
            json!({
                "metadata": {
                    "namespace": "ns", "name": "job", "uid": uid, "resourceVersion": version,
                    "generation": generation, "creationTimestamp": created, "deletionTimestamp": deleted,
                    "ownerReferences": owner,
                },
                "spec": {
                    "suspend": suspend,
                    "replicatedJobs": [{"name": "node", "template": {"spec": {"template": pod}}}],
                },
                "status": {"conditions": conditions, "replicatedJobsStatus": counts},
            })
        }
    }

    proptest! {
        #[test]
        fn whatever_is_known_of_a_job_set_is_known_after_it_was_packed(stored in stored()) {
            let facts = JobSetFacts::of(&serde_json::from_value(stored).unwrap());
            prop_assert_eq!(PackedJobSet::of(&facts).facts(), facts);
        }
    }
}
