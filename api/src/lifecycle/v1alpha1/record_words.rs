//! The words of a record: outcomes, classes, reasons, conditions, and what a loss is called.
//!
//! They are one table each, because the record is read back: a word and its value are found both ways.

/// Makes an enum whose values have a word each.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $value:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$of])* $value,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$value,)+];

            /// As the record has it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$value => stringify!($value),)+ }
            }

            /// The value of this word, if this version knows it.
            #[must_use]
            pub fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }
    };
}

words! {
    /// How a TrainJob is, or how it ended.
    Outcome {
        /// It has not finished.
        Running,
        /// It succeeded.
        Complete,
        /// It failed.
        Failed,
        /// Its deadline failed it.
        DeadlineExceeded,
        /// It was deleted before it finished.
        Deleted,
    }
}

words! {
    /// How a Pod ended.
    Class {
        /// It did its work.
        Succeeded,
        /// It failed, by itself or by its node.
        Failed,
        /// Somebody stopped it.
        Deleted,
    }
}

words! {
    /// Why a Pod failed (AE2).
    FailedReason {
        /// The scheduler or the kubelet made room for a Pod of a higher priority.
        Preempted,
        /// The kubelet ended it: its node was short of something or shut down.
        Evicted,
        /// The eviction API ended it.
        Drained,
        /// Its node went away.
        NodeLost,
        /// A device of it was tainted.
        DeviceTaint,
        /// Something else ended it from outside.
        Disrupted,
        /// It ran longer than its own deadline.
        Deadline,
        /// Its node refused it before a container started.
        Rejected,
        /// A container used more memory than it may.
        OOMKilled,
        /// A container ended with an error.
        Error,
        /// It failed, and no container did.
        Unknown,
    }
}

words! {
    /// Why a Pod was stopped (AE2).
    DeletedReason {
        /// It was deleted before it had a node.
        NeverScheduled,
        /// The deadline of its TrainJob ended it.
        Deadline,
        /// Its TrainJob was suspended.
        Suspended,
        /// A restart or a person ended it.
        Stopped,
        /// Somebody removed the finalizer while it ran.
        Unprotected,
    }
}

words! {
    /// What a Pod that was not counted is called.
    Loss {
        /// It went while no program watched.
        Unwatched,
        /// The record could not be written for `holdLimit`.
        RecordUnwritable,
    }
}

words! {
    /// The types of a record's conditions.
    RecordCondition {
        /// Nothing will be added.
        Final,
        /// Every Pod is counted, with its true times.
        Exact,
    }
}

words! {
    /// The reasons of a record's conditions.
    RecordReason {
        /// Final: the TrainJob has finished and no Pod is open.
        AllCounted,
        /// Not final: the TrainJob or Pods of it go on.
        Open,
        /// Not final any more: Pods came after it was.
        Reopened,
        /// Exact.
        Counted,
        /// Not exact: there is no finalizer, so Pods may go unseen.
        Observed,
        /// Not exact: Pods were lost.
        Lost,
        /// Not exact: somebody removed a finalizer.
        Unprotected,
        /// Not exact: a number reached the largest that can be stored.
        Saturated,
        /// Not exact: more resources than a record has room for.
        TooManyResources,
        /// Not exact: the record was deleted and made anew.
        Recreated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_documented_and_found_again() {
        let page = include_str!("../../../../docs/accounting.md");
        macro_rules! check {
            ($($name:ident),+) => { $(for value in $name::ALL {
                assert_eq!($name::of(value.as_str()), Some(*value));
                assert!(page.contains(value.as_str()), "{value:?}");
            })+ };
        }
        check!(Outcome, Class, FailedReason, DeletedReason, Loss, RecordCondition, RecordReason);
        assert_eq!(Outcome::of("Paused"), None);
    }
}
