//! TTL and deadline that an update lacks (A11 of `docs/semantics.md`).
//!
//! A client whose types are older than a field drops it from every object that it writes. A request that
//! lacks a stored TTL or deadline may come from such a client or from somebody who wants it removed; the
//! object alone does not tell. So the stored value is kept, with a warning, unless the request says that it
//! is meant:
//!
//! | request | the field |
//! |---|---|
//! | has the field | is judged as it is |
//! | lacks it, and brings the annotation that names it | is removed; with immutable fields the request is refused |
//! | lacks it, being a server-side apply of its owner | is left out, which the other webhook judges |
//! | lacks it | is kept, with a warning |
//!
//! The answer is the same when the webhook is asked again after others have changed the object: what the
//! request itself was is told from the managed fields, which nobody changes in between.

use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, jsonptr::PointerBuf};
use trainjob_api::{constants::REMOVE_FIELDS_ANNOTATION, time::Timestamp};

use super::{
    FieldError, Verdict,
    lifecycle::{self, Field, FieldUpdates},
    ownership::Manager,
};

/// For so many seconds an apply may be the one under way: it is noted in whole seconds, by another clock.
const PRESENT: i64 = 2;

impl Field {
    const fn of<'a>(self, object: &Object<'a>) -> Option<&'a str> {
        match self {
            Self::Deadline => object.deadline,
            Self::Ttl => object.ttl,
        }
    }

    /// The value that there is to keep; a stored one that is out of range counts as unset.
    fn value(self, stored: &Object<'_>) -> Option<i64> {
        let value = self.of(stored)?.parse().ok()?;
        lifecycle::is_in_range(self.path(), value).then_some(value)
    }

    pub(super) const fn is_owned_by(self, manager: &Manager) -> bool {
        match self {
            Self::Deadline => manager.owns_deadline(),
            Self::Ttl => manager.owns_ttl(),
        }
    }
}

/// What the rule looks at of a TrainJob. Values are JSON: what a request has may be anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Object<'a> {
    /// `spec.activeDeadlineSeconds`.
    pub deadline: Option<&'a str>,
    /// `spec.ttlSecondsAfterFinished`.
    pub ttl: Option<&'a str>,
    /// The annotation that asks for a removal.
    pub remove_fields: Option<&'a str>,
    /// Its managed fields.
    pub managers: &'a [Manager],
}

/// An update of a TrainJob that is not being deleted.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    /// The object as it is stored.
    pub stored: Object<'a>,
    /// The object as it is to be.
    pub requested: Object<'a>,
    /// The name under which the request manages fields; empty if it gives none.
    pub manager: &'a str,
    /// Whether the fields may change.
    pub updates: FieldUpdates,
    /// The time, by the webhook's clock.
    pub now: Timestamp,
}

/// What becomes of an update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What is put back, and the annotation taken off.
    pub patch: Patch,
    /// Why the request is refused, and what its author should know.
    pub verdict: Verdict,
}

/// What the annotation of a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Removal {
    /// There is no annotation.
    NotRequested,
    /// The annotation was stored by an earlier request and asks for nothing.
    Stale,
    /// The request asks to remove these fields.
    Requested(Vec<Field>),
    /// An earlier call for the same request has accepted and stripped the annotation. Fields that it did not
    /// name were put back then, so every field that is missing now was named.
    Accepted,
}

/// Puts back what the update lacks without asking for its removal.
#[must_use]
pub fn keep(update: &Update<'_>) -> Outcome {
    let removal = match removal(update) {
        Ok(removal) => removal,
        Err(error) => {
            let verdict = Verdict { errors: vec![error], ..Verdict::default() };
            return Outcome { verdict, ..Outcome::default() };
        }
    };
    let mut operations = Vec::new();
    let mut warnings = Vec::new();
    for field in Field::ALL {
        let (stored, requested) = (field.value(&update.stored), field.of(&update.requested));
        let (Some(value), None) = (stored, requested) else { continue };
        let is_removed = match &removal {
            Removal::NotRequested | Removal::Stale => false,
            Removal::Requested(fields) => fields.contains(&field),
            Removal::Accepted => true,
        };
        if is_removed || is_given_up(update, field) {
            continue;
        }
        let path = PointerBuf::from_tokens(["spec", field.name()]);
        operations.push(PatchOperation::Add(AddOperation { path, value: value.into() }));
        warnings.push(warning(field, value, update.updates));
    }
    if update.requested.remove_fields.is_some() {
        let path = PointerBuf::from_tokens(["metadata", "annotations", REMOVE_FIELDS_ANNOTATION]);
        operations.push(PatchOperation::Remove(RemoveOperation { path }));
    }
    if removal == Removal::Stale {
        warnings.push(format!(
            "metadata.annotations[{REMOVE_FIELDS_ANNOTATION}] was stored by an earlier request and is \
             removed: it counts only in the request that leaves the field out"
        ));
    }
    Outcome { patch: Patch(operations), verdict: Verdict { warnings, ..Verdict::default() } }
}

