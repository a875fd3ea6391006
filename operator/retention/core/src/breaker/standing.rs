//! How it stands with an object that is due: whether that was to be expected (R41).

use trainjob_api::time::Timestamp;

use super::{
    limits::{OWNER_ASKED_WITHIN, SLACK},
    object::{DueObject, News, OwnerEnd},
};

/// How it stands with an object that is due (R41).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It was to be expected, or was let go.
    Expected {
        /// Since when that is known.
        since: Timestamp,
    },
    /// It was not, and waits to be counted.
    Waiting {
        /// Since when that is known.
        since: Timestamp,
    },
    /// It was not, unless it is due later than it seems: that is decided when its owner is known (R24).
    Unknown {
        /// What it is decided by.
        looked: Looked,
    },
}

impl Standing {
    /// How it stands with an object that has become due, after all this was looked at.
    pub(super) fn of(object: &DueObject, news: News, looked: Looked, now: Timestamp) -> Self {
        if news == News::End || looked.expects(object) {
            return Self::Expected { since: now };
        }
        match object.owner {
            OwnerEnd::Unknown => Self::Unknown { looked },
            OwnerEnd::Irrelevant | OwnerEnd::Decides => Self::Waiting { since: now },
        }
    }
}

/// Until when everything that was due has been looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looked {
    /// At what time made due.
    through: Timestamp,
    /// At what the end of an owner made due.
    owners: Timestamp,
}

impl Looked {
    /// By this process, which knows of each end of an owner when an answer brings it.
    pub(super) const fn here(until: Timestamp) -> Self {
        Self { through: until, owners: until }
    }

    /// By another one, which has stored that. It may have asked for an owner long before.
    pub(super) const fn stored(through: Timestamp) -> Self {
        Self { through, owners: through.plus(-OWNER_ASKED_WITHIN) }
    }

    /// Whether an object was not due by then, so that time made it due.
    pub(super) fn expects(self, object: &DueObject) -> bool {
        let until = match object.owner {
            OwnerEnd::Decides => self.owners,
            OwnerEnd::Irrelevant | OwnerEnd::Unknown => self.through,
        };
        object.due >= until.plus(-SLACK)
    }
}
