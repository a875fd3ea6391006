//! What a request says of an object, whether it sends one or a JSON patch of one.

use serde_json::Value;

/// The value that `body` has, or gives to an object, at `pointer`.
pub(crate) fn says<'b>(body: &'b Value, pointer: &str) -> Option<&'b Value> {
    let Value::Array(operations) = body else { return body.pointer(pointer) };
    let sets = |operation: &&Value| {
        let is = |field, value| operation.get(field).and_then(Value::as_str) == Some(value);
        is("path", pointer) && (is("op", "add") || is("op", "replace"))
    };
    operations.iter().find(sets)?.get("value")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_found_in_objects_and_in_json_patches() {
        let object = json!({"metadata": {"uid": "u"}, "spec": {"suspend": false}});
        let patch = json!([
            {"op": "replace", "path": "/metadata/uid", "value": "u"},
            {"op": "remove", "path": "/spec/other"},
            {"op": "add", "path": "/spec/suspend", "value": false},
        ]);
        for body in [object, patch] {
            assert_eq!(says(&body, "/metadata/uid"), Some(&json!("u")));
            assert_eq!(says(&body, "/spec/suspend"), Some(&json!(false)));
            assert_eq!(says(&body, "/spec/other"), None);
        }
    }
}
