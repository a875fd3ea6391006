//! What the CRD schemas require of one value, as functions.
//!
//! Limits of length and range are `#[validate(…)]` attributes of the types, from which the schemas
//! take them; here are the rules that schemas state in CEL. Both say what the API server says of a
//! request (HTTP 422), so that the same can be said of an object that never passed it: a manifest in
//! a test, a stored object under an older CRD.

use std::borrow::Cow;

use validator::{ValidateLength, ValidationError};

use crate::constants::{MANAGED_BY, MANAGED_BY_MULTIKUEUE, NODE};

/// The longest name of a TrainJob: its children's names are DNS labels.
const LONGEST_NAME: usize = 63;
/// The longest word of a command line.
pub(crate) const LONGEST_WORD: u32 = 1_048_576;
/// The longest name of a container.
pub(crate) const LONGEST_CONTAINER_NAME: u32 = 63;

/// A TrainJob's name: an RFC 1035 label.
///
/// # Errors
///
/// If it is not, in the API server's words.
pub fn name(name: &str) -> Result<(), ValidationError> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(inner)
        && !name.ends_with('-');
    refuse_unless(is_label, "rfc1035", "metadata.name must match RFC 1035 DNS label format")?;
    refuse_unless(
        name.len() <= LONGEST_NAME,
        "length",
        "metadata.name must be no more than 63 characters",
    )
}

/// `storageUri`: empty, or a scheme, `://` and something after it.
///
/// # Errors
///
/// If it is neither, in the API server's words.
pub fn storage_uri(uri: &str) -> Result<(), ValidationError> {
    let is_uri = uri.split_once("://").is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
            // The rule's `.` is any character but the end of a line.
            && !rest.is_empty()
            && !rest.contains('\n')
    });
    refuse_unless(
        uri.is_empty() || is_uri,
        "uri",
        "storageUri may be empty, or it must be a valid URI (scheme://...)",
    )
}

/// `managedBy`: this operator or MultiKueue.
///
/// # Errors
///
/// If it is another, in the API server's words.
pub fn managed_by(controller: &str) -> Result<(), ValidationError> {
    refuse_unless(
        [MANAGED_BY, MANAGED_BY_MULTIKUEUE].contains(&controller),
        "managed_by",
        "ManagedBy must be trainer.kubeflow.org/trainjob-controller or kueue.x-k8s.io/multikueue if set",
    )
}

/// `numProcPerNode`: a rule and not a `minimum` in the schema. The message is the field's.
pub(crate) fn at_least_one(processes: i32) -> Result<(), ValidationError> {
    if processes >= 1 { Ok(()) } else { Err(ValidationError::new("range")) }
}

/// `command` and `args`.
pub(crate) fn words(words: &[String]) -> Result<(), ValidationError> {
    let fits = words.iter().all(|word| word.validate_length(None, Some(LONGEST_WORD.into()), None));
    refuse_unless(fits, "length", "a word must be no more than 1048576 characters")
}

/// `containerNames` of an environment injection.
pub(crate) fn container_names(names: &[String]) -> Result<(), ValidationError> {
    refuse_unless(
        !names.iter().any(|name| name == NODE),
        "node",
        "containerNames must not include the main node container because PET_* envs are always injected into it",
    )?;
    let longest = Some(LONGEST_CONTAINER_NAME.into());
    let fit = names.iter().all(|name| name.validate_length(None, longest, None));
    refuse_unless(fit, "length", "a container's name must be no more than 63 characters")?;
    let distinct =
        names.iter().enumerate().all(|(at, name)| !names.iter().take(at).any(|n| n == name));
    refuse_unless(distinct, "set", "containerNames must be distinct")
}

/// `message` unless it holds.
pub(crate) fn refuse_unless(
    holds: bool,
    code: &'static str,
    message: &'static str,
) -> Result<(), ValidationError> {
    if holds {
        return Ok(());
    }
    Err(ValidationError::new(code).with_message(Cow::Borrowed(message)))
}
