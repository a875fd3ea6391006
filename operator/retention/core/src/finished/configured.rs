//! Kinds whose end a policy describes (`docs/retention.md`, R6).
//!
//! The first condition that holds tells the end, else the phase. What the controllers of such kinds add before an object
//! can be taken for finished, or after that before it may go, is described beside it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    conditions::Condition,
    pruned::{Fields, Pruned},
    test,
};
pub use super::{
    pruned::{FieldPath, PathError},
    test::{Subject, Test},
};
use crate::{
    instant,
    metadata::Metadata,
    operator::Condition as OperatorCondition,
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
    /// What has to hold besides.
    pub requires: Vec<Test>,
    /// Conditions that tell an end; the first that holds counts.
    pub conditions: Vec<EndCondition>,
    /// A field that tells an end by its value if no condition does.
    pub phase: Option<Phase>,
    /// Where the reason of the end is; else it is that of the condition, or the phase.
    pub reason: Option<FieldPath>,
    /// Where the time of the end is; else it is that of the condition.
    pub time: Option<FieldPath>,
    /// Where the number of seconds is after which the kind's own controller deletes the object.
    pub own_ttl: Vec<OwnTtlField>,
    /// What delays a deletion, such as an archive.
    pub guards: Vec<Guard>,
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

/// A field that tells an end by its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    path: FieldPath,
    outcomes: BTreeMap<String, DescribedOutcome>,
    otherwise: Option<DescribedOutcome>,
}

/// A field by which the kind's own controller deletes the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTtlField {
    /// Where it is.
    pub path: FieldPath,
    /// For which outcomes it is; for all if there are none.
    pub outcomes: Vec<DescribedOutcome>,
}

/// What delays a deletion while all of its tests hold; there is one at least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard(Vec<Test>);

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
    /// Everything would be finished from its creation on.
    #[error("any phase is an end, and nothing else is required")]
    EverythingEnds,
    /// Everything would be guarded for ever.
    #[error("a guard has no tests")]
    EmptyGuard,
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

impl Guard {
    /// Delays deletions while all of these hold.
    ///
    /// # Errors
    ///
    /// If there are none.
    pub fn new(tests: Vec<Test>) -> Result<Self, DescriptionError> {
        if tests.is_empty() { Err(DescriptionError::EmptyGuard) } else { Ok(Self(tests)) }
    }
}

impl Phase {
    /// A field with the values that tell an end, and what any other value tells, and none.
    ///
    /// # Errors
    ///
    /// If no value tells an end, or one has two outcomes.
    pub fn new(
        path: FieldPath,
        values: impl IntoIterator<Item = (String, DescribedOutcome)>,
        otherwise: Option<DescribedOutcome>,
    ) -> Result<Self, DescriptionError> {
        let mut outcomes = BTreeMap::new();
        for (value, outcome) in values {
            if outcomes.insert(value.clone(), outcome).is_some_and(|other| other != outcome) {
                return Err(DescriptionError::Ambiguous(value));
            }
        }
        if outcomes.is_empty() && otherwise.is_none() {
            return Err(DescriptionError::NoPhases);
        }
        Ok(Self { path, outcomes, otherwise })
    }

    fn end(&self, fields: &Value) -> Option<End> {
        let value = self.path.find(fields).and_then(test::text).unwrap_or_default();
        let outcome = self.outcomes.get(&*value).copied().or(self.otherwise)?;
        Some(End::new(outcome.into(), &value, None))
    }
}

impl Configured {
    /// Takes a description.
    ///
    /// # Errors
    ///
    /// If nothing in it tells an end, or everything would be finished at once.
    pub fn new(description: Description) -> Result<Self, DescriptionError> {
        let Description { requires, conditions, phase, reason, time, own_ttl, guards } =
            &description;
        if conditions.is_empty() && phase.is_none() {
            return Err(DescriptionError::NoEnd);
        }
        if requires.is_empty() && phase.as_ref().is_some_and(|phase| phase.otherwise.is_some()) {
            return Err(DescriptionError::EverythingEnds);
        }
        let guards = guards.iter().flat_map(|guard| &guard.0);
        let tested = requires.iter().chain(guards).filter_map(Test::path);
        let phase = phase.iter().map(|phase| &phase.path);
        let own_ttl = own_ttl.iter().map(|field| &field.path);
        let conditions = FieldPath::parse(&CONDITIONS.join(".")).ok();
        let ends = phase.chain(&conditions).chain(reason).chain(time);
        let fields = ends.chain(own_ttl).chain(tested).collect();
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
        let own_ttl = end.as_ref().and_then(|end| self.own_ttl(end.outcome, &fields));
        let hold = |tests: &[Test]| tests.iter().all(|test| test.holds(&metadata, &fields));
        let archive = self.description.guards.iter().any(|guard| hold(&guard.0));
        let guards = Guards { archive, release: false };
        Ok(Reading { own_ttl, guards, ..Reading::new(metadata, end) })
    }

    /// The labels that have to be so, or the object has not finished.
    pub(crate) fn required_labels(&self) -> impl Iterator<Item = (&str, &OperatorCondition)> {
        self.description.requires.iter().filter_map(|test| match &test.subject {
            Subject::Label(key) => Some((&**key, &test.condition)),
            Subject::Field(_) | Subject::Annotation(_) | Subject::Annotations(_) => None,
        })
    }

    /// Whether it says where the kind's own TTL is.
    #[must_use]
    pub const fn has_own_ttl(&self) -> bool {
        !self.description.own_ttl.is_empty()
    }

    fn end(&self, metadata: &Metadata, fields: &Value) -> Option<End> {
        let Description { requires, conditions, phase, reason, time, .. } = &self.description;
        if !requires.iter().all(|test| test.holds(metadata, fields)) {
            return None;
        }
        let stored = conditions_in(fields);
        let by_condition = conditions.iter().find_map(|condition| condition.end(&stored));
        let mut end = by_condition.or_else(|| phase.as_ref()?.end(fields))?;
        let field = |path: &Option<FieldPath>| path.as_ref()?.find(fields);
        let reason = field(reason).and_then(test::text).filter(|reason| !reason.is_empty());
        if let Some(reason) = reason {
            end.reason = reason.into_owned();
        }
        end.time = field(time).and_then(instant::usable).or(end.time);
        Some(end)
    }

    fn own_ttl(&self, outcome: Outcome, fields: &Value) -> Option<Seconds> {
        let is_for = |field: &&OwnTtlField| {
            let mut outcomes = field.outcomes.iter();
            field.outcomes.is_empty() || outcomes.any(|it| Outcome::from(*it) == outcome)
        };
        let mut fields_for = self.description.own_ttl.iter().filter(is_for);
        let value = fields_for.find_map(|field| field.path.find(fields));
        Seconds::new(value?.as_i64()?)
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

#[cfg(test)]
mod tests;
