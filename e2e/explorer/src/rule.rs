//! What has to hold in a schedule of the operator.

/// What has to hold where a decision is made, where a request takes effect, and in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A TTL deletes a job only when the stored job is finished and due, and not before it is released.
    NoEarlyDelete,
    /// Every change names the UID of what it changes, and that is the job's own.
    Identity,
    /// The end of a job is final, and there is one.
    FinalEnd,
    /// Nothing is made or resumed for a job that was seen to have ended or to be terminating.
    NoResurrection,
    /// A deadline fails a job only when the stored job is due, and a completion that was seen wins.
    NoEarlyDeadline,
    /// The end is stored before anything is deleted.
    DurableBeforeDestroy,
    /// A change that depends on an object's content names its version; what runs is what was asked for.
    EditsWin,
    /// No change changes nothing; after a failure nothing is tried again at once.
    BoundedPressure,
    /// In the end no job is left whose TTL is due.
    TtlHappens,
    /// In the end no job is left whose deadline is due, and nothing runs that a deadline stopped.
    DeadlineHappens,
    /// In the end everything is as the job says, and nothing is done any more.
    Convergence,
    /// Nothing panics.
    NoPanic,
    /// What every recorded run is judged by.
    History(invariants::Rule),
}
