//! Interleavings of everything that can happen around the operator's core, by the million.
//!
//! A small model of the API server ([`server`]) and of the operator's shell ([`operator`]) run under a
//! seeded scheduler ([`schedule`]): watches lag and are out of step with one another, requests and
//! replies are lost, late or refused, passes go on without them, operators crash, two of them act at once, what they know of the time
//! differs and is lost, and users and controllers interfere at any moment. What may never happen is judged where a decision
//! is made and where a request takes effect; what must happen is judged when, in the end, faults have
//! stopped and time has passed.
//!
//! The same seed gives the same schedule, so every failure can be seen again.

pub mod accounting;
pub mod defect;
pub mod objects;
pub mod operator;
pub mod outcome;
pub mod parallel;
pub mod random;
pub mod retention;
pub mod rule;
pub mod schedule;
pub mod server;
pub mod totals;
pub mod view;
pub mod violation;

pub use defect::Defect;
pub use rule::Rule;
pub use schedule::{Options, Report, explore, run};
pub use totals::Totals;
pub use violation::Violation;
