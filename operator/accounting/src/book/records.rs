//! How many records there are, in a few bytes each.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
};

use kube::ResourceExt as _;
use trainjob_api::lifecycle::v1alpha1::{record::TrainJobRecord, record_words::RecordCondition};

/// Whether each record is final, by a number that its UID gives.
#[derive(Debug, Default)]
pub(super) struct Records {
    known: HashMap<u64, bool>,
    /// Those of a list that is being delivered.
    listed: Option<HashMap<u64, bool>>,
}

impl Records {
    /// A list begins.
    pub(super) fn list_begins(&mut self) {
        self.listed = Some(HashMap::new());
    }

    /// The list is complete: there are no others.
    pub(super) fn list_ends(&mut self) {
        if let Some(listed) = self.listed.take() {
            self.known = listed;
        }
    }

    /// A version of one was seen, perhaps in a list. Whether it is final.
    pub(super) fn saw(&mut self, record: &TrainJobRecord, is_listed: bool) -> bool {
        let (number, is_final) = (number(&record.uid().unwrap_or_default()), is_final(record));
        let listed = if is_listed { self.listed.as_mut() } else { None };
        listed.unwrap_or(&mut self.known).insert(number, is_final);
        is_final
    }

    /// One went.
    pub(super) fn gone(&mut self, uid: &str) {
        self.known.remove(&number(uid));
    }

    /// How many are not final, and how many are.
    pub(super) fn count(&self) -> [usize; 2] {
        let finals = self.known.values().filter(|is_final| **is_final).count();
        [self.known.len().saturating_sub(finals), finals]
    }
}

fn number(uid: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::new().hash_one(uid)
}

fn is_final(record: &TrainJobRecord) -> bool {
    let conditions = record.status.iter().flat_map(|status| &status.conditions);
    let of = RecordCondition::Final.as_str();
    conditions.into_iter().any(|it| it.type_ == of && it.status == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(uid: &str, is_final: &str) -> TrainJobRecord {
        let condition = json!({
            "type": "Final", "status": is_final, "reason": "Open", "message": "",
            "lastTransitionTime": "2026-11-22T06:00:00Z",
        });
        serde_json::from_value(json!({
            "apiVersion": "lifecycle.trainjob.dev/v1alpha1", "kind": "TrainJobRecord",
            "metadata": {"name": "llm-1", "namespace": "a", "uid": uid},
            "spec": {"trainJob": {"name": "llm", "uid": "u1"}},
            "status": {"conditions": [condition]},
        }))
        .unwrap()
    }

    #[test]
    fn records_are_counted_by_whether_they_are_final() {
        let mut records = Records::default();
        records.list_begins();
        assert!(!records.saw(&record("r1", "False"), true));
        assert!(records.saw(&record("r2", "True"), true));
        records.list_ends();
        assert_eq!(records.count(), [1, 1]);
        assert!(records.saw(&record("r1", "True"), false));
        assert_eq!(records.count(), [0, 2]);
        records.gone("r2");
        assert_eq!(records.count(), [0, 1]);
        records.list_begins();
        records.list_ends();
        assert_eq!(records.count(), [0, 0], "what a list does not show is gone");
    }
}
