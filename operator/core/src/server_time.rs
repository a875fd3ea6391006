//! The API server's time, estimated from the `Date` of its answers.
//!
//! An answer was made between the instant its request was sent and the instant its head arrived. Its `Date` is the
//! server's clock then, cut off to the second. So each answer bounds the difference between the server's clock and a
//! clock of this machine that nobody sets, from both sides. The bounds of many answers together are much closer than
//! those of one: an answer from just before the turn of a second bounds the difference from above, one from just after
//! it from below.
//!
//! * [`Interval`]: where a difference lies; one [`Sample`] gives one.
//! * [`Estimator`]: what all answers say together, how old they may be, and what happens when they contradict
//!   each other.
//! * [`Planner`]: when it is worth asking the API server for nothing but its time.
//!
//! The clock of this machine is one that goes on while the machine sleeps (`CLOCK_BOOTTIME`). It may be too fast or too
//! slow by [`DRIFT_PPM`], compared with that of the server. Everything here is in microseconds.

mod estimator;
mod interval;
mod planner;
#[cfg(test)]
mod simulation;

pub use self::{
    estimator::{Estimator, Jump, Reading},
    interval::{DRIFT_PPM, Interval, Micros, Sample, micros},
    planner::{Planner, Precision},
};
