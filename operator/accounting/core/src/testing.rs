//! Pods for tests.

use std::sync::Arc;

use trainjob_api::time::Timestamp;

use crate::{
    amounts::Amounts,
    pod::{Container, ContainerEnd, Phase, Pod, State, Template},
};

pub(crate) const fn at(seconds: i64) -> Timestamp {
    Timestamp(seconds)
}

/// A Pod that runs on a node and has our finalizer.
pub(crate) fn pod() -> Pod {
    Pod {
        name: "llm-node-0-0".into(),
        uid: "p1".into(),
        template: Arc::new(template()),
        restart: 0,
        created_at: at(100),
        grace_period: 30,
        deletion: None,
        phase: Phase::Open,
        reason: Box::default(),
        message: Box::default(),
        node: Some("n1".into()),
        bound_at: Some(at(100)),
        unready_since: None,
        disruption: None,
        generations: None,
        containers: Box::default(),
        finalizer: true,
        accounted: false,
    }
}

pub(crate) fn template() -> Template {
    Template {
        replicated_job: "node".into(),
        job_set: "s1".into(),
        job_name: "llm".into(),
        job_uid: "j1".into(),
        container_names: Box::default(),
        amounts: Amounts::from([("nvidia.com/gpu".to_owned(), 8)]),
    }
}

pub(crate) fn container(state: State) -> Container {
    Container { name: "node".into(), restarts: 0, state, last_end: None }
}

fn end(seconds: i64, exit_code: i32, reason: &str) -> ContainerEnd {
    let (reason, message) = (reason.into(), Box::default());
    ContainerEnd { exit_code, reason, message, began: None, at: at(seconds) }
}

pub(crate) fn ended_at(seconds: i64, exit_code: i32) -> Container {
    container(State::Ended(Box::new(end(seconds, exit_code, ""))))
}

pub(crate) fn out_of_memory_at(seconds: i64) -> Container {
    container(State::Ended(Box::new(end(seconds, 137, "OOMKilled"))))
}

/// A container that failed with this code and ran again for these seconds, until it was stopped.
pub(crate) fn stopped_after(exit_code: i32, seconds: i64) -> Container {
    let stopped = ContainerEnd { began: Some(at(500)), ..end(500 + seconds, 143, "Error") };
    Container { state: State::Ended(Box::new(stopped)), ..waiting_after(400, exit_code) }
}

pub(crate) fn waiting_after(seconds: i64, exit_code: i32) -> Container {
    Container { last_end: Some(Box::new(end(seconds, exit_code, ""))), ..container(State::Waiting) }
}
