//! Ends that conditions tell.

use serde::Deserialize;
use trainjob_api::time::Timestamp;

use crate::{
    instant,
    metadata::{Metadata, or_default},
    outcome::{End, Outcome, Reading},
    seconds::Seconds,
};

/// A condition in a status.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) type_: String,
    pub(super) status: String,
    pub(super) reason: String,
    #[serde(deserialize_with = "instant::lenient")]
    pub(super) last_transition_time: Option<Timestamp>,
}

impl Condition {
    /// The end that this condition tells.
    pub(super) fn end(&self, outcome: Outcome) -> End {
        End::new(outcome, &self.reason, self.last_transition_time)
    }
}

/// An object with conditions, and with the field by which several kinds say their TTL.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    spec: Spec,
    #[serde(deserialize_with = "or_default")]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    ttl_seconds_after_finished: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<Condition>,
}

/// The condition of this type, if its status is True.
pub(super) fn holding<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_ && condition.status == "True")
}

/// Reads an object whose end is told by conditions of these types, and whose own TTL is
/// `spec.ttlSecondsAfterFinished`. A value that its schema would refuse counts as unset, as its controller has it.
pub(super) fn read(
    object: &str,
    types: [(&str, Outcome); 2],
) -> Result<Reading, serde_json::Error> {
    let Object { metadata, spec, status } = serde_json::from_str(object)?;
    let own_ttl = spec.ttl_seconds_after_finished.and_then(Seconds::new);
    let end = first(&status.conditions, types);
    Ok(Reading { own_ttl, ..Reading::new(metadata, end) })
}

/// What the condition tells that became true first; of two in the same second, the first in the list.
fn first(conditions: &[Condition], types: [(&str, Outcome); 2]) -> Option<End> {
    let outcome = |condition: &Condition| {
        types.iter().find(|(type_, _)| *type_ == condition.type_).map(|(_, outcome)| *outcome)
    };
    let ends = conditions.iter().filter(|condition| condition.status == "True");
    let ends = ends.filter_map(|condition| Some(condition.end(outcome(condition)?)));
    ends.min_by_key(|end| (end.time.is_none(), end.time))
}
