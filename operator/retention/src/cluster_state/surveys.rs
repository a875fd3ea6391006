//! When what was found of an object does not hold any more.

use trainjob_api::time::Timestamp;
use trainjob_retention_core::keep_last::Groups;

use super::{found::Register, object::Object, objects::Objects};

/// Of so many objects, each survey plans anew for one that seems not to have changed: what was lost is found after a while.
const ROUNDS: usize = 32;
/// Before a survey so many policies may be in the register that are not there any more.
const GONE: usize = 64;

/// What numbers were counted of: as long as it is the same, they differ by time alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Basis {
    objects: u64,
    groups: u32,
    edition: u32,
}

/// What the surveys of a kind need.
#[derive(Debug, Default)]
pub(super) struct Surveys {
    register: Register,
    /// How often the register was begun anew.
    registers: u32,
    /// How often everything had to be found anew.
    edition: u32,
    /// When the last one was made.
    last: Option<Timestamp>,
    /// How many there were.
    count: usize,
}

impl Surveys {
    /// What was found of any object does not count any more.
    pub(super) const fn forget_found(&mut self) {
        self.edition = self.edition.wrapping_add(1);
    }

    /// By which numbers policies and rules are remembered.
    pub(super) const fn register(&self) -> &Register {
        &self.register
    }

    /// The same, to enter others.
    pub(super) const fn register_mut(&mut self) -> &mut Register {
        &mut self.register
    }

    /// How often the register was begun anew.
    pub(super) const fn registers(&self) -> u32 {
        self.registers
    }

    /// A survey begins.
    pub(super) fn begin(&mut self, policies: usize, now: Timestamp) {
        self.count = self.count.wrapping_add(1);
        if self.register.len() > policies.saturating_add(GONE) {
            (self.register, self.registers) = (Register::default(), self.registers.wrapping_add(1));
            self.forget_found();
        }
        if self.last.replace(now).is_some_and(|last| now < last) {
            // What was found holds from then on.
            self.forget_found();
        }
    }

    /// In which edition of all that it depends on something is found of an object.
    pub(super) const fn edition(&self, object: &Object, groups: &Groups) -> u32 {
        if object.places.is_empty() {
            self.edition
        } else {
            self.edition.wrapping_add(groups.changes())
        }
    }

    /// What the numbers that a survey has counted depend on, beside the time.
    pub(super) const fn basis(&self, objects: &Objects, groups: &Groups) -> Basis {
        Basis { objects: objects.changes(), groups: groups.changes(), edition: self.edition }
    }

    /// Whether an object is planned for although nothing has changed.
    pub(super) const fn checks(&self, index: usize) -> bool {
        index.wrapping_add(self.count).is_multiple_of(ROUNDS)
    }
}
