//! What the tests of the operator share: a box with the operator in it, a namespace for each test,
//! and faults to put in its way.
//!
//! A test is a scenario about one [`Tenant`]: create a job, wait for what must happen, see that what
//! must not happen does not. When it fails, [`Tenant::explained`] adds what the cluster and the
//! operator have to say about it.

mod events;
pub mod finalizer;
mod leftovers;
mod limits;
mod policy;
mod pool;
mod requests;
mod reviews;
mod runtimes;
pub mod shared;
pub mod status;
pub mod tenant;
mod test_webhook;
pub mod unused;
mod world;

pub use crate::testenv::kwok::COMPLETES_AFTER;
pub use crate::testenv::until::consistently;

pub(crate) use policy::denial;

pub use limits::{LATE, OPERATOR_USER, PATIENCE, SYSTEM};
pub use policy::{Denial, Operation};
pub use pool::{POOL, Pool, PooledBox};
pub use requests::{Request, audit_flags, noted_requests, requests_of};
pub use reviews::Reviews;
pub use runtimes::{
    COMPLETES, FAILS, LITTLE_ROOM, MPI, RUNS, STUBBORN, STUBBORN_SECONDS, VANISHES, fillers, mpi,
    runtime, stubborn, train_job,
};
pub use tenant::Tenant;
pub use test_webhook::{TestWebhook, Verdict};
pub use world::World;
