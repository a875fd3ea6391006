//! The ends of an object, which are mostly one.

use std::{
    ops::{Deref, DerefMut},
    slice,
    sync::Arc,
};

use crate::{finished::Definition, maybe_timestamp::MaybeTimestamp, outcome::Ending};

/// The end of an object by one definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The definition.
    pub definition: Arc<Definition>,
    /// When; `None` if nothing tells.
    pub time: MaybeTimestamp,
    /// How.
    pub ending: Arc<Ending>,
}

impl Deref for Finish {
    type Target = Ending;

    fn deref(&self) -> &Ending {
        &self.ending
    }
}

impl DerefMut for Finish {
    fn deref_mut(&mut self) -> &mut Ending {
        Arc::make_mut(&mut self.ending)
    }
}

/// Ends by several definitions. One takes no room of its own.
#[derive(Debug, Clone)]
pub struct Finishes(Ends);

#[derive(Debug, Clone)]
enum Ends {
    One(Finish),
    Several(Box<[Finish]>),
}

impl From<Vec<Finish>> for Finishes {
    fn from(finishes: Vec<Finish>) -> Self {
        Self(match <[Finish; 1]>::try_from(finishes) {
            Ok([finish]) => Ends::One(finish),
            Err(finishes) => Ends::Several(finishes.into()),
        })
    }
}

impl<const COUNT: usize> From<[Finish; COUNT]> for Finishes {
    fn from(finishes: [Finish; COUNT]) -> Self {
        Vec::from(finishes).into()
    }
}

impl Deref for Finishes {
    type Target = [Finish];

    fn deref(&self) -> &[Finish] {
        match &self.0 {
            Ends::One(finish) => slice::from_ref(finish),
            Ends::Several(finishes) => finishes,
        }
    }
}

impl PartialEq for Finishes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Finishes {}
