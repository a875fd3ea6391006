//! The decisions of the TrainJob operator, as pure functions.
//!
//! One function is the operator's mind: [`plan`](plan::plan) takes what was [observed](observed) of
//! one TrainJob and the time, and returns the [actions](action) to take now and the instant at which
//! to ask again. It never fails, never panics and always gives the same answer to the same question.
//! Carrying out the actions is the business of the `trainjob-operator` crate.
//!
//! Nothing here knows that a network, a clock or an async runtime exists; a test keeps it so.
//!
//! * [`facts`]: the few facts about an object that decisions need, parsed once.
//! * [`observed`]: everything one decision is made on.
//! * [`plan`](mod@plan): the rules, in the order in which they win.
//! * [`action`]: everything this operator can ever do to a cluster.
//! * [`pass`]: how a plan is carried out, and what is remembered until the next.
//! * [`event`]: what users are told in events.
//! * [`out_of_memory`]: which container of a failed job was killed for its memory.
//! * [`running_pods`]: which Pods hold up a release, and why they probably still run.
//! * [`priority`]: which work goes first.
//! * [`undiscovered`]: how long an API server that does not know the kind yet is waited for.
//! * [`job_stats`]: how all jobs are, in numbers.
//! * [`lease`]: which of several replicas works.
//! * [`lifecycle`]: deadline, release, TTL and status, one file a rule.
//! * [`admission`]: what is refused, warned of and filled in before an object is stored.
//! * [`build`]: from a TrainJob and its runtime to the objects it becomes.

pub mod action;
pub mod admission;
pub mod build;
mod children;
pub mod event;
pub mod facts;
mod framework;
pub mod job_stats;
pub mod lease;
pub mod lifecycle;
pub mod observed;
pub mod out_of_memory;
pub mod pass;
pub mod plan;
pub mod priority;
pub mod running_pods;
pub mod undiscovered;

pub use action::{Action, Plan};
pub use observed::Observed;
pub use plan::plan;
