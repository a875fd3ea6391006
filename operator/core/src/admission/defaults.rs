//! What is filled in before a TrainJob is stored.
//!
//! | field | create | update |
//! |---|---|---|
//! | `spec.runtimePatches[].time` | now, unless given | as it was, if the entry is; now, if it has changed; now for a new entry, unless given |
//! | `spec.ttlSecondsAfterFinished`, `spec.activeDeadlineSeconds` | see [`limits`](super::limits) | |
//!
//! The answer is a JSON patch of these fields alone, so what this release does not know of an object is
//! never touched; it is empty when there is nothing to fill in.

use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, jsonptr::PointerBuf};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;
use trainjob_api::{TrainJob, time::Timestamp, v1alpha1::patches::RuntimePatch};

use super::same::same;

/// Which times are filled in in a TrainJob that is to be created.
#[must_use]
pub fn on_create(job: &TrainJob, now: Timestamp) -> Patch {
    let times = entries(job).iter().enumerate().filter_map(|(index, entry)| {
        set_time(index, entry, entry.time.clone().or_else(|| Some(now.into())).as_ref())
    });
    Patch(times.collect())
}

/// Which times are filled in in a TrainJob that replaces `old`: nothing in one that is being deleted.
#[must_use]
pub fn on_update(old: &TrainJob, job: &TrainJob, now: Timestamp) -> Patch {
    if job.metadata.deletion_timestamp.is_some() {
        return Patch(Vec::new());
    }
    let times = entries(job).iter().enumerate().filter_map(|(index, entry)| {
        let known = entries(old).iter().find(|known| known.manager == entry.manager);
        let time = match known {
            Some(known) if same(&timeless(known), &timeless(entry)) => known.time.clone(),
            Some(_) => Some(now.into()),
            None => entry.time.clone().or_else(|| Some(now.into())),
        };
        set_time(index, entry, time.as_ref())
    });
    Patch(times.collect())
}

fn entries(job: &TrainJob) -> &[RuntimePatch] {
    job.spec.runtime_patches.as_deref().unwrap_or_default()
}

fn timeless(entry: &RuntimePatch) -> RuntimePatch {
    RuntimePatch { time: None, ..entry.clone() }
}

