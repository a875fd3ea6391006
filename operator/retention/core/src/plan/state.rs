//! As what an object is counted, and what is to be done about it.

/// As what a governed object is counted, beside being finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It waits for its time.
    Pending,
    /// Its time has come.
    Due,
    /// It is kept for ever by a rule, or as long as it is not known what all policies say of it.
    Kept,
    /// A hold moves its time.
    Held,
    /// It has an owner: one that is unfinished, not known yet, or for whose sake it is left alone.
    Owned,
    /// It would go but for a guard.
    Guarded,
    /// It can only go together with its owner, which the rule does not say, or which there is not.
    NeedsOwner,
    /// It lacks a label by which the rule makes groups.
    Ungrouped,
    /// Nothing tells when it finished.
    NoFinishTime,
    /// It is being deleted, or its owner is.
    Terminating,
    /// The kind's own controller deletes it before bounds, hold or rule would let it go, and cannot be stopped.
    NativeTtl,
}

impl State {
    /// All there are.
    pub const ALL: [Self; 11] = [
        Self::Pending,
        Self::Due,
        Self::Kept,
        Self::Held,
        Self::Owned,
        Self::Guarded,
        Self::NeedsOwner,
        Self::Ungrouped,
        Self::NoFinishTime,
        Self::Terminating,
        Self::NativeTtl,
    ];
}

/// What is to be done now. All deletions are fenced by UID and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Nothing,
    /// Something has to be known first.
    Ask(Question),
    /// Delete the Pods of the object.
    DeletePods,
    /// Delete the object.
    DeleteObject,
    /// Delete its controller owner.
    DeleteOwner,
}

/// What has to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// How its controller owner is.
    Owner,
    /// Whether the TrainJob is released.
    Release,
}
