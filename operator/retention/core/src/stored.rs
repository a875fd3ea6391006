//! Policies as the API server stores them, read into what decides (`docs/retention.md`, 2 and R5).
//!
//! [`read`] has an answer for every text: the policy with what the program needs besides, or why the text is not
//! understood and which objects the policy might be about. A spec is read strictly. A field or a value that this version
//! does not know may be the one that keeps objects, so there is no policy then, and nothing is deleted that it might
//! select.

mod digest;
mod error;
mod finished;
mod given;
mod rules;
mod seconds;
mod selector;
mod spec;
mod target;
mod widest;

use std::{num::NonZeroU32, sync::Arc};

use serde::Deserialize;
use serde_json::Value;
use trainjob_api::lifecycle::v1alpha1::{ACKNOWLEDGE_ANNOTATION, policy as api};

pub use self::{digest::Digest, error::StoredError, spec::PolicyKind};
use self::{error::At, seconds::seconds, selector::selector, spec::Spec, target::target};
use crate::{
    finished::Definitions,
    kind::GroupKind,
    metadata::Metadata,
    policy::{
        Annotation, Limits, Mode, OwnTtl, Owned, Policy, PolicyError, Propagation, Scope,
        UnreadablePolicy, definition,
    },
    uid::Uid,
};

/// The most deletions in a second that a policy can ask for.
const MOST_DELETES_PER_SECOND: u32 = 1000;
/// The most that `breaker.maxCount` can say.
const MOST_UNEXPECTED: u32 = i32::MAX.unsigned_abs();

/// A stored policy: what decides about objects, and what the program needs besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPolicy {
    /// The kind of the objects that it is about.
    pub target: GroupKind,
    /// What decides about them.
    pub policy: Arc<Policy>,
    /// What decides in its spec, by a short name.
    pub digest: Digest,
    /// `metadata.generation`: how often the spec was written.
    pub generation: i64,
    /// How many objects it deletes in a second at most; `None` is no limit.
    pub deletes_per_second: Option<NonZeroU32>,
    /// How many objects an edit may make due at once without an acknowledgement (R42).
    pub breaker_count: NonZeroU32,
    /// The id of the trip that somebody has acknowledged by annotation (R43), whatever it is.
    pub acknowledged_trip: Option<Arc<str>>,
}

/// A stored policy that cannot be read. Its `Ready` condition says `NotUnderstood`.
#[derive(Debug)]
pub struct NotUnderstood {
    /// The kind of the objects that it is about; `None` if that is not understood either, and it may be any kind.
    pub target: Option<GroupKind>,
    /// Which of these objects it might select. Nothing deletes them.
    pub policy: UnreadablePolicy,
    /// `metadata.generation`: how often the spec was written; 0 if that cannot be read.
    pub generation: i64,
    /// Why, with the field and what it should say.
    pub error: StoredError,
}

impl NotUnderstood {
    /// Whether it may be about objects of this kind, so that [`NotUnderstood::policy`] is one of the unreadable policies
    /// for that kind.
    #[must_use]
    pub fn concerns(&self, kind: &GroupKind) -> bool {
        self.target.as_ref().is_none_or(|target| target == kind)
    }
}

/// A policy with its metadata read and its spec not yet.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
    spec: Value,
    status: Value,
}

/// Reads a policy from its JSON text. `definitions` shares what finished means between policies that say the same.
///
/// # Errors
///
/// If the text is not a policy of that kind, or says something that this version does not know. Both are answers: the
/// objects that the policy might select are kept.
pub fn read(
    kind: PolicyKind,
    text: &str,
    definitions: &mut Definitions,
) -> Result<StoredPolicy, Box<NotUnderstood>> {
    let (object, unreadable) = match serde_json::from_str::<Object>(text) {
        Ok(object) => (object, None),
        Err(source) => (Object::default(), Some(StoredError::Object(source))),
    };
    let stored = unreadable.map_or_else(|| policy(kind, &object, definitions), Err);
    stored.map_err(|error| {
        let (target, policy) = widest::selection(kind, &object.metadata, &object.spec);
        let generation = object.metadata.generation;
        Box::new(NotUnderstood { target, policy, generation, error })
    })
}

