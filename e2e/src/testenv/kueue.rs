//! Kueue, with the definitions, RBAC and webhook configurations of its own release.
//!
//! It runs as the `ServiceAccount` of its release and not as an administrator, so that a test sees what its
//! permissions do not allow. The frameworks that it manages are those of its default configuration that the box has.

mod case;
mod controller;
mod install;
mod origin;
mod queues;
mod setting;
mod workload;

pub use case::{Ask, Case, job};
pub use controller::{Kueue, KueueOptions, MANAGER, NAMESPACE, SERVICE_ACCOUNT};
pub use origin::protect_origin;
pub use queues::{GPU, PRIORITY_LABEL, QUEUE_LABEL, Queue, QueueOptions};
pub use setting::{BLOCK, Clock, Setting, single_node, topology_nodes};
pub use workload::{Workload, workloads};
