//! A short name for what decides in a spec (`docs/retention.md`, 1 and R40).
//!
//! The engine stores in the status under which digest it has enforced what. Another digest means that somebody has
//! edited what decides, so what is due now may be due because of the edit. A digest therefore changes with every field
//! that decides, and with nothing else: not with fields that decide nothing, not with the order in which fields are
//! written, and not when a default is written out, by hand or by the API server. The order of lists counts.
//!
//! A field with its default value is left out before hashing. So a field that a later version adds does not change the
//! digests of the policies that do not use it, which would ask for an acknowledgement in every cluster that is upgraded.

use std::fmt;

use serde_json::Value;

/// Fields that decide nothing, by their names from the spec on. What is in a list has the place of the list.
const DECIDING_NOTHING: [&str; 5] =
    ["mode", "deletesPerSecond", "breaker", "rules.name", "finished.guards.name"];

/// A hash of what decides in a spec.
///
/// It is shown as sixteen hexadecimal digits. Nobody has an interest in two specs with one digest: whoever may write a
/// policy may acknowledge its trips, too. So it is enough that it does not happen by accident. Only the digests before
/// and after an edit are compared; with 64 bits they are equal by accident once in 10^19 edits. With 32 bits it
/// would be once in four billion, which is rare, but it would cost the protection against a mass deletion, and eight
/// more digits cost nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(u64);

impl Digest {
    /// The digest of a spec that was read strictly.
    pub(super) fn of(spec: &Value) -> Self {
        Self(hash(deciding("", spec).to_string().as_bytes()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What decides in the value at a place, with sorted fields and without defaults.
fn deciding(place: &str, value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| deciding(place, item)).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> =
                fields.iter().filter_map(|(name, value)| field(place, name, value)).collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        }
        plain => plain.clone(),
    }
}

/// What decides in a field; `None` if it says no more than its absence would.
fn field<'a>(parent: &str, name: &'a str, value: &Value) -> Option<(&'a str, Value)> {
    let place = if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
    if DECIDING_NOTHING.contains(&place.as_str()) {
        return None;
    }
    let value = deciding(&place, value);
    let is_default = default(&place).is_some_and(|default| value == default);
    let is_empty = match &value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    (!is_default && !is_empty).then_some((name, value))
}

/// The default of a field that has one.
fn default(place: &str) -> Option<Value> {
    Some(match place {
        "priority" | "rules.action.keepLast.minimumAgeSeconds" => 0.into(),
        "owned" => "Skip".into(),
        "overrides.annotation" => false.into(),
        "overrides.ownTTL" => "Respect".into(),
        "holds.maximumSeconds" => 2_592_000.into(),
        "propagation" => "Foreground".into(),
        "rules.delete" => "Object".into(),
        "rules.pods.phases" => "Terminal".into(),
        "finished.conditions.status" => "True".into(),
        _ => return None,
    })
}

/// FNV-1a with 64 bits: simple enough to be the same in every version, unlike the hash of the standard library.
fn hash(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        for (text, expected) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(hash(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_digest_has_sixteen_digits() {
        assert_eq!(Digest(0x0f00).to_string(), "0000000000000f00");
    }
}
