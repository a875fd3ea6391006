//! A step of a job's children.

use trainjob_api::{conditions::Reason, time::Timestamp};

use crate::action::{Action, Waiting};

/// What to do next for a job's children.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) actions: Vec<Action>,
    pub(crate) obstacle: Option<Obstacle>,
    /// See [`Plan::applied_spec_hash`](crate::action::Plan::applied_spec_hash).
    pub(crate) applied_spec_hash: Option<u64>,
    /// When time alone changes the answer.
    pub(crate) next: Option<Timestamp>,
}

/// What keeps a job from its children.
#[derive(Debug)]
pub(crate) struct Obstacle {
    pub(crate) waiting: Waiting,
    /// What users are told of it; `None` where it is gone in a moment.
    pub(crate) told: Option<Told>,
}

/// The reason and message of a `Waiting` condition.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

impl Step {
    pub(super) fn act(actions: Vec<Action>) -> Self {
        Self { actions, ..Self::default() }
    }

    pub(super) fn wait(waiting: Waiting, reason: Reason, message: String) -> Self {
        let told = Some(Told { reason, message });
        Self { obstacle: Some(Obstacle { waiting, told }), ..Self::default() }
    }
}
