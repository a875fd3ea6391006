//! Kinds whose end a policy describes (`docs/retention.md`, R6).
//!
//! The first condition that holds tells the end, else the phase. What the controllers of such kinds add before an object
//! can be taken for finished, or after that before it may go, is described beside it.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::conditions::Condition;
pub use super::pruned::{FieldPath, PathError};
use super::pruned::{Fields, Pruned};
use crate::{
    instant,
    metadata::Metadata,
    outcome::{End, Guards, Outcome, Reading},
    pattern::ReasonPattern,
    seconds::Seconds,
};

/// The field that holds the conditions of a kind.
const CONDITIONS: [&str; 2] = ["status", "conditions"];

/// What finished means for a kind, as a policy says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configured {
    description: Description,
    fields: Fields,
}

/// The parts of such a description.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// Conditions that tell an end; the first that holds counts.
    pub conditions: Vec<EndCondition>,
    /// A field that tells an end by its value.
    pub phase: Option<Phase>,
    /// Where the time of the end is; else it is that of the condition.
    pub time: Option<FieldPath>,
    /// Where the reason of the end is; else it is that of the condition, or the phase.
    pub reason: Option<FieldPath>,
    /// Where the number of seconds is after which the kind's own controller deletes the object.
    pub own_ttl: Option<FieldPath>,
    /// What has to be there besides.
    pub required: Vec<Required>,
    /// What shows that something still archives the object.
    pub archive: Option<ArchiveGuard>,
}

/// How an object of a described kind can finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescribedOutcome {
    /// [`Outcome::Succeeded`].
    Succeeded,
    /// [`Outcome::Failed`].
    Failed,
    /// [`Outcome::Other`].
    Other,
}

/// A condition that tells an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndCondition {
    /// Its type.
    pub type_: String,
    /// The status with which it holds: True or False.
    pub status: bool,
    /// The reasons with which it holds; any if there are none.
    pub reasons: Vec<ReasonPattern>,
    /// The outcome it tells.
    pub outcome: DescribedOutcome,
}

/// A field that tells an end by its value. With any other value the object has not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    path: FieldPath,
    outcomes: BTreeMap<String, DescribedOutcome>,
}

/// What has to be there for an object to count as finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Required {
    /// A label of this value.
    Label(Arc<str>, Arc<str>),
    /// A field that is neither absent nor null nor an empty text.
    Field(FieldPath),
}

/// What shows that something still archives an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveGuard {
    /// A label of this value.
    Label(Arc<str>, Arc<str>),
    /// An annotation whose key begins with a prefix, until one of them has a value.
    Annotation {
        /// The prefix.
        prefix: Arc<str>,
        /// The key of the annotation that ends it.
        done: Arc<str>,
        /// Its value then.
        value: Arc<str>,
    },
}

/// Why a description is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// Nothing would ever be finished.
    #[error("neither a condition nor a phase tells the end")]
    NoEnd,
    /// A phase has one outcome.
    #[error("phase {0:?} has two outcomes")]
    Ambiguous(String),
    /// A phase without values tells nothing.
    #[error("no value of the phase tells the end")]
    NoPhases,
}

impl From<DescribedOutcome> for Outcome {
    fn from(outcome: DescribedOutcome) -> Self {
        match outcome {
            DescribedOutcome::Succeeded => Self::Succeeded,
            DescribedOutcome::Failed => Self::Failed,
            DescribedOutcome::Other => Self::Other,
        }
    }
}

impl Phase {
    /// A field with the values that tell an end.
    ///
    /// # Errors
    ///
    /// If there are none, or one has two outcomes.
    pub fn new(
        path: FieldPath,
        values: impl IntoIterator<Item = (String, DescribedOutcome)>,
    ) -> Result<Self, DescriptionError> {
        let mut outcomes = BTreeMap::new();
        for (value, outcome) in values {
            if outcomes.insert(value.clone(), outcome).is_some_and(|other| other != outcome) {
                return Err(DescriptionError::Ambiguous(value));
            }
        }
        if outcomes.is_empty() {
            return Err(DescriptionError::NoPhases);
        }
        Ok(Self { path, outcomes })
    }

