//! The decisions of the accounting of TrainJobs: every Pod is counted once, into a record that outlives it.
//!
//! Everything here is pure: what was read of Pods, TrainJob and record, and the time, go in; decisions come out. The
//! rules are those of `docs/accounting.md`.
//!
//! * [`clock`], [`settings`]: the time, and what can be set.
//! * [`pod`], [`job`]: what decisions need to know of a Pod and of the TrainJob.
//! * [`end`]: whether a Pod has ended (AE1); [`span`]: how long it is charged for (AT1 to AT3); [`amounts`]: for how
//!   much (AT4); [`verdict`]: how it ended, and why (AE2); [`share`]: all of that together.
//! * [`ledger`]: how shares add up in a record, and what was lost (AW1, AW2).
//! * [`tracked`]: what is known of a Pod, and how news change it.
//! * [`backoff`]: when what failed is tried again (AG8).
//! * [`plan`](mod@plan): the algorithm, and why it counts each Pod once (AG1 to AG12).
//! * [`keeper`]: what one process knows of a record, and the requests that follow.
//! * [`holding`]: how long a Pod is held (AH1 to AH8); [`answer`]: what a failed request means.

pub mod amounts;
pub mod answer;
pub mod backoff;
pub mod clock;
pub mod end;
pub mod holding;
pub mod job;
pub mod keeper;
pub mod ledger;
pub mod plan;
pub mod pod;
pub mod settings;
pub mod share;
pub mod span;
pub mod tracked;
pub mod verdict;

#[cfg(test)]
mod testing;
