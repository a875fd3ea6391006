//! What had to be asked about an object because its facts do not tell it.

use trainjob_api::time::Timestamp;

use crate::wish::HoldWish;

/// All that was asked and is still true. Whoever asks says how long that is: a minute for an owner
/// (`docs/retention.md`, R24).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answers {
    /// How its controller owner is; `None` if that is not known.
    pub owner: Option<OwnerAnswer>,
    /// Whether a TrainJob that its deadline failed is released; `None` if that is not known.
    pub release: Option<Release>,
    /// Whether its Pods are known to be deleted.
    pub pods_deleted: bool,
}

/// How a controller owner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerAnswer {
    /// There is none of this name, or it has another UID.
    Gone,
    /// It is there.
    Found(FoundOwner),
}

/// A controller owner that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoundOwner {
    /// When it finished; `None` if it has not, or if what that means for its kind, or when it was, is not known.
    pub finished: Option<Timestamp>,
    /// Whether it has a controller owner itself.
    pub owned: bool,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// A hold that it asks for.
    pub hold: Option<HoldWish>,
}

/// Whether a TrainJob is released: its JobSet and its Pods are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Something of it is there.
    Pending,
    /// Nothing is.
    Done,
}
