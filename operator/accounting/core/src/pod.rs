//! What a decision needs to know of a Pod, read from the Pod as the API server stores it.
//!
//! All open Pods are kept, so what few of them have is boxed, and what many of them have is shared.

mod template;

use std::sync::Arc;

use k8s_openapi::{
    api::core::v1::{ContainerState, ContainerStatus, Pod as StoredPod, PodCondition, PodStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use trainjob_api::{
    lifecycle::v1alpha1::{ACCOUNTED_ANNOTATION, ACCOUNTING_FINALIZER, record::MESSAGE},
    time::Timestamp,
};

pub use self::template::{REPLICATED_JOB_LABEL, Template};
use crate::amounts::MOST;

/// Label of a Pod: the restart of the JobSet that it belongs to.
pub const RESTART_LABEL: &str = "jobset.sigs.k8s.io/restart-attempt";
/// The grace period in seconds of a Pod that names none.
const GRACE_PERIOD: i64 = 30;
/// The reason of an end that nobody saw.
const STATUS_UNKNOWN: &str = "ContainerStatusUnknown";

/// A Pod that carries the labels of the mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: Box<str>,
    /// Its UID, which is shared with what finds it by that.
    pub uid: Arc<str>,
    /// What it has in common with the other Pods of its replicated job.
    pub template: Arc<Template>,
    /// The restart of its JobSet.
    pub restart: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// How many seconds its containers have to end, unless its deletion says otherwise.
    pub grace_period: i64,
    /// Its deletion, once somebody asked for it.
    pub deletion: Option<Deletion>,
    /// What has become of it.
    pub phase: Phase,
    /// `status.reason`.
    pub reason: Box<str>,
    /// `status.message`.
    pub message: Box<str>,
    /// Its node, once it is bound.
    pub node: Option<Box<str>>,
    /// When it was bound, or when the kubelet first saw it (AT1).
    pub bound_at: Option<Timestamp>,
    /// Since when it is not ready any more; `None`: it is ready, or never was.
    pub unready_since: Option<Timestamp>,
    /// What ended it from outside.
    pub disruption: Option<Box<Disruption>>,
    /// `metadata.generation` and `status.observedGeneration`, where both are set.
    pub generations: Option<Generations>,
    /// Its containers: the init containers first, as in the spec.
    pub containers: Box<[Container]>,
    /// Whether it has our finalizer, or had it until somebody else removed it.
    pub finalizer: bool,
    /// Whether its annotation says that it is counted.
    pub accounted: bool,
}

/// How a Pod is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// `metadata.deletionTimestamp`.
    pub at: Timestamp,
    /// `metadata.deletionGracePeriodSeconds`.
    pub grace: i64,
}

/// What has become of a Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It may still run.
    Open,
    /// All containers did their work.
    Succeeded,
    /// It ended otherwise.
    Failed,
}

/// The condition `DisruptionTarget`, where it is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disruption {
    /// Who ended the Pod.
    pub reason: Box<str>,
    /// Since when the condition is true.
    pub at: Option<Timestamp>,
}

/// Which version of a Pod's metadata the kubelet had seen when it wrote the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generations {
    /// That of the Pod. A deletion raises it.
    pub current: i64,
    /// That of the status.
    pub observed: i64,
}

/// A container of a Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Its name, which is that in the template.
    pub name: Arc<str>,
    /// How often it was restarted in place.
    pub restarts: u64,
    /// What it does now.
    pub state: State,
    /// Its last real end before that, from `lastState`.
    pub last_end: Option<Box<ContainerEnd>>,
}

/// What a container does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It has not started, or it waits to be started again.
    Waiting,
    /// It runs, since this instant, where it is known.
    Running(Option<Timestamp>),
    /// It has ended.
    Ended(Box<ContainerEnd>),
    /// It has started and does not run; nobody saw its end (`ContainerStatusUnknown`, or a time of zero).
    EndedUnseen,
}

/// A real end of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerEnd {
    /// Its exit code.
    pub exit_code: i32,
    /// Its reason, such as `OOMKilled`.
    pub reason: Box<str>,
    /// Its message.
    pub message: Box<str>,
    /// When the container had been started, by the clock of its node, where it is known.
    pub began: Option<Timestamp>,
    /// When it ended, by the clock of its node.
    pub at: Timestamp,
}

impl Container {
    /// Its last real end.
    #[must_use]
    pub fn last_real_end(&self) -> Option<&ContainerEnd> {
        match &self.state {
            State::Ended(end) => Some(end),
            State::Waiting | State::Running(_) | State::EndedUnseen => self.last_end.as_deref(),
        }
    }

    /// Whether it has ever started.
    #[must_use]
    pub const fn has_started(&self) -> bool {
        match self.state {
            State::Waiting => self.last_end.is_some(),
            State::Running(_) | State::Ended(_) | State::EndedUnseen => true,
        }
    }
}

impl ContainerEnd {
    /// Whether it failed.
    #[must_use]
    pub const fn failed(&self) -> bool {
        self.exit_code != 0
    }
}

