//! Strategic merge: how Kubernetes lays a patch over an object.
//!
//! Objects are merged field by field. Lists are where it is strategic: some are sets of named things
//! and are merged thing by thing, the others are replaced. Which list is which is part of the types in
//! Kubernetes; here it is the table in [`rule`], for everything a runtime patch can reach.
//!
//! Three things are left out on purpose. Patches come from typed objects, so `null` does not occur.
//! An empty list in a patch changes nothing, nor does an empty name of what a volume or variable refers
//! to, because the Go types behind Kubernetes do not even write them. And `$patch` and its like are
//! ordinary keys: a patch is data, not a program.

use std::{collections::HashMap, hash::Hash};

use serde_json::{Map, Value};

/// How a list in a patch is laid over the list in the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListRule {
    /// Items with the same value of this field are merged.
    ByKey(&'static str),
    /// Items are plain values; each occurs once.
    Set,
    /// The patch's list replaces the object's.
    Replace,
}

/// The rule for the list in `field`.
///
/// The name alone decides: among the fields a patch can reach no name has two rules.
fn rule(field: &str) -> ListRule {
    match field {
        "replicatedJobs" | "dependsOn" | "initContainers" | "containers" | "env"
        | "imagePullSecrets" | "schedulingGates" | "volumes" => ListRule::ByKey("name"),
        "volumeMounts" => ListRule::ByKey("mountPath"),
        "ports" => ListRule::ByKey("containerPort"),
        "finalizers" => ListRule::Set,
        _ => ListRule::Replace,
    }
}

/// Lays `patch` over `base`.
pub(crate) fn merge(base: &mut Map<String, Value>, patch: &Map<String, Value>) {
    merge_fields("", base, patch);
}

/// Fields whose keys are the user's.
const MAPS: [&str; 6] =
    ["annotations", "labels", "matchLabels", "nodeSelector", "options", "volumeAttributes"];

fn merge_fields(of: &str, base: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (field, change) in patch {
        if field == "name" && change == "" && !MAPS.contains(&of) {
            continue;
        }
        match base.get_mut(field) {
            Some(current) => merge_field(field, current, change),
            None => {
                base.insert(field.clone(), change.clone());
            }
        }
    }
}

fn merge_field(field: &str, current: &mut Value, change: &Value) {
    match (current, change) {
        (Value::Object(base), Value::Object(patch)) => merge_fields(field, base, patch),
        (Value::Array(base), Value::Array(patch)) => merge_list(rule(field), base, patch),
        (current, change) => *current = change.clone(),
    }
}

fn merge_list(rule: ListRule, base: &mut Vec<Value>, patch: &[Value]) {
    if patch.is_empty() {
        return;
    }
    let (items, patch) = (std::mem::take(base), patch.to_vec());
    *base = match rule {
        ListRule::Replace => patch,
        ListRule::ByKey(key) => {
            merge_items(items, patch, |item| item.get(key).unwrap_or(&Value::Null), merge_item)
        }
        ListRule::Set => merge_items(items, patch, itself, merge_item),
    };
}

#[expect(clippy::needless_pass_by_value, reason = "items that can be moved into the list are")]
fn merge_item(item: &mut Value, change: Value) {
    merge_field("", item, &change);
}

/// An item that the patch names.
struct Patched<T> {
    /// Its place in the patch.
    place: usize,
    /// Its place in the base, if it was there.
    was: Option<usize>,
    item: T,
}

