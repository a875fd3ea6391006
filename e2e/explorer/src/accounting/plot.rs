//! What can happen in a schedule, beside the normal life of Pods.

use trainjob_accounting_core::answer::Failure;

use crate::random::Random;

/// What may be the matter with a record that cannot be written.
pub(super) const REFUSALS: [Failure; 6] = [
    Failure::Forbidden,
    Failure::Unavailable,
    Failure::Conflict,
    Failure::Unanswered,
    Failure::Invalid,
    Failure::NotServed,
];

/// What happens at the end of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing else.
    None,
    /// The record cannot be written for some time, and this is the answer.
    Refuses(Failure),
    /// The API server is silent for twice as long as Pods may be held.
    Silence,
    /// Somebody deletes the record.
    RecordDeleted,
    /// The namespace is deleted.
    Terminates,
}

/// What can happen in a schedule, beside the normal life of Pods.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is something that happens or does not")]
pub(super) struct Plot {
    /// People remove finalizers and labels, put finalizers back, and write to the record.
    pub(super) people: bool,
    /// Some Pods have no finalizer.
    pub(super) observes: bool,
    /// Pods are deleted by force.
    pub(super) forces: bool,
    /// People delete the record, and somebody else may take its name.
    pub(super) deletes_record: bool,
    /// Another record has the name from the beginning.
    pub(super) name_taken: bool,
    /// The TrainJob is suspended and resumed, fails, meets its deadline or is deleted.
    pub(super) lives: bool,
    /// The JobSet is made anew.
    pub(super) remakes: bool,
    /// Requests are refused now and then, and for a while.
    pub(super) refuses: bool,
    /// By how many seconds the clock of the second process is behind, if there is one.
    pub(super) second: Option<i64>,
    /// How long a Pod is held at most.
    pub(super) hold_limit: u64,
    /// What happens at the end.
    pub(super) turn: Turn,
}

impl Plot {
    pub(super) fn new(random: &mut Random) -> Self {
        let turn = match random.below(100) {
            0..20 => Turn::Refuses(random.pick(&REFUSALS).unwrap_or(Failure::Forbidden)),
            20..30 => Turn::Silence,
            30..40 => Turn::RecordDeleted,
            40..46 => Turn::Terminates,
            _ => Turn::None,
        };
        Self {
            people: random.percent(30),
            observes: random.percent(25),
            forces: random.percent(30),
            deletes_record: random.percent(15),
            name_taken: random.percent(10),
            lives: random.percent(35),
            remakes: random.percent(20),
            refuses: random.percent(40),
            second: random.percent(50).then(|| if random.percent(40) { 3 } else { 0 }),
            hold_limit: if random.percent(40) { 20 } else { 300 },
            turn,
        }
    }

    /// Whether the record has to be that of an undisturbed run, if no Pod was let go, and none was deleted by force before its
    /// end was reported.
    pub(super) const fn is_comparable(self) -> bool {
        let is_left_alone = match self.turn {
            Turn::None | Turn::Silence | Turn::Refuses(_) => true,
            Turn::RecordDeleted | Turn::Terminates => false,
        };
        !self.people
            && !self.observes
            && !self.deletes_record
            && !self.lives
            && is_left_alone
            && matches!(self.second, None | Some(0))
    }
}
