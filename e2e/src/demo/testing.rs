//! TrainJobs and Pods for the tests of the demo's model; instants are seconds since the epoch.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::demo::clock::{SignedDuration, Timestamp};
use crate::demo::seen::{Change, JobState, PodPhase, PodState, Spec};

pub(super) fn at(seconds: f64) -> Timestamp {
    Timestamp::from_duration(SignedDuration::from_secs_f64(seconds)).unwrap()
}

/// A TrainJob that was created at 0, changed by `change`.
pub(super) fn job(change: impl FnOnce(&mut JobState)) -> Change {
    let spec = Spec::default();
    let mut job = JobState { created: at(0.0), deleted: None, spec, conditions: Vec::new() };
    change(&mut job);
    Change::Job(Box::new(job))
}

impl JobState {
    pub(super) fn finish(&mut self, kind: &str, reason: &str, seconds: i32) {
        self.conditions = vec![condition(kind, reason, seconds)];
    }
}

pub(super) fn condition(kind: &str, reason: &str, seconds: i32) -> Condition {
    Condition {
        type_: kind.into(),
        status: "True".into(),
        reason: reason.into(),
        message: String::new(),
        observed_generation: None,
        last_transition_time: Time(at(f64::from(seconds))),
    }
}

pub(super) fn pod(name: &str, phase: PodPhase, gpus: i64) -> Change {
    Change::Pod(name.to_owned(), PodState { phase, gpus, bound_at: None, ended_at: None })
}
