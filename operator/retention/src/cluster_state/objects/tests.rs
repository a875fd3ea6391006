use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;
use trainjob_retention_core::{
    facts::{Facts, Reader},
    finished::Definition,
    interner::Interner,
    kind::BuiltIn,
    labels::LabelKeys,
};

use super::*;
use crate::cluster_state::object::ObjectPods;

fn facts() -> Facts {
    let definition = Arc::new(Definition::BuiltIn(BuiltIn::Job));
    let reader = Reader::new(Some(BuiltIn::Job), vec![definition], LabelKeys::default());
    let job = json!({"metadata": {"uid": "u"}, "status": {"conditions": [
        {"type": "Complete", "status": "True", "lastTransitionTime": "2026-11-22T06:30:00Z"},
    ]}});
    reader.read(&job.to_string(), &mut Interner::default()).unwrap().unwrap().facts
}

/// The key number so many: some share their namespace.
fn key(number: u32) -> ObjectKey {
    let namespace = format!("namespace-{}", number % 3);
    ObjectKey::new(namespace, format!("object-{number:05}"))
}

/// An object, told from others of its key by the number of the list that it is from.
fn object(key: &ObjectKey, list: u32) -> Object {
    Object::new(key.clone(), facts(), list, ObjectPods::Unknown)
}

fn numbers<'o>(objects: impl Iterator<Item = &'o Object>) -> Vec<(ObjectKey, u32)> {
    objects.map(|object| (object.key.clone(), object.list)).collect()
}

fn lengths(objects: &Objects) -> Vec<usize> {
    objects.pieces.iter().map(Vec::len).collect()
}

#[test]
fn a_list_that_comes_in_order_fills_the_pieces() {
    let mut objects = Objects::default();
    let mut keys: Vec<_> = (0..600).map(key).collect();
    keys.sort_unstable();
    for key in &keys {
        objects.insert(object(key, 0));
    }
    assert_eq!(lengths(&objects), [MOST, MOST, 600 - 2 * MOST]);
    assert_eq!(objects.iter().map(|object| object.key.clone()).collect::<Vec<_>>(), keys);
}

#[test]
fn whatever_comes_and_goes_it_is_a_map_in_order() {
    let (mut objects, mut expected) = (Objects::default(), BTreeMap::new());
    let mut state = 7_u32;
    for round in 0..20_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // More come than go, then more go than come.
        let (key, goes) = (key(state >> 8 & 0x7ff), (state >> 28 < 6) == (round < 10_000));
        if goes {
            let gone = objects.remove(&key).map(|object| object.list);
            assert_eq!(gone, expected.remove(&key), "{key}");
        } else {
            objects.insert(object(&key, round));
            expected.insert(key.clone(), round);
        }
        assert_eq!(objects.get(&key).map(|object| object.list), expected.get(&key).copied());
        if round % 500 == 0 {
            let all: Vec<_> = expected.clone().into_iter().collect();
            let later: Vec<_> = all.iter().filter(|(known, _)| *known > key).cloned().collect();
            assert_eq!(numbers(objects.iter()), all);
            assert_eq!(numbers(objects.after(None)), all);
            assert_eq!(numbers(objects.after(Some(&key))), later);
            assert!(lengths(&objects).iter().all(|length| (1..=MOST).contains(length)));
        }
    }
    assert!(objects.pieces.len() > 1);
}

#[test]
fn what_is_changed_stays_in_its_place() {
    let mut objects = Objects::default();
    for number in 0..3 {
        objects.insert(object(&key(number), 1));
    }
    objects.get_mut(&key(1)).unwrap().list = 2;
    objects.iter_mut().filter(|object| object.list == 1).for_each(|object| object.list = 3);
    assert_eq!(numbers(objects.iter()), [(key(0), 3), (key(1), 2), (key(2), 3)]);
    assert!(objects.get_mut(&key(3)).is_none() && objects.remove(&key(3)).is_none());
    objects.clear();
    assert_eq!(objects.iter().count(), 0);
}

#[test]
fn an_object_takes_little_room() {
    assert!(size_of::<Object>() <= 280, "{}", size_of::<Object>());
}
