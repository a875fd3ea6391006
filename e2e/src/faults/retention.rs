//! Where the retention engine is disturbed: a box with kinds that it deletes, and for each case a namespace with an engine
//! behind a proxy.
//!
//! Nothing but the API server runs in the box, so whoever plays a case says himself how objects end. An engine sees its own
//! namespace only, so that many cases are played side by side. Each is judged by what the API server stored and what the
//! engine asked for ([`invariants::retention`]).

mod ground;
mod life;
mod objects;
mod place;
mod slot;

pub(super) use life::{live, terms};

pub use ground::{Ground, Testbed};
pub use objects::{KINDS, Kind, QUEUED, definition, job, policy, run};
pub use place::Place;
