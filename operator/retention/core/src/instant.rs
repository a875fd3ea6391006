//! Instants in objects, which may be anything.
//!
//! A schema promises a date, but not every kind has one, and controllers write zeros: Go's in the year 1, containers'
//! in 1970. What cannot be when something finished is no instant (`docs/retention.md`, R12).

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use trainjob_api::time::Timestamp;

/// The instant that a field names, if something may have happened then: it is later than the zeros that are written for
/// an instant nobody knows.
pub(crate) fn usable(field: &Value) -> Option<Timestamp> {
    Timestamp::parse(field.as_str()?).filter(|instant| *instant > Timestamp(0))
}

/// Reads a field that should be an instant; anything else is none.
pub(crate) fn lenient<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    Value::deserialize(deserializer).map(|field| usable(&field))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_an_instant_only_if_something_may_have_happened_then() {
        for (field, expected) in [
            (json!("2026-11-22T06:30:00Z"), Some(1_795_329_000)),
            (json!("2026-11-22T06:30:00.999999Z"), Some(1_795_329_000)),
            (json!("2026-11-22T07:30:00+01:00"), Some(1_795_329_000)),
            (json!("9999-12-30T00:00:00Z"), Some(253_402_128_000)),
            (json!("1970-01-01T00:00:01Z"), Some(1)),
            (json!("1970-01-01T00:00:00Z"), None),
            (json!("0001-01-01T00:00:00Z"), None),
            (json!("2026-11-22T06:30:00"), None),
            (json!("yesterday"), None),
            (json!(""), None),
            (json!(null), None),
            (json!(1_795_329_000), None),
            (json!({"at": "2026-11-22T06:30:00Z"}), None),
        ] {
            assert_eq!(lenient(&field).unwrap(), expected.map(Timestamp), "{field}");
        }
    }
}
