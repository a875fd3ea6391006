//! The TrainJob controller: watch, cache, queue, requests.
//!
//! The way of data has one direction: [watches](cache::watch) fill the [cache], changed keys wait in
//! the [queue](trainjob_engine::queue), a worker [reconciles](reconcile) one key at a time by driving the pass machine of the core
//! (`trainjob-core`) and [executing](execute) its calls, and what the API server then stores comes back by the
//! watches. A second, tiny way: the Pods of a job that its deadline failed are [asked for](initial_pods).
//! Nothing else writes, but for the [Lease](trainjob_engine::lease) by which several replicas agree on one that works.
//!
//! Nothing here has to survive a restart: every timer and every goal is derived anew from what is
//! stored.

pub mod accounting;
pub mod cache;
pub mod events;
pub mod execute;
pub mod initial_pods;
pub mod kinds;
pub mod legacy_finalizer;
pub mod manual;
pub mod metrics;
pub mod queue;
pub mod reconcile;
pub mod run;
pub mod runtimes;
pub mod secrets;