impl Pod {
    /// Reads a Pod. `None`: it does not carry the labels of the mark, or no name or UID.
    #[must_use]
    pub fn read(pod: &StoredPod) -> Option<Self> {
        let metadata = &pod.metadata;
        let status = pod.status.as_ref();
        let template = Template::read(pod)?;
        let restart = metadata.labels.as_ref().and_then(|labels| labels.get(RESTART_LABEL));
        let uid = metadata.uid.as_ref()?;
        let accounted = metadata.annotations.as_ref().and_then(|all| all.get(ACCOUNTED_ANNOTATION));
        let observed = status.and_then(|status| status.observed_generation);
        let text = |of: fn(&PodStatus) -> &Option<String>| {
            status.and_then(|status| of(status).as_deref()).unwrap_or_default()
        };
        let disrupted = condition(status, "DisruptionTarget", "True");
        Some(Self {
            name: metadata.name.as_deref()?.into(),
            uid: uid.as_str().into(),
            restart: restart
                .and_then(|text| text.parse().ok())
                .map_or(0, |restart: u64| restart.min(MOST)),
            created_at: metadata.creation_timestamp.as_ref().map(Timestamp::from)?,
            grace_period: pod
                .spec
                .as_ref()
                .and_then(|spec| spec.termination_grace_period_seconds)
                .unwrap_or(GRACE_PERIOD),
            deletion: metadata.deletion_timestamp.as_ref().map(|at| Deletion {
                at: Timestamp::from(at),
                grace: metadata.deletion_grace_period_seconds.unwrap_or_default(),
            }),
            phase: match text(|status| &status.phase) {
                "Succeeded" => Phase::Succeeded,
                "Failed" => Phase::Failed,
                _ => Phase::Open,
            },
            reason: text(|status| &status.reason).into(),
            message: short(text(|status| &status.message)),
            node: pod.spec.as_ref().and_then(|spec| Some(spec.node_name.as_deref()?.into())),
            bound_at: condition(status, "PodScheduled", "True")
                .and_then(since)
                .or_else(|| status.and_then(|status| status.start_time.as_ref().and_then(real))),
            unready_since: unready_since(status),
            disruption: disrupted.map(|disrupted| {
                let reason = disrupted.reason.as_deref().unwrap_or_default().into();
                Box::new(Disruption { reason, at: since(disrupted) })
            }),
            generations: metadata
                .generation
                .zip(observed)
                .map(|(current, observed)| Generations { current, observed }),
            containers: containers(status, &template),
            template: Arc::new(template),
            finalizer: metadata.finalizers.iter().flatten().any(|it| it == ACCOUNTING_FINALIZER),
            accounted: accounted == Some(uid),
        })
    }

    /// Takes over the texts of another version of it, or of another Pod, as far as they are equal.
    pub fn share_with(&mut self, sibling: &Self) {
        if self.uid == sibling.uid {
            self.uid = Arc::clone(&sibling.uid);
        }
        if self.template == sibling.template {
            self.template = Arc::clone(&sibling.template);
            for container in &mut self.containers {
                container.name = self.template.container_name(&container.name);
            }
        }
    }

    /// Whether its phase is one that it does not leave.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        match self.phase {
            Phase::Succeeded | Phase::Failed => true,
            Phase::Open => false,
        }
    }
}

fn containers(status: Option<&PodStatus>, template: &Template) -> Box<[Container]> {
    let Some(status) = status else { return Box::default() };
    let init = status.init_container_statuses.iter().flatten();
    let all = init.chain(status.container_statuses.iter().flatten());
    all.map(|status| container(status, template)).collect()
}

fn container(status: &ContainerStatus, template: &Template) -> Container {
    let end = |state: &Option<ContainerState>| match state.as_ref().map_or(State::Waiting, state_of)
    {
        State::Ended(end) => Some(end),
        State::Waiting | State::Running(_) | State::EndedUnseen => None,
    };
    Container {
        name: template.container_name(&status.name),
        restarts: u64::try_from(status.restart_count).unwrap_or_default(),
        state: status.state.as_ref().map_or(State::Waiting, state_of),
        last_end: end(&status.last_state),
    }
}

fn state_of(state: &ContainerState) -> State {
    let Some(ended) = &state.terminated else {
        let running = state.running.as_ref();
        return running.map_or(State::Waiting, |running| {
            State::Running(running.started_at.as_ref().and_then(real))
        });
    };
    let reason = ended.reason.as_deref().unwrap_or_default();
    match ended.finished_at.as_ref().and_then(real) {
        Some(at) if reason != STATUS_UNKNOWN => State::Ended(Box::new(ContainerEnd {
            exit_code: ended.exit_code,
            reason: reason.into(),
            message: short(ended.message.as_deref().unwrap_or_default()),
            began: ended.started_at.as_ref().and_then(real),
            at,
        })),
        Some(_) | None => State::EndedUnseen,
    }
}

/// A message, as far as a record may have it: a Pod may have one of kilobytes for each of its containers.
fn short(message: &str) -> Box<str> {
    message.chars().take(MESSAGE).collect()
}

fn condition<'a>(
    status: Option<&'a PodStatus>,
    type_: &str,
    value: &str,
) -> Option<&'a PodCondition> {
    let mut all = status?.conditions.iter().flatten();
    all.find(|condition| condition.type_ == type_ && condition.status == value)
}

/// A Pod is not ready before its containers start, either: a kubelet writes that together with `Initialized`, or before it.
fn unready_since(status: Option<&PodStatus>) -> Option<Timestamp> {
    let unready = condition(status, "Ready", "False").and_then(since)?;
    let initialized = condition(status, "Initialized", "True").and_then(since);
    initialized.is_none_or(|initialized| unready > initialized).then_some(unready)
}

fn since(condition: &PodCondition) -> Option<Timestamp> {
    condition.last_transition_time.as_ref().and_then(real)
}

/// Kubernetes writes zeros for instants that nobody knows.
fn real(time: &Time) -> Option<Timestamp> {
    Some(Timestamp::from(time)).filter(|at| *at > Timestamp(0))
}

#[cfg(test)]
mod tests;
