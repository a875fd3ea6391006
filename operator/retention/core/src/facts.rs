//! What is remembered of a finished object.
//!
//! There may be a hundred thousand, so a record holds what decisions depend on and nothing else, and texts that many
//! objects have are shared (`docs/retention.md`, R60). Objects that have not finished are not remembered.
//!
//! What finished means is said by policies, so two policies may disagree about one object. A record therefore holds one
//! end for every [`Definition`] by which the object has finished; mostly there is one definition.

mod finishes;

use std::sync::Arc;

use trainjob_api::{constants::MULTIKUEUE_ORIGIN_LABEL, time::Timestamp};

pub use self::finishes::{Finish, Finishes};
use crate::{
    finished::{self, Definition},
    interner::Interner,
    kind::BuiltIn,
    labels::{LabelKeys, Labels},
    maybe_timestamp::MaybeTimestamp,
    metadata::{Metadata, OwnerReference},
    outcome::{Ending, Guards, Reading},
    uid::Uid,
    version::Version,
    wish::Wishes,
};

/// How much is kept, in bytes, of a text whose length the API server does not limit. No name, kind, or group with its version is longer, so an
/// owner of whom only the beginning is kept does not exist.
const LONGEST_TEXT: usize = 320;

/// A finished object, as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The rest.
    pub facts: Facts,
}

/// The facts about one finished object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Which of all objects that ever had this name.
    pub uid: Uid,
    /// The version these facts were read from; a deletion is fenced by it.
    pub resource_version: Version,
    /// When it was created.
    pub created: Timestamp,
    /// Whom it belongs to.
    pub owner: Owner,
    /// What it asks for.
    pub wishes: Wishes,
    /// The labels that policies read.
    pub labels: Labels,
    /// When it is to be gone, if it is being deleted: from when on only finalizers, or its controller, keep it.
    pub terminating: MaybeTimestamp,
    /// Whether it is a copy that MultiKueue made: its manager removes it, and would run it again if it were gone.
    pub remote_copy: bool,
    /// Its ends, one for each definition by which it has finished.
    pub finishes: Finishes,
}

/// Whom an object belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// Nobody.
    None,
    /// Somebody who manages it.
    Controller(Box<Controller>),
    /// Owners of whom none manages it, as the Pods of a group own their Workload.
    Others,
}

/// The controller owner of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// Group and version.
    pub api_version: Arc<str>,
    /// The kind.
    pub kind: Arc<str>,
    /// The name.
    pub name: Box<str>,
    /// The UID.
    pub uid: Uid,
}

impl Facts {
    /// The end by this definition; `None` if by that the object has not finished.
    #[must_use]
    pub fn finish(&self, definition: &Arc<Definition>) -> Option<&Finish> {
        let same = |finish: &&Finish| {
            Arc::ptr_eq(&finish.definition, definition) || finish.definition == *definition
        };
        self.finishes.iter().find(same)
    }

    /// The controller owner.
    #[must_use]
    pub fn controller(&self) -> Option<&Controller> {
        match &self.owner {
            Owner::Controller(controller) => Some(controller),
            Owner::None | Owner::Others => None,
        }
    }
}

/// Reads objects of one kind into facts.
#[derive(Debug)]
pub struct Reader {
    kind: Option<BuiltIn>,
    definitions: Vec<Arc<Definition>>,
    label_keys: LabelKeys,
}

impl Reader {
    /// Reads what policies with these definitions, which read these labels, need to know.
    #[must_use]
    pub const fn new(
        kind: Option<BuiltIn>,
        definitions: Vec<Arc<Definition>>,
        label_keys: LabelKeys,
    ) -> Self {
        Self { kind, definitions, label_keys }
    }

    /// An object, with the facts about it; `None` if it has not finished in any sense.
    ///
    /// # Errors
    ///
    /// If the text is no object of the kind.
    pub fn read(
        &self,
        object: &str,
        interner: &mut Interner,
    ) -> Result<Option<Finished>, serde_json::Error> {
        let own = self.kind.map(|kind| finished::read(kind, object)).transpose()?;
        let mut finishes = Vec::new();
        let mut metadata = None;
        for definition in &self.definitions {
            let reading = match (&**definition, &own) {
                (Definition::BuiltIn(kind), Some(own)) if self.kind == Some(*kind) => {
                    finishes.extend(finish(definition, own, interner));
                    continue;
                }
                (definition, Some(own)) => overridden(definition, definition.read(object)?, own),
                (definition, None) => definition.read(object)?,
            };
            finishes.extend(finish(definition, &reading, interner));
            metadata = Some(reading.metadata);
        }
        let metadata = own.map(|own| own.metadata).or(metadata).filter(|_| !finishes.is_empty());
        Ok(metadata.map(|metadata| Finished {
            namespace: interner.intern(&metadata.namespace),
            name: metadata.name.as_str().into(),
            facts: self.facts(&metadata, finishes.into(), interner),
        }))
    }

    fn facts(&self, metadata: &Metadata, finishes: Finishes, interner: &mut Interner) -> Facts {
        Facts {
            uid: Uid::from(metadata.uid.as_str()),
            resource_version: Version::from(metadata.resource_version.as_str()),
            created: metadata.creation_timestamp.unwrap_or_default(),
            owner: owner(&metadata.owner_references, interner),
            wishes: Wishes::read(&metadata.annotations),
            labels: Labels::read(&metadata.labels, &self.label_keys, interner),
            terminating: metadata.deleted_at().into(),
            remote_copy: metadata.labels.contains_key(MULTIKUEUE_ORIGIN_LABEL),
            finishes,
        }
    }
}

/// What a policy's definition says of an object of a kind that is known. It decides about the end, and may name another
/// field for the kind's own TTL. What the kind's controllers do is not for it to say.
fn overridden(definition: &Definition, described: Reading, own: &Reading) -> Reading {
    let own_ttl = match definition {
        Definition::Configured(configured) if configured.has_own_ttl() => described.own_ttl,
        Definition::Configured(_) | Definition::BuiltIn(_) => own.own_ttl,
    };
    let guards = Guards { release: own.guards.release, ..described.guards };
    Reading { own_ttl, bond: own.bond, guards, ..described }
}

fn finish(
    definition: &Arc<Definition>,
    reading: &Reading,
    interner: &mut Interner,
) -> Option<Finish> {
    let end = reading.end.as_ref()?;
    let ending = Ending {
        outcome: end.outcome,
        reason: interner.intern(beginning(&end.reason)),
        own_ttl: reading.own_ttl,
        guards: reading.guards,
        bond: reading.bond,
    };
    Some(Finish {
        definition: Arc::clone(definition),
        time: end.time.or_else(|| reading.metadata.last_written()).into(),
        ending: interner.intern_ending(ending),
    })
}

/// As much of a text as is kept.
fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LONGEST_TEXT)).unwrap_or(text)
}

fn owner(references: &[OwnerReference], interner: &mut Interner) -> Owner {
    let controller = references.iter().find(|owner| owner.controller == Some(true));
    match controller {
        Some(owner) => Owner::Controller(Box::new(Controller {
            api_version: interner.intern(beginning(&owner.api_version)),
            kind: interner.intern(beginning(&owner.kind)),
            name: beginning(&owner.name).into(),
            uid: Uid::from(beginning(&owner.uid)),
        })),
        None if references.is_empty() => Owner::None,
        None => Owner::Others,
    }
}

#[cfg(test)]
mod tests;