fn warning(field: Field, value: i64, updates: FieldUpdates) -> String {
    let advice = match updates {
        FieldUpdates::Immutable => {
            "it cannot be removed after creation. A client that drops it is older than the field"
                .to_owned()
        }
        FieldUpdates::Mutable => {
            let field = field.name();
            format!("to remove it, add {REMOVE_FIELDS_ANNOTATION}: {field} to its annotations")
        }
    };
    format!("{} stays {value}, which the request lacks: {advice}", field.path())
}

fn removal(update: &Update<'_>) -> Result<Removal, FieldError> {
    let (stored, requested) = (&update.stored, &update.requested);
    match (stored.remove_fields, requested.remove_fields) {
        (_, None) if is_accepted(update) => Ok(Removal::Accepted),
        (_, None) => Ok(Removal::NotRequested),
        (Some(stored), Some(requested)) if stored == requested => Ok(Removal::Stale),
        (_, Some(names)) => named_fields(names, update).map(Removal::Requested),
    }
}

/// The fields that the annotation names.
fn named_fields(names: &str, update: &Update<'_>) -> Result<Vec<Field>, FieldError> {
    let path = format!("metadata.annotations[{REMOVE_FIELDS_ANNOTATION}]");
    if update.updates == FieldUpdates::Immutable {
        let detail = "the fields cannot be removed after creation (lifecycle.fieldUpdates is Immutable): \
                      leave the annotation out, or create another TrainJob";
        return Err(FieldError::forbidden(path, detail));
    }
    let [deadline, ttl] = Field::ALL.map(Field::name);
    let invalid = |detail: String| FieldError::invalid(&*path, names, detail);
    names
        .split(',')
        .map(|name| {
            let field = Field::ALL.into_iter().find(|field| field.name() == name.trim());
            let field = field.ok_or_else(|| {
                invalid(format!("expected {deadline}, {ttl}, or both with a comma between them"))
            })?;
            match field.of(&update.requested) {
                None => Ok(field),
                Some(_) => Err(invalid(format!(
                    "{} would still be there: leave it out of the same request; a server-side apply \
                     leaves out only what no other manager owns",
                    field.path()
                ))),
            }
        })
        .collect()
}

/// Whether the request brought the annotation and an earlier call for it has stripped it.
fn is_accepted(update: &Update<'_>) -> bool {
    let (stored, requested) = (&update.stored, &update.requested);
    let is_new = |owner: &Manager| {
        let before = stored.managers.iter().find(|known| known.is_same_as(owner));
        owner.owns_remove_fields() && !before.is_some_and(Manager::owns_remove_fields)
    };
    update.updates == FieldUpdates::Mutable
        && stored.remove_fields.is_none()
        && requested.managers.iter().any(is_new)
}

/// Whether the request is a server-side apply by the owner of the field, who has applied it before and
/// does no more. (Where somebody else owns it, too, the API server keeps it.)
///
/// That the owner has lost the field says nothing: whoever drops it takes it from all. What tells an apply
/// is the name that the request gives, and that what is applied under it has been noted anew.
fn is_given_up(update: &Update<'_>, field: Field) -> bool {
    let (stored, requested) = (update.stored.managers, update.requested.managers);
    let is_of_applier = |it: &&Manager| it.is_apply_of(update.manager);
    let Some(before) = stored.iter().find(is_of_applier).filter(|it| field.is_owned_by(it)) else {
        return false;
    };
    match requested.iter().find(is_of_applier) {
        // The manager applies nothing any more.
        None => true,
        Some(after) => !field.is_owned_by(after) && is_noted_anew(before, after, update),
    }
}

/// Whether the later entry is that of another apply. Two in one second have the same time; then it is one
/// if that second is now, unless the same manager writes in other ways, too.
fn is_noted_anew(before: &Manager, after: &Manager, update: &Update<'_>) -> bool {
    let at = after.written_at();
    let is_present = at.is_some_and(|at| update.now.since(at).abs() <= PRESENT);
    let mut managers = update.requested.managers.iter();
    at != before.written_at() || (is_present && !managers.any(|it| it.is_update_of(update.manager)))
}

#[cfg(test)]
mod tests;
