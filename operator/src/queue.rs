//! The engine's queue and places, with the keys and priorities of TrainJobs.

use trainjob_core::{facts::ObjectKey, priority::Priority};
use trainjob_engine::{limit, places, queue};

/// Jobs that wait to be worked on.
pub type Queue = queue::Queue<ObjectKey, Priority>;

/// A place for the requests of a pass.
pub type Place = places::Place<Priority>;

/// The configured limit on requests.
pub type Limiter = limit::Limiter<Priority>;
