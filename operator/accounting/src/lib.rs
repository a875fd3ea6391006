//! The accounting program: counts the Pods of TrainJobs into records that outlive them (`docs/accounting.md`).
//!
//! The decisions are those of `trainjob-accounting-core`. Here is what carries them out. News go one way:
//!
//! [watches](feed) tell the [book] what there is; what changed waits as a [key] in the queue of `trainjob-engine`; the
//! [accountant] takes it from there, asks the book which [requests] are due, sends them, and tells the book their answers.
//! Pods that no watch shows are [looked for](unlabelled).
//!
//! Two commands see to it that no Pod hangs where the program does not run: [sweep] while it is away, [drain] before it is
//! removed. They, and the leader where it looks for Pods, give namespaces [turns](fair).

pub mod accountant;
pub mod book;
pub mod config;
pub mod drain;
pub mod fair;
pub mod feed;
pub mod key;
pub mod manual;
pub mod metrics;
pub mod news;
pub mod pod_view;
pub mod requests;
pub mod run;
pub mod sweep;
pub mod train_jobs;
pub mod unlabelled;
