//! What the cache holds, in numbers.

use std::{collections::HashMap, sync::Arc};

use trainjob_api::time::Timestamp;
use trainjob_core::{
    facts::ObjectKey,
    job_stats::{self, JobStats},
    lifecycle::release,
};
use trainjob_engine::versions::Versions;

use super::{Cache, State, packed::PackedJob};
use crate::kinds::Kind;

/// How many jobs are looked at before others have their turn: for some microseconds.
const AT_ONCE: usize = 64;

impl Cache {
    /// Counts every job at `now`, in the group of its namespace. Others wait only while the jobs are noted, not while they are looked at.
    pub fn count(
        &self,
        job_stats: &mut JobStats<'_>,
        now: Timestamp,
        group: impl Fn(&str) -> Arc<str>,
    ) {
        let all = self.all_keys();
        let mut groups = HashMap::new();
        for keys in all.chunks(AT_ONCE) {
            let state = self.lock();
            for key in keys {
                // One that has gone meanwhile does not count.
                let Some(job) = state.jobs.get(key) else { continue };
                let group = groups.entry(&key.namespace).or_insert_with(|| group(&key.namespace));
                let release = || state.release(key, job, now);
                job_stats.add(Arc::clone(group), key, job.standing(), release);
            }
        }
    }

    fn all_keys(&self) -> Vec<ObjectKey> {
        self.lock().jobs.keys().cloned().collect()
    }

    /// How many objects there are of each kind, in the order of [`Kind::ALL`].
    #[must_use]
    pub fn sizes(&self) -> [usize; Kind::ALL.len()] {
        let state = self.lock();
        Kind::ALL.map(|kind| match kind {
            Kind::TrainJob => state.jobs.count(),
            Kind::JobSet => state.job_sets.count(),
            Kind::TrainingRuntime | Kind::ClusterTrainingRuntime => {
                state.runtimes.count(kind.name())
            }
            Kind::PodGroup(scheduler) => {
                state.pod_groups.of(scheduler).as_ref().map_or(0, Versions::count)
            }
        })
    }
}

impl State {
    /// How the release of a job that its deadline failed stands.
    fn release(&self, key: &ObjectKey, job: &PackedJob, now: Timestamp) -> release::Decision {
        let job = job.record(key).facts;
        let job_set = self.job_set(key);
        job_stats::release_of(&job, job_set.as_ref(), self.pods(key, &job.uid), now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use trainjob_core::{lifecycle::deadline::Clock, observed::Settings};
    use trainjob_engine::versions::Source;

    use super::*;

    /// One of few names, and something that may be stored under it. All instants are near each other, so that every
    /// order of them occurs.
    fn stored() -> impl Strategy<Value = Value> {
        let at = || (0_i64..300).prop_map(|at| Timestamp(at).to_string());
        let ends = [("Complete", "AllJobsCompleted"), ("Failed", "DeadlineExceeded")];
        let end = prop::option::of((prop::sample::select(ends.to_vec()), at()));
        let suspended = prop::option::of((any::<bool>(), at()));
        let hold = prop::option::of(prop_oneof![at(), Just("soon".to_owned())]);
        let owner = (0..3_u8, 0..4_u8, at(), prop::option::weighted(0.1, at()));
        let flags =
            [any::<bool>(); 3].prop_map(|[suspend, foreign, copied]| (suspend, foreign, copied));
        let numbers = (prop::option::of(0_i64..300), prop::option::of(0_i64..300), 0..2_i32);
        (owner, flags, numbers, end, suspended, hold).prop_map(
            |(
                (namespace, name, created, deleted),
                (suspend, foreign, copied),
                (deadline, ttl, ready),
                end,
                suspended,
                hold,
            )| {
                let end = end.map(|((kind, reason), at)| condition(kind, true, reason, &at));
                let suspended =
                    suspended.map(|(holds, at)| condition("Suspended", holds, "Suspended", &at));
                json!({
                    "metadata": {
                        "namespace": format!("ns-{namespace}"), "name": format!("job-{name}"), "uid": "U",
                        "resourceVersion": "", "creationTimestamp": created, "deletionTimestamp": deleted,
                        "labels": if copied { json!({"kueue.x-k8s.io/multikueue-origin": "a"}) } else { json!({}) },
                        "annotations": hold.map(|at| json!({"lifecycle.trainjob.dev/hold-until": at})),
                    },
                    "spec": {
                        "runtimeRef": {"name": "r"}, "suspend": suspend,
                        "managedBy": foreign.then_some("example.com/other"),
                        "activeDeadlineSeconds": deadline, "ttlSecondsAfterFinished": ttl,
                    },
                    "status": {
                        "conditions": end.into_iter().chain(suspended).collect::<Vec<_>>(),
                        "jobsStatus": [{"name": "node", "ready": ready, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}],
                    },
                })
            },
        )
    }

    fn condition(kind: &str, holds: bool, reason: &str, at: &str) -> Value {
        json!({"type": kind, "status": if holds { "True" } else { "False" }, "reason": reason, "message": "",
            "lastTransitionTime": at})
    }

    prop_compose! {
        fn settings()(
            deadline_clock in prop::sample::select(vec![Clock::Creation, Clock::LastResume]),
            ttl_for_managed_elsewhere in any::<bool>(),
            maximum_hold in 0_u32..200,
        ) -> Settings {
            Settings { deadline_clock, ttl_for_managed_elsewhere, maximum_hold, ..Settings::default() }
        }
    }

    proptest! {
        #[test]
        fn count_is_what_the_facts_of_all_jobs_say_at_any_time(
            jobs in prop::collection::vec(stored(), 0..30),
            settings in settings(),
            now in 0_i64..700,
        ) {
            let (cache, now) = (Cache::new(1 << 20), Timestamp(now));
            for (version, mut job) in (1_u64..).zip(jobs) {
                job["metadata"]["resourceVersion"] = json!(version.to_string());
                cache.put_job(serde_json::from_value(job).unwrap(), Source::Watch);
            }
            let (mut counted, mut expected) =
                (JobStats::new(&settings, now, 3), JobStats::new(&settings, now, 3));
            cache.count(&mut counted, now, |name| name.into());
            for key in cache.keys() {
                let add = |job: &_, job_set: Option<&_>, pods: &_| {
                    let release = || job_stats::release_of(job, job_set, pods, now);
                    expected.add(Arc::clone(&key.namespace), &key, job, release);
                };
                cache.with_job(&key, add).unwrap();
            }
            prop_assert!(counted.groups().eq(expected.groups()));
            prop_assert_eq!(counted.nearest(), expected.nearest());
            prop_assert_eq!(counted.oldest_unreleased(), expected.oldest_unreleased());
        }
    }
}