/// Merges two lists whose items are the same where `key` is; `overlay` lays one item over another.
///
/// The order is Kubernetes': the patched items in the order of the patch, the untouched ones in the
/// order of the base, and an untouched item goes first only where it stood before the patched item
/// already. So an item that is new comes before the untouched ones that are still to come.
pub(crate) fn merge_items<T, K>(
    base: Vec<T>,
    patch: Vec<T>,
    key: impl Fn(&T) -> &K,
    mut overlay: impl FnMut(&mut T, T),
) -> Vec<T>
where
    K: Eq + Hash + ?Sized,
{
    let mut first = HashMap::with_capacity(patch.len());
    let of_patch: Vec<usize> = patch
        .iter()
        .enumerate()
        .map(|(place, item)| *first.entry(key(item)).or_insert(place))
        .collect();
    let of_base: Vec<Option<usize>> =
        base.iter().map(|item| first.get(key(item)).copied()).collect();

    let (mut patched, mut untouched) = (Vec::with_capacity(patch.len()), Vec::new());
    // Where in `patched` the item of each place is.
    let mut found = vec![None; patch.len()];
    for (was, (item, place)) in base.into_iter().zip(of_base).enumerate() {
        let Some(place) = place else {
            untouched.push((was, item));
            continue;
        };
        if let Some(found) = found.get_mut(place) {
            found.get_or_insert(patched.len());
        }
        patched.push(Patched { place, was: Some(was), item });
    }
    for (change, place) in patch.into_iter().zip(of_patch) {
        let Some(found) = found.get_mut(place) else { continue };
        if let Some(Patched { item, .. }) = found.and_then(|at: usize| patched.get_mut(at)) {
            overlay(item, change);
        } else {
            *found = Some(patched.len());
            patched.push(Patched { place, was: None, item: change });
        }
    }
    patched.sort_by_key(|patched| patched.place);

    let mut merged = Vec::with_capacity(patched.len() + untouched.len());
    let mut untouched = untouched.into_iter().peekable();
    for Patched { was, item, .. } in patched {
        while let Some((_, earlier)) = untouched.next_if(|(other, _)| was > Some(*other)) {
            merged.push(earlier);
        }
        merged.push(item);
    }
    merged.extend(untouched.map(|(_, item)| item));
    merged
}

