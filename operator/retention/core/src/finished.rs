//! When an object has finished, how, and why: one file for each kind whose end is known, and one for all others, which
//! are described by the policy (`docs/retention.md`, R9 to R13).
//!
//! An object is read from its text, in which everything that does not matter is passed over, however big it is.

mod conditions;
pub mod configured;
mod job;
mod job_set;
mod pod;
mod pruned;
mod record;
mod test;
mod train_job;
mod workload;

use std::sync::Arc;

use self::configured::Configured;
use crate::{kind::BuiltIn, outcome::Reading};

/// What finished means to a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Definition {
    /// What it means for a kind that is known.
    BuiltIn(BuiltIn),
    /// What the policy says.
    Configured(Box<Configured>),
}

impl Definition {
    /// Reads an object in this sense.
    ///
    /// # Errors
    ///
    /// If the text is no object, or fields that every object of the kind has are not of their type.
    pub fn read(&self, object: &str) -> Result<Reading, serde_json::Error> {
        match self {
            Self::BuiltIn(kind) => read(*kind, object),
            Self::Configured(configured) => configured.read(object),
        }
    }
}

/// The definitions that are in use, each once, so that equal ones are found to be equal without a look at their parts.
#[derive(Debug, Default)]
pub struct Definitions(Vec<Arc<Definition>>);

impl Definitions {
    /// The shared copy of a definition.
    pub fn share(&mut self, definition: Definition) -> Arc<Definition> {
        if let Some(shared) = self.0.iter().find(|shared| ***shared == definition) {
            return Arc::clone(shared);
        }
        let shared = Arc::new(definition);
        self.0.push(Arc::clone(&shared));
        shared
    }

    /// Forgets the definitions that nobody has any more.
    pub fn forget_unused(&mut self) {
        self.0.retain(|definition| Arc::strong_count(definition) > 1);
    }
}

/// Reads an object of a kind that is known.
///
/// # Errors
///
/// As [`Definition::read`].
pub fn read(kind: BuiltIn, object: &str) -> Result<Reading, serde_json::Error> {
    match kind {
        BuiltIn::Job => job::read(object),
        BuiltIn::Pod => pod::read(object),
        BuiltIn::JobSet => job_set::read(object),
        BuiltIn::TrainJob => train_job::read(object),
        BuiltIn::Workload => workload::read(object),
        BuiltIn::TrainJobRecord => record::read(object),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_definitions_are_one_until_nobody_has_them() {
        let mut definitions = Definitions::default();
        let [job, again, pod] = [BuiltIn::Job, BuiltIn::Job, BuiltIn::Pod]
            .map(|kind| definitions.share(Definition::BuiltIn(kind)));
        assert!(Arc::ptr_eq(&job, &again) && !Arc::ptr_eq(&job, &pod));
        drop((job, again));
        definitions.forget_unused();
        assert_eq!(definitions.0, [pod]);
    }
}
