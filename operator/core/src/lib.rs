//! The decisions of the TrainJob operator, as pure functions.
//!
//! One function is the operator's mind: [`plan`](plan::plan) takes what was [observed](observed) of
//! one TrainJob and the time, and returns the [actions](action) to take now and the instant at which
//! to ask again. It never fails, never panics and always gives the same answer to the same question.
//! Carrying out the actions is the business of the `trainjob-operator` crate.
//!
//! A driver observes a job, has it planned, and carries the plan out as the [`pass`] machine says. Here the TTL of a
//! finished job has passed:
//!
//! ```
//! use std::time::Duration;
//!
//! use trainjob_api::{TrainJob, time::Timestamp};
//! use trainjob_core::{
//!     Action, Now, Observed, facts::JobFacts, mark::Accounting,
//!     observed::{KnownRuntime, Listed, PodGroups, Settings}, plan, priority::Priority,
//!     pass::{Answered, Call, JobMemory, Next, Pass, Reply}, take_over::Comparison,
//! };
//!
//! let job: TrainJob = serde_json::from_value(serde_json::json!({
//!     "metadata": {"namespace": "team", "name": "done", "uid": "1", "resourceVersion": "7"},
//!     "spec": {"runtimeRef": {"name": "torch"}, "ttlSecondsAfterFinished": 60},
//!     "status": {"conditions": [{
//!         "type": "Complete", "status": "True", "reason": "AllJobsCompleted", "message": "",
//!         "lastTransitionTime": "2026-01-01T00:00:00Z",
//!     }]},
//! }))?;
//! let facts = JobFacts::of(&job);
//! let (mut memory, settings) = (JobMemory::default(), Settings::default());
//! let readings = memory.readings();
//! let observed = Observed {
//!     job: &facts, manifest: None, job_set: None, pod_groups: PodGroups::default(),
//!     runtime: KnownRuntime::Absent, readings: &readings, settings: &settings,
//!     accounting: Accounting::default(), comparison: Comparison::Due, listed: Listed::Everything,
//! };
//!
//! // Until then there is nothing to do but to ask again at the right instant.
//! let finished = facts.finished.ok_or("it has ended")?.at;
//! let early = plan(&observed, Now::at(finished));
//! assert_eq!((early.actions, early.next), (vec![], Some(finished.plus(60))));
//!
//! let mut pass = Pass::new(Priority::Cleanup);
//! let since_start = Duration::ZERO;
//! assert_eq!(pass.next(&mut memory, None, since_start), Next::Plan);
//! let due = plan(&observed, Now::at(finished.plus(60)));
//! pass.planned(&observed, due, &memory, since_start);
//! assert_eq!(pass.next(&mut memory, None, since_start), Next::Call);
//! assert!(matches!(pass.call(), Some(Call::Act(Action::DeleteTrainJob(_)))));
//! // The driver sends it. The API server has deleted the job.
//! let answered = pass.answered(&mut memory, Ok(Reply::Done), None, since_start);
//! assert_eq!(answered, Answered::Done);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here knows that a network, a clock or an async runtime exists; a test keeps it so.
//!
//! * [`mark`]: what Pods get so that they are counted.
//! * [`now`]: the time, as far as it is known.
//! * [`server_time`]: how that is estimated.
//! * [`facts`]: the few facts about an object that decisions need, parsed once.
//! * [`observed`]: everything one decision is made on.
//! * [`plan`](mod@plan): the rules, in the order in which they win.
//! * [`action`]: everything this operator can ever do to a cluster.
//! * [`pass`]: how a plan is carried out, and what is remembered until the next.
//! * [`event`]: what users are told in events.
//! * [`out_of_memory`]: which container of a failed job was killed for its memory.
//! * [`running_pods`]: which Pods hold up a release, and why they probably still run.
//! * [`priority`]: which work goes first.
//! * [`queue_position`]: the same for any controller: what its priorities and keys have to say.
//! * [`undiscovered`]: how long an API server that does not know the kind yet is waited for.
//! * [`take_over`]: what a process that begins to work need not look at.
//! * [`job_stats`]: how all jobs are, in numbers.
//! * [`recreation`]: which names a TTL deletes and somebody makes again, over and over.
//! * [`requests`]: what a Pod requests.
//! * [`lease`]: which of several replicas works.
//! * [`lifecycle`]: deadline, release, TTL and status, one file a rule.
//! * [`admission`]: what is refused, warned of and filled in before an object is stored.
//! * [`build`]: from a TrainJob and its runtime to the objects it becomes.
//! * [`scheduler`]: the schedulers that place its Pods together, one file each.
//! * [`text`]: objects that wait, as text.

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
pub mod mark;
pub mod needs_nothing;
pub mod now;
pub mod observed;
pub mod out_of_memory;
pub mod pass;
pub mod plan;
pub mod priority;
pub mod queue_position;
pub mod recreation;
pub mod requests;
pub mod running_pods;
pub mod scheduler;
pub mod server_time;
pub mod take_over;
pub mod text;
pub mod undiscovered;

pub use action::{Action, Plan};
pub use now::Now;
pub use observed::Observed;
pub use plan::plan;
