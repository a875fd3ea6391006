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
    lifecycle::{self, FieldUpdates},
    ownership::Manager,
};

/// For so many seconds an apply may be the one under way: it is noted in whole seconds, by another clock.
const PRESENT: i64 = 2;

/// One of the two fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Deadline,
    Ttl,
}

impl Field {
    const ALL: [Self; 2] = [Self::Deadline, Self::Ttl];

    const fn path(self) -> &'static str {
        match self {
            Self::Deadline => lifecycle::DEADLINE,
            Self::Ttl => lifecycle::TTL,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Deadline => "activeDeadlineSeconds",
            Self::Ttl => "ttlSecondsAfterFinished",
        }
    }

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

    const fn is_owned_by(self, manager: &Manager) -> bool {
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

/// What a request says of the removal of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wish {
    /// Nothing.
    None,
    /// Nothing: the annotation was stored before.
    Stale,
    /// These are to be removed.
    Remove(Vec<Field>),
    /// The annotation was taken off when the webhook was asked about this request before; it has named
    /// what is missing, or that would have been put back.
    Granted,
}

/// Keeps what the update lacks without saying so.
#[must_use]
pub fn keep(update: &Update<'_>) -> Outcome {
    let wish = match wish(update) {
        Ok(wish) => wish,
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
        let is_wanted = match &wish {
            Wish::None | Wish::Stale => false,
            Wish::Remove(fields) => fields.contains(&field),
            Wish::Granted => true,
        };
        if is_wanted || is_given_up(update, field) {
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
    if wish == Wish::Stale {
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

fn wish(update: &Update<'_>) -> Result<Wish, FieldError> {
    let (stored, requested) = (&update.stored, &update.requested);
    match (stored.remove_fields, requested.remove_fields) {
        (_, None) if is_granted(update) => Ok(Wish::Granted),
        (_, None) => Ok(Wish::None),
        (Some(stored), Some(requested)) if stored == requested => Ok(Wish::Stale),
        (_, Some(names)) => removal(names, update).map(Wish::Remove),
    }
}

/// The fields that the annotation names.
fn removal(names: &str, update: &Update<'_>) -> Result<Vec<Field>, FieldError> {
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

/// Whether the request brought the annotation, which is there no more.
fn is_granted(update: &Update<'_>) -> bool {
    let (stored, requested) = (&update.stored, &update.requested);
    let is_new = |owner: &Manager| {
        let before = stored.managers.iter().find(|known| known.is_same_as(owner));
        owner.owns_wish_to_remove() && !before.is_some_and(Manager::owns_wish_to_remove)
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
        // It applies nothing any more.
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
