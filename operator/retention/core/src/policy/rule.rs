//! The parts of a rule.

use std::sync::Arc;

use super::error::PolicyError;
use crate::{
    facts::Finish,
    labels::Labels,
    outcome::Outcome,
    pattern::ReasonPattern,
    pod_label::PodLabel,
    seconds::Seconds,
    selector::{Selector, valid_key},
};

/// How many reasons a rule may name.
const MOST_REASONS: usize = 16;
/// How many labels may make a group.
const MOST_GROUP_LABELS: usize = 4;
/// How many objects of a group may be kept.
const MOST_KEPT: u16 = 10_000;

/// Which finished objects a rule is for. All parts have to fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    outcomes: Box<[Outcome]>,
    reasons: Box<[ReasonPattern]>,
    labels: Selector,
}

impl Match {
    /// Takes what is given; what is not given fits everything.
    ///
    /// # Errors
    ///
    /// If a list is given and empty, so that nothing could fit it, or has more entries than it may.
    pub fn new(
        outcomes: Option<Vec<Outcome>>,
        reasons: Option<Vec<ReasonPattern>>,
        labels: Selector,
    ) -> Result<Self, PolicyError> {
        if outcomes.as_ref().is_some_and(Vec::is_empty) {
            return Err(PolicyError::EmptyList("outcomes"));
        }
        if reasons.as_ref().is_some_and(Vec::is_empty) {
            return Err(PolicyError::EmptyList("reasons"));
        }
        if reasons.as_ref().is_some_and(|reasons| reasons.len() > MOST_REASONS) {
            return Err(PolicyError::TooMany { field: "reasons", most: MOST_REASONS });
        }
        let outcomes = outcomes.unwrap_or_default().into();
        Ok(Self { outcomes, reasons: reasons.unwrap_or_default().into(), labels })
    }

    /// Whether a finished object fits.
    #[must_use]
    pub fn fits(&self, finish: &Finish, labels: &Labels) -> bool {
        (self.outcomes.is_empty() || self.outcomes.contains(&finish.outcome))
            && (self.reasons.is_empty()
                || self.reasons.iter().any(|reason| reason.matches(&finish.reason)))
            && self.labels.matches(labels)
    }

    /// The keys of the labels that it reads.
    pub fn label_keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.labels.keys()
    }
}

/// What a rule says of the objects it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decide {
    lifetime: Lifetime,
    pods: Option<PodsStage>,
    delete: Delete,
}

/// How long an object is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lifetime {
    /// So long after its start.
    Ttl(Seconds),
    /// For ever.
    Never,
    /// As long as it is among the last of its group.
    KeepLast(KeepLast),
}

/// How many of the newest objects are kept (`docs/retention.md`, R21).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepLast {
    count: u16,
    group_by: Box<[Arc<str>]>,
    minimum_age: Seconds,
    maximum_age: Option<Seconds>,
}

/// The values of the labels that make a group, as many as there are labels.
pub type GroupValues = [Option<Arc<str>>; MOST_GROUP_LABELS];

/// The Pods of an object go before it (`docs/retention.md`, R22).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodsStage {
    /// So long after the object's start.
    pub ttl: Seconds,
    /// Which of them.
    pub phases: Phases,
    /// How they are found.
    pub label: PodLabel,
}

/// Which Pods go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phases {
    /// Those that have ended.
    Terminal,
    /// All.
    All,
}

/// What is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delete {
    /// The object.
    Object,
    /// Its controller owner, and the object with it.
    Owner,
}

impl Decide {
    /// What a rule says.
    ///
    /// # Errors
    ///
    /// If the Pods would go after the object.
    pub fn new(
        lifetime: Lifetime,
        pods: Option<PodsStage>,
        delete: Delete,
    ) -> Result<Self, PolicyError> {
        if let (Lifetime::Ttl(object), Some(pods)) = (&lifetime, &pods)
            && pods.ttl > *object
        {
            let (pods, object) = (pods.ttl.get(), object.get());
            return Err(PolicyError::PodsAfterObject { pods, object });
        }
        Ok(Self { lifetime, pods, delete })
    }

    /// How long the object is kept.
    #[must_use]
    pub const fn lifetime(&self) -> &Lifetime {
        &self.lifetime
    }

    /// Whether its Pods go before it.
    #[must_use]
    pub const fn pods(&self) -> Option<PodsStage> {
        self.pods
    }

    /// What is deleted.
    #[must_use]
    pub const fn delete(&self) -> Delete {
        self.delete
    }
}

impl PodsStage {
    /// Deletes the Pods of objects of a kind so long after their start.
    ///
    /// # Errors
    ///
    /// If the kind would make them again, or they cannot be found.
    pub fn new(
        (group, kind): (&str, &str),
        ttl: Seconds,
        phases: Phases,
    ) -> Result<Self, PolicyError> {
        let label = PodLabel::of(group, kind).ok_or(PolicyError::PodsUnsupported)?;
        Ok(Self { ttl, phases, label })
    }
}

impl KeepLast {
    /// Keeps the newest `count` (1 to 10000) of each group of objects with the same values of up to four labels.
    ///
    /// # Errors
    ///
    /// If the count or the number of labels is out of bounds, a label has no proper key, or the minimum age is above the
    /// maximum age.
    pub fn new(
        count: i64,
        group_by: Vec<Arc<str>>,
        minimum_age: Seconds,
        maximum_age: Option<Seconds>,
    ) -> Result<Self, PolicyError> {
        let in_bounds = u16::try_from(count).ok().filter(|count| (1..=MOST_KEPT).contains(count));
        let bounds =
            PolicyError::OutOfBounds { value: count, least: 1, most: i64::from(MOST_KEPT) };
        let count = in_bounds.ok_or(bounds)?;
        if group_by.len() > MOST_GROUP_LABELS {
            return Err(PolicyError::TooMany { field: "groupBy", most: MOST_GROUP_LABELS });
        }
        for key in &group_by {
            valid_key(key)?;
        }
        if let Some(maximum) = maximum_age
            && minimum_age > maximum
        {
            let (minimum, maximum) = (minimum_age.get(), maximum.get());
            return Err(PolicyError::AgesCross { minimum, maximum });
        }
        Ok(Self { count, group_by: group_by.into(), minimum_age, maximum_age })
    }

    /// How many are kept.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// The labels that make a group.
    #[must_use]
    pub const fn group_by(&self) -> &[Arc<str>] {
        &self.group_by
    }

    /// How long after its start an object is kept at least.
    #[must_use]
    pub const fn minimum_age(&self) -> Seconds {
        self.minimum_age
    }

    /// How long after its start it is kept at most, whatever its rank.
    #[must_use]
    pub const fn maximum_age(&self) -> Option<Seconds> {
        self.maximum_age
    }

    /// The values of the labels that make its group; `None` if the object lacks one of them.
    #[must_use]
    pub fn group_of(&self, labels: &Labels) -> Option<GroupValues> {
        let mut values = [const { None }; MOST_GROUP_LABELS];
        for (value, key) in values.iter_mut().zip(&self.group_by) {
            *value = Some(Arc::clone(labels.get(key)?));
        }
        Some(values)
    }
}
