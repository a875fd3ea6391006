//! What became of a schedule, whichever program it was of.

use std::{
    fmt::{self, Debug},
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::violation::Violation;

/// What became of a schedule, as far as many of them are added up. It shows its numbers in words.
pub trait Outcome: fmt::Display + Default + Send {
    /// What a schedule may break.
    type Rule: Debug + Send;

    /// That of a schedule that broke a rule, and of which nothing else is known.
    fn broken(violation: Violation<Self::Rule>) -> Self;

    /// Adds the numbers of another schedule.
    fn add(&mut self, other: &Self);

    /// Whether two processes acted at once.
    fn had_two_leaders(&self) -> bool;

    /// Takes the first rule that was broken out of it.
    fn take_violation(&mut self) -> Option<Violation<Self::Rule>>;
}

/// What becomes of a schedule; a panic breaks the rule `no_panic`.
pub fn caught<O: Outcome>(no_panic: O::Rule, schedule: impl FnOnce() -> O) -> O {
    catch_unwind(AssertUnwindSafe(schedule))
        .unwrap_or_else(|_| O::broken(Violation { rule: no_panic, what: "a panic".into() }))
}