/// What it takes to give the entry this time, or none.
fn set_time(index: usize, entry: &RuntimePatch, time: Option<&Time>) -> Option<PatchOperation> {
    if entry.time.as_ref() == time {
        return None;
    }
    let index = index.to_string();
    let path = PointerBuf::from_tokens(["spec", "runtimePatches", &index, "time"]);
    Some(match time {
        Some(time) => {
            // A time is a string, which cannot fail to be one.
            let value = serde_json::to_value(time).unwrap_or(Value::Null);
            PatchOperation::Add(AddOperation { path, value })
        }
        None => PatchOperation::Remove(RemoveOperation { path }),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::testing;

    const NOW: Timestamp = Timestamp(1_767_520_800);
    const NOW_TEXT: &str = "2026-01-04T10:00:00Z";
    const THEN: &str = "2025-12-31T23:59:59Z";

    fn job(entries: &Value) -> TrainJob {
        testing::job(&json!({"runtimePatches": entries}))
    }

    fn entry(time: Option<&str>, memory: &str) -> Value {
        let volumes = json!([{"name": "v", "emptyDir": {"sizeLimit": memory}}]);
        let pod = json!({"template": {"spec": {"template": {"spec": {"volumes": volumes}}}}});
        let mut replicated_job = json!({"name": "node"});
        replicated_job.as_object_mut().unwrap().extend(pod.as_object().unwrap().clone());
        let mut entry = json!({
            "manager": "a/b",
            "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [replicated_job]}}},
        });
        if let Some(time) = time {
            entry["time"] = time.into();
        }
        entry
    }

    /// The time of the last entry after the patch, and whether there was one.
    fn filled_in(job: &TrainJob, patch: &Patch) -> (Option<String>, bool) {
        let mut value = serde_json::to_value(job).unwrap();
        json_patch::patch(&mut value, patch).unwrap();
        let entries = value["spec"]["runtimePatches"].as_array().unwrap();
        let time =
            entries.last().unwrap().get("time").map(|time| time.as_str().unwrap().to_owned());
        (time, !patch.0.is_empty())
    }

    #[test]
    fn a_created_entry_gets_the_time_unless_it_has_one() {
        for (given, expected, patched) in [(None, NOW_TEXT, true), (Some(THEN), THEN, false)] {
            let job = job(&json!([entry(None, "1"), entry(given, "1")]));
            let patch = on_create(&job, NOW);
            let (time, _) = filled_in(&job, &patch);
            assert_eq!(time.as_deref(), Some(expected));
            assert_eq!(patch.0.len(), 1 + usize::from(patched));
        }
    }

    #[test]
    fn an_entry_s_time_is_that_of_its_last_change() {
        let time = "2026-02-02T02:02:02Z";
        for (old, new, expected) in [
            // Unchanged: whatever is sent.
            (entry(Some(THEN), "1"), entry(Some(THEN), "1"), Some(THEN)),
            (entry(Some(THEN), "1"), entry(Some(time), "1"), Some(THEN)),
            (entry(Some(THEN), "1"), entry(None, "1"), Some(THEN)),
            (entry(Some(THEN), "1"), entry(None, "1000m"), Some(THEN)),
            (entry(None, "1"), entry(None, "1"), None),
            (entry(None, "1"), entry(Some(time), "1"), None),
            // Changed: whatever is sent.
            (entry(Some(THEN), "1"), entry(Some(THEN), "2"), Some(NOW_TEXT)),
            (entry(Some(THEN), "1"), entry(Some(time), "2"), Some(NOW_TEXT)),
            (entry(None, "1"), entry(None, "2"), Some(NOW_TEXT)),
            // New: unless something is sent.
            (json!({"manager": "c/d"}), entry(None, "1"), Some(NOW_TEXT)),
            (json!({"manager": "c/d"}), entry(Some(time), "1"), Some(time)),
        ] {
            let (before, after) = (job(&json!([old])), job(&json!([new])));
            let (found, patched) = filled_in(&after, &on_update(&before, &after, NOW));
            assert_eq!(found.as_deref(), expected, "{old} and {new}");
            assert_eq!(
                patched,
                new.get("time").and_then(Value::as_str) != expected,
                "{old}, {new}"
            );
        }
    }

    #[test]
    fn entries_are_known_by_their_managers() {
        let other = json!({"manager": "c/d", "time": THEN});
        let before = job(&json!([other, entry(Some(THEN), "1")]));
        let after = job(&json!([entry(None, "2"), other]));
        let Patch(patch) = on_update(&before, &after, NOW);
        let json = serde_json::to_value(&patch).unwrap();
        let pointer = "/spec/runtimePatches/0/time";
        assert_eq!(json, json!([{"op": "add", "path": pointer, "value": NOW_TEXT}]));
    }

    #[test]
    fn a_job_that_is_being_deleted_is_left_alone() {
        let before = job(&json!([entry(Some(THEN), "1")]));
        let mut after = job(&json!([entry(None, "1")]));
        after.metadata.deletion_timestamp = Some(NOW.into());
        assert_eq!(on_update(&before, &after, NOW), Patch(vec![]));
    }

    #[test]
    fn what_is_filled_in_once_is_not_filled_in_again() {
        let mut value = serde_json::to_value(job(&json!([entry(None, "1")]))).unwrap();
        let once = serde_json::from_value(value.clone()).unwrap();
        json_patch::patch(&mut value, &on_create(&once, NOW)).unwrap();
        let twice = serde_json::from_value(value).unwrap();
        assert_eq!(on_create(&twice, NOW.plus(9)), Patch(vec![]));
    }
}
