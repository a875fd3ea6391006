//! The admission server for `TrainJob` and the two runtime kinds.
//!
//! A process of its own, separate from the operator, so that admission stays up while the operator
//! restarts, and the other way round. It terminates TLS, reads an `AdmissionReview`, asks the pure
//! functions of `trainjob_core::admission` for defaults and verdicts, and answers. It holds no state but
//! watch caches of runtimes and of the limits of namespaces, needs no leader, and serves from any number of replicas. The rules themselves are in `operator/core/src/admission`, one file a rule.
//!
//! | module | what it does |
//! |---|---|
//! | [`server`], [`connections`](trainjob_process::connections), [`tls`](trainjob_process::tls) | TLS and HTTP; nobody can close it |
//! | [`bodies`], [`large`] | how much of requests is held at once, and what yields to what |
//! | [`review`], [`fields`] | what is asked, and what is answered |
//! | [`task`], [`handler`] | from one to the other |
//! | [`runtimes`], [`namespaces`], [`lookup`] | what a verdict depends on |
//! | [`certificate`] | the serving certificate, from files or from an authority of its own |
//! | [`metrics`], [`manual`], [`run`] | how it goes, what it says of itself, and everything together |

pub mod bodies;
pub mod certificate;
mod change;
mod dropped;
pub mod fields;
pub mod handler;
pub mod kinds;
pub mod large;
pub mod lookup;
pub mod manual;
pub mod metrics;
pub mod namespaces;
pub mod review;
pub mod run;
pub mod runtimes;
pub mod server;
pub mod task;
