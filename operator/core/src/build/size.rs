//! How many JSON objects an object consists of.
//!
//! An empty object is two bytes of text and may be a volume of three kilobytes once it is read; what is made of it
//! takes as much again. So the programs read no object that consists of very many, and the operator builds none.

use serde::Serialize;

/// How many JSON objects one may consist of, itself included. The largest TrainJob that the schema admits has about
/// 13,000. A runtime of so many volumes and the JobSet made of it take about 140 MB; the chart's limit of a program
/// is 256 MiB.
pub const MAX_OBJECTS: usize = 13_500;

/// How many JSON objects there are in a text of JSON, itself and those within included.
#[must_use]
pub fn object_count(text: &str) -> usize {
    let (mut count, mut is_in_string, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_in_string,
            b'"' => is_in_string = !is_in_string,
            b'{' if !is_in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Whether an object consists of more than [`MAX_OBJECTS`]. One that cannot be written as JSON does not.
pub(super) fn is_too_large(object: &impl Serialize) -> bool {
    serde_json::to_string(object).is_ok_and(|text| object_count(&text) > MAX_OBJECTS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_counted_and_braces_in_texts_are_not() {
        for (value, count) in [
            (json!({}), 1),
            (json!([]), 0),
            (json!({"said": "{{\\\"{", "all": [{}, {"a": {}}]}), 4),
        ] {
            assert_eq!(object_count(&value.to_string()), count, "{value}");
        }
    }

    #[test]
    fn object_is_too_large_from_one_more_than_the_most_on() {
        let of = |count: usize| json!({"all": vec![json!({}); count - 1]});
        assert!(!is_too_large(&of(MAX_OBJECTS)));
        assert!(is_too_large(&of(MAX_OBJECTS + 1)));
    }
}