/// The key of a plain value.
const fn itself(item: &Value) -> &Value {
    item
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn merged(base: &Value, patch: &Value) -> Value {
        let mut base = base.clone();
        merge_field("", &mut base, patch);
        base
    }

    #[test]
    fn objects_are_merged_and_everything_else_is_replaced() {
        for (what, base, patch, expected) in [
            ("a new key", json!({"a": 1}), json!({"b": 2}), json!({"a": 1, "b": 2})),
            ("a scalar", json!({"a": 1}), json!({"a": 2}), json!({"a": 2})),
            ("another kind", json!({"a": {"b": 1}}), json!({"a": "x"}), json!({"a": "x"})),
            (
                "labels, key by key",
                json!({"labels": {"a": "1", "b": "1"}}),
                json!({"labels": {"b": "2", "c": ""}}),
                json!({"labels": {"a": "1", "b": "2", "c": ""}}),
            ),
            (
                "an empty name, which is not written",
                json!({"configMap": {"name": "files", "optional": true}}),
                json!({"configMap": {"name": "", "optional": false}}),
                json!({"configMap": {"name": "files", "optional": false}}),
            ),
            (
                "a label that is called name",
                json!({"labels": {"name": "a"}, "csi": {"volumeAttributes": {"name": "a"}}}),
                json!({"labels": {"name": ""}, "csi": {"volumeAttributes": {"name": ""}}}),
                json!({"labels": {"name": ""}, "csi": {"volumeAttributes": {"name": ""}}}),
            ),
            (
                "structs, field by field",
                json!({"securityContext": {"runAsUser": 1, "fsGroup": 2}}),
                json!({"securityContext": {"runAsUser": 3}}),
                json!({"securityContext": {"runAsUser": 3, "fsGroup": 2}}),
            ),
            (
                "a union ends with both members, and the API server refuses it",
                json!({"env": [{"name": "A", "value": "1"}]}),
                json!({"env": [{"name": "A", "valueFrom": {}}]}),
                json!({"env": [{"name": "A", "value": "1", "valueFrom": {}}]}),
            ),
            (
                "a directive is an ordinary key",
                json!({"labels": {"a": "1"}}),
                json!({"labels": {"$patch": "delete"}}),
                json!({"labels": {"a": "1", "$patch": "delete"}}),
            ),
        ] {
            assert_eq!(merged(&base, &patch), expected, "{what}");
        }
    }

    #[test]
    fn some_lists_are_merged_by_a_key() {
        for (list, key) in [
            ("replicatedJobs", "name"),
            ("dependsOn", "name"),
            ("initContainers", "name"),
            ("containers", "name"),
            ("env", "name"),
            ("imagePullSecrets", "name"),
            ("schedulingGates", "name"),
            ("volumes", "name"),
            ("volumeMounts", "mountPath"),
            ("ports", "containerPort"),
        ] {
            let base = json!({list: [{key: 1, "x": 1}, {key: 2, "x": 2}]});
            let patch = json!({list: [{key: 2, "y": 3}]});
            let expected = json!({list: [{key: 1, "x": 1}, {key: 2, "x": 2, "y": 3}]});
            assert_eq!(merged(&base, &patch), expected, "{list}");
        }
    }

    #[test]
    fn finalizers_are_a_set() {
        let base = json!({"finalizers": ["a", "b"]});
        assert_eq!(
            merged(&base, &json!({"finalizers": ["b", "c"]})),
            json!({"finalizers": ["a", "b", "c"]})
        );
    }

    #[test]
    fn every_other_list_is_replaced() {
        for list in
            ["tolerations", "preferredDuringSchedulingIgnoredDuringExecution", "add", "items"]
        {
            let base = json!({list: [{"name": "a"}, {"name": "b"}]});
            let patch = json!({list: [{"name": "b", "x": 1}]});
            assert_eq!(merged(&base, &patch), patch, "{list}");
        }
    }

    #[test]
    fn an_empty_list_in_a_patch_changes_nothing() {
        for list in ["tolerations", "env", "finalizers"] {
            let base = json!({list: [{"name": "a"}]});
            assert_eq!(merged(&base, &json!({list: []})), base, "{list}");
        }
    }

    #[test]
    fn merged_lists_have_the_order_of_kubernetes() {
        let list = |names: &str| json!({"env": names.chars().map(|c| json!({"name": c})).collect::<Vec<_>>()});
        for (base, patch, expected) in [
            ("AB", "N", "NAB"),
            ("ABC", "CN", "ABCN"),
            ("ABC", "NC", "NABC"),
            ("ABC", "CA", "BCA"),
            ("ABC", "B", "ABC"),
            ("ABCD", "DB", "ACDB"),
            ("", "BA", "BA"),
            ("AB", "", "AB"),
            // A template's INIT_ENV and DATASET_PATH under a patch of INIT_ENV and NEW_VALUE.
            ("ID", "IN", "IND"),
        ] {
            assert_eq!(merged(&list(base), &list(patch)), list(expected), "{base} + {patch}");
        }
    }

    /// A job of a template, more or less: nested keyed lists, plain lists, maps and scalars.
    fn object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (0..9).prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let named = ("[a-d]", inner.clone()).prop_map(|(n, x)| json!({"name": n, "x": x}));
            let by_name = prop::collection::vec(named, 0..4).prop_map(|mut items| {
                // A list with a key has each key once; the API server sees to that.
                let mut seen = Vec::new();
                items.retain(|item| {
                    let new = !seen.contains(&item["name"]);
                    seen.push(item["name"].clone());
                    new
                });
                Value::from(items)
            });
            let fields = (
                prop::option::of(by_name),
                prop::option::of(prop::collection::vec(inner.clone(), 0..3)),
                prop::collection::btree_map("[a-d]", inner, 0..3),
            );
            fields.prop_map(|(env, tolerations, others)| {
                let mut object = Map::from_iter(others);
                object.extend(env.map(|env| ("env".into(), env)));
                object.extend(tolerations.map(|list| ("tolerations".into(), list.into())));
                Value::from(object)
            })
        })
    }

    proptest! {
        #[test]
        fn an_empty_patch_changes_nothing(base in object()) {
            prop_assume!(base.is_object());
            prop_assert_eq!(merged(&base, &json!({})), base);
        }

        #[test]
        fn merging_twice_is_merging_once(base in object(), patch in object()) {
            let once = merged(&base, &patch);
            prop_assert_eq!(merged(&once, &patch), once);
        }

        #[test]
        fn what_the_patch_does_not_mention_stays(base in object(), patch in object()) {
            let once = merged(&base, &patch);
            if let (Value::Object(base), Value::Object(patch)) = (&base, &patch) {
                for (key, value) in base.iter().filter(|(key, _)| !patch.contains_key(*key)) {
                    prop_assert_eq!(&once[key], value);
                }
            }
        }
    }
}
