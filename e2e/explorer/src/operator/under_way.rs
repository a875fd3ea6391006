//! A pass that is under way, and what may become of the request that it waits for.

use trainjob_core::{Now, pass};

use crate::{
    server::requests::{Answer, Refusal, Request},
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

/// What becomes of the request, or the answer, that a pass waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It does not, and the operator notices.
    Lost,
    /// The operator gives it up; the request may arrive later.
    GivenUp,
    /// Something on the way refuses it.
    Refused(Refusal),
}