    fn end(&self, fields: &Value) -> Option<End> {
        let value = self.path.find(fields)?.as_str()?;
        let outcome = *self.outcomes.get(value)?;
        Some(End::new(outcome.into(), value, None))
    }
}

impl Configured {
    /// Takes a description.
    ///
    /// # Errors
    ///
    /// If nothing in it tells an end.
    pub fn new(description: Description) -> Result<Self, DescriptionError> {
        if description.conditions.is_empty() && description.phase.is_none() {
            return Err(DescriptionError::NoEnd);
        }
        let conditions = FieldPath::parse(&CONDITIONS.join(".")).ok();
        let Description { phase, time, reason, own_ttl, required, .. } = &description;
        let required = required.iter().filter_map(|required| match required {
            Required::Label(..) => None,
            Required::Field(path) => Some(path),
        });
        let phase = phase.iter().map(|phase| &phase.path);
        let paths = conditions.iter().chain(phase).chain(time).chain(reason).chain(own_ttl);
        let fields = paths.chain(required).collect();
        Ok(Self { description, fields })
    }

    /// Reads an object.
    ///
    /// # Errors
    ///
    /// If the text is no object, or its metadata are not.
    pub fn read(&self, object: &str) -> Result<Reading, serde_json::Error> {
        let Pruned { metadata, fields } = self.fields.read(object)?;
        let end = self.end(&metadata, &fields);
        let own_ttl = self.description.own_ttl.as_ref();
        let own_ttl = own_ttl.and_then(|path| Seconds::new(path.find(&fields)?.as_i64()?));
        let archive = &self.description.archive;
        let archive = archive.as_ref().is_some_and(|guard| guard.is_active(&metadata));
        let guards = Guards { archive, release: false };
        Ok(Reading { own_ttl, guards, ..Reading::new(metadata, end) })
    }

    fn end(&self, metadata: &Metadata, fields: &Value) -> Option<End> {
        let Description { conditions, phase, time, reason, required, .. } = &self.description;
        if !required.iter().all(|required| required.is_met(metadata, fields)) {
            return None;
        }
        let stored = conditions_in(fields);
        let by_condition = conditions.iter().find_map(|condition| condition.end(&stored));
        let mut end = by_condition.or_else(|| phase.as_ref()?.end(fields))?;
        let field = |path: &Option<FieldPath>| path.as_ref()?.find(fields);
        if let Some(reason) = field(reason).and_then(Value::as_str) {
            reason.clone_into(&mut end.reason);
        }
        end.time = field(time).and_then(instant::usable).or(end.time);
        Some(end)
    }
}

/// The conditions in a status; what is not a condition is passed over.
fn conditions_in(fields: &Value) -> Vec<Condition> {
    let [status, conditions] = CONDITIONS;
    let list = fields.get(status).and_then(|status| status.get(conditions)?.as_array());
    let conditions = list.into_iter().flatten();
    conditions.filter_map(|condition| serde_json::from_value(condition.clone()).ok()).collect()
}

impl EndCondition {
    fn end(&self, conditions: &[Condition]) -> Option<End> {
        let status = if self.status { "True" } else { "False" };
        let holds = |condition: &&Condition| {
            condition.type_ == self.type_
                && condition.status == status
                && (self.reasons.is_empty()
                    || self.reasons.iter().any(|reason| reason.matches(&condition.reason)))
        };
        Some(conditions.iter().find(holds)?.end(self.outcome.into()))
    }
}

impl Required {
    fn is_met(&self, metadata: &Metadata, fields: &Value) -> bool {
        match self {
            Self::Label(key, value) => has_label(metadata, key, value),
            Self::Field(path) => path.find(fields).is_some_and(|field| field != ""),
        }
    }
}

impl ArchiveGuard {
    fn is_active(&self, metadata: &Metadata) -> bool {
        match self {
            Self::Label(key, value) => has_label(metadata, key, value),
            Self::Annotation { prefix, done, value } => {
                let annotations = &metadata.annotations;
                annotations.keys().any(|key| key.starts_with(&**prefix))
                    && annotations.get(&**done).is_none_or(|stored| **stored != **value)
            }
        }
    }
}

fn has_label(metadata: &Metadata, key: &str, value: &str) -> bool {
    metadata.labels.get(key).is_some_and(|stored| stored == value)
}

#[cfg(test)]
mod tests;
