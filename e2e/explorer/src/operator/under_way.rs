//! A pass that is under way, and what may become of the request that it waits for.

use std::time::Duration;

use trainjob_core::{Now, action::Action, pass, priority::Priority};

use crate::{
    server::requests::{Answer, Call, Refusal, Request},
    view::View,
};

/// A pass that is under way.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) machine: pass::Pass,
    pub(super) planned: Option<Planned>,
    pub(super) under_way: Option<UnderWay>,
}

/// What the plan that is carried out was made on, and when.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) view: View,
    pub(super) at: Now,
}

/// A request that the pass waits for.
#[derive(Debug)]
pub(super) enum UnderWay {
    Sent(Box<Request>),
    Served(Box<Request>, Answer),
}

/// A check for Pods that no pass waits for any more.
#[derive(Debug)]
pub(super) struct LateCheck {
    pub(super) name: usize,
    pub(super) asked: Duration,
    pub(super) worked_in: Priority,
    pub(super) under_way: UnderWay,
}

impl UnderWay {
    /// Whether it is a check for Pods, which a pass may go on without.
    pub(super) fn is_check(&self) -> bool {
        let (Self::Sent(request) | Self::Served(request, _)) = self;
        matches!(request.call, Call::Act(Action::CheckPods { .. }))
    }
}

/// What becomes of the request, or the answer, that a pass waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It does not, and the operator notices.
    Lost,
    /// The operator gives it up; the request may arrive later.
    GivenUp,
    /// The pass goes on without it, if it is a check for Pods; else it arrives.
    Later,
    /// Something on the way refuses it.
    Refused(Refusal),
}