fn policy(
    kind: PolicyKind,
    object: &Object,
    definitions: &mut Definitions,
) -> Result<StoredPolicy, StoredError> {
    let Object { metadata, spec, status } = object;
    given::check_metadata(kind, metadata)?;
    let digest = Digest::of(spec);
    check_observed(metadata.generation, digest, status)?;
    given::check("spec", spec)?;
    let Spec { policy: spec, namespaces, limits } = spec::read(kind, spec)?;
    let target = target(&spec.target)?;
    let described = spec.finished.as_ref().map(finished::description).transpose()?;
    let definition = definition((&target.group, &target.kind), described).at("spec.finished")?;
    let scope = match kind {
        PolicyKind::Namespaced => Scope::Namespace(metadata.namespace.as_str().into()),
        PolicyKind::Cluster => Scope::Cluster {
            namespaces: selector("spec.namespaceSelector", &namespaces)?,
            limits: self::limits(&limits)?,
        },
    };
    let policy = Policy {
        name: metadata.name.as_str().into(),
        uid: Uid::from(metadata.uid.as_str()),
        created: metadata.creation_timestamp.unwrap_or_default(),
        scope,
        selector: selector("spec.selector", &spec.selector.unwrap_or_default())?,
        mode: mode(spec.mode),
        priority: spec.priority,
        definition: definitions.share(definition),
        rules: rules::rules(&target, &spec.rules)?,
        owned: owned(spec.owned),
        annotation: annotation(spec.overrides),
        own_ttl: own_ttl(spec.overrides),
        maximum_hold: seconds("spec.holds.maximumSeconds", spec.holds.maximum_seconds)?,
        propagation: propagation(spec.propagation),
    };
    Ok(StoredPolicy {
        target,
        policy: Arc::new(policy),
        digest,
        generation: metadata.generation,
        deletes_per_second: rate(spec.deletes_per_second)?,
        breaker_count: breaker_count(spec.breaker)?,
        acknowledged_trip: metadata
            .annotations
            .get(ACKNOWLEDGE_ANNOTATION)
            .map(|id| id.as_str().into()),
    })
}

/// Checks that the spec is what was read of this generation before, as far as the status says.
///
/// Each edit of a spec has another generation. To leave out a field that the definition does not have is none.
fn check_observed(generation: i64, digest: Digest, status: &Value) -> Result<(), StoredError> {
    let observed = |field: &str| status.get(field);
    let is_same_generation =
        observed("observedGeneration").and_then(Value::as_i64) == Some(generation);
    let before = observed("observedDigest").and_then(Value::as_str);
    if is_same_generation && before.is_some_and(|before| before != digest.to_string()) {
        return Err(StoredError::ChangedByDefinition { generation });
    }
    Ok(())
}

fn limits(limits: &api::Limits) -> Result<Limits, StoredError> {
    let api::Limits { minimum_seconds, maximum_seconds, maximum_hold_seconds } = *limits;
    let limit = |field: &str, value: Option<u32>| {
        value.map(|value| seconds(&format!("spec.limits.{field}"), value)).transpose()
    };
    let minimum = limit("minimumSeconds", minimum_seconds)?;
    let maximum = limit("maximumSeconds", maximum_seconds)?;
    let maximum_hold = limit("maximumHoldSeconds", maximum_hold_seconds)?;
    Limits::new(minimum, maximum, maximum_hold).at("spec.limits")
}

fn rate(value: u32) -> Result<Option<NonZeroU32>, StoredError> {
    let most = MOST_DELETES_PER_SECOND;
    if value > most {
        return Err(out_of_bounds(value, 0, most)).at("spec.deletesPerSecond");
    }
    Ok(NonZeroU32::new(value))
}

fn breaker_count(api::Breaker { max_count }: api::Breaker) -> Result<NonZeroU32, StoredError> {
    let count = NonZeroU32::new(max_count).filter(|count| count.get() <= MOST_UNEXPECTED);
    count.ok_or_else(|| out_of_bounds(max_count, 1, MOST_UNEXPECTED)).at("spec.breaker.maxCount")
}

fn out_of_bounds(value: u32, least: u32, most: u32) -> PolicyError {
    PolicyError::OutOfBounds { value: value.into(), least: least.into(), most: most.into() }
}

const fn mode(mode: api::Mode) -> Mode {
    match mode {
        api::Mode::Audit => Mode::Audit,
        api::Mode::Enforce => Mode::Enforce,
    }
}

const fn owned(owned: api::Owned) -> Owned {
    match owned {
        api::Owned::Skip => Owned::Skip,
        api::Owned::AfterOwner => Owned::AfterOwner,
        api::Owned::Any => Owned::Any,
    }
}

const fn annotation(overrides: api::Overrides) -> Annotation {
    if overrides.annotation { Annotation::Allowed } else { Annotation::Ignored }
}

const fn own_ttl(overrides: api::Overrides) -> OwnTtl {
    match overrides.own_ttl {
        api::OwnTtl::Respect => OwnTtl::Respected,
        api::OwnTtl::Ignore => OwnTtl::Ignored,
    }
}

const fn propagation(propagation: api::Propagation) -> Propagation {
    match propagation {
        api::Propagation::Foreground => Propagation::Foreground,
        api::Propagation::Background => Propagation::Background,
    }
}
