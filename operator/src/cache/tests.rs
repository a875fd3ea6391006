use serde_json::json;

use super::*;

/// The reply to a request that was sent before any list was complete.
const REPLY: Source = Source::Reply { lists: 0 };

fn job_set(version: u64, generation: i64) -> JobSetFacts {
    JobSetFacts::of(&serde_json::from_value(json!({
        "metadata": {"uid": "set", "resourceVersion": version.to_string(), "generation": generation},
    })).unwrap())
}

#[test]
fn what_a_jobset_was_made_from_is_known_until_somebody_else_changes_it() {
    for (what, delivered, generation, replied, known) in [
        ("nothing", 10, 1, None, true),
        ("its status", 12, 1, None, true),
        ("its spec", 12, 2, None, false),
        ("our own change, seen before its reply came", 12, 2, Some(12), true),
        ("our own change, and then another", 13, 3, Some(12), false),
    ] {
        let cache = Cache::default();
        let job: TrainJob = serde_json::from_value(json!({
            "metadata": {"namespace": "ns", "name": "job", "uid": "job", "resourceVersion": "1"},
            "spec": {"runtimeRef": {"name": "r"}},
        }))
        .unwrap();
        let key = ObjectKey::of(&job.metadata);
        cache.put_job(job, Source::Watch);
        cache.put_job_set(&key, job_set(10, 1), Source::Watch);
        cache.rendered(&cache.view(&key).unwrap(), 7);
        let before = cache.view(&key).unwrap();
        cache.put_job_set(&key, job_set(delivered, generation), Source::Watch);
        if let Some(version) = replied {
            cache.put_job_set(&key, job_set(version, 2), REPLY);
        }
        let rendered = || cache.view(&key).unwrap().readings.rendered;
        assert_eq!(rendered(), known.then_some(7), "{what}");
        // A plan that was made before does not know better.
        cache.rendered(&before, 8);
        assert_eq!(rendered(), known.then_some(8), "{what}");
        // One that was made since does.
        cache.rendered(&cache.view(&key).unwrap(), 9);
        assert_eq!(rendered(), Some(9), "{what}");
    }
}

#[test]
fn a_finished_job_takes_no_room_for_the_object_it_was() {
    assert!(size_of::<JobRecord>() < 300, "{} bytes", size_of::<JobRecord>());
}
