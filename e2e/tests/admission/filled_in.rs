//! When an entry of `runtimePatches` has changed.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::parts::{patch, plain};
use super::place;
use super::place::{Request, Way, manifest};

const THEN: &str = "2025-12-31T23:59:59Z";

/// A job with entries `a.io/a`, which selects this zone, and `a.io/b`, with these times.
fn spec(zone: &str, times: [Option<&str>; 2]) -> Value {
    let entries = [("a.io/a", zone), ("a.io/b", "b")].into_iter().zip(times).map(
        |((manager, zone), time)| {
            let mut entry = patch(manager, "node", &json!({"nodeSelector": {"zone": zone}}));
            if let Some(time) = time {
                entry["time"] = json!(time);
            }
            entry
        },
    );
    json!({
        "runtimeRef": {"name": "r", "kind": "TrainingRuntime"},
        "suspend": true,
        "runtimePatches": entries.collect::<Vec<_>>(),
    })
}

fn times(job: &Value) -> Result<[String; 2]> {
    let time = |index: usize| {
        let time = job["spec"]["runtimePatches"][index]["time"].as_str();
        time.map(ToOwned::to_owned).with_context(|| format!("entry {index} has no time"))
    };
    Ok([time(0)?, time(1)?])
}

#[tokio::test]
async fn an_entry_s_time_is_that_of_its_last_change() -> Result<()> {
    let place = place("times").await?;
    place.make_runtime("r", &plain()).await?;
    for way in Way::ALL {
        let context = || format!("{way:?}");
        let name = context().to_lowercase();
        let given = spec("a", [Some(THEN), None]);
        let asked = Request::create(way, manifest(&name, &given));
        let dry = place.send(&asked, true).await?;
        ensure!(dry.code == 201 && times(&dry.object)?[0] == THEN, "{way:?}: {dry:?}");
        ensure!(place.read(&name).await?.code == 404, "{way:?}: a dry run has left a trace");

        // What is given is kept, the other is filled in.
        let job = place.create(way, &name, &given).await?;
        let [first, created] = times(&job).with_context(context)?;
        ensure!(first == THEN && created.as_str() > THEN, "{way:?}: {first}, {created}");

        // Unchanged, whatever is sent.
        for sent in [[None, None], [Some("2020-01-01T00:00:00Z"); 2], [Some(THEN), None]] {
            let answer =
                place.change(way, &job_now(&place, &name).await?, &spec("a", sent)).await?;
            ensure!(answer.code == 200, "{way:?}: {answer:?}");
            let found = times(&answer.object).with_context(context)?;
            ensure!(found == [THEN.to_owned(), created.clone()], "{way:?}, {sent:?}: {found:?}");
        }

        // Changed, whatever is sent; the other is not.
        let stored = job_now(&place, &name).await?;
        let answer = place.change(way, &stored, &spec("c", [Some(THEN), None])).await?;
        ensure!(answer.code == 200, "{way:?}: {answer:?}");
        let [changed, other] = times(&answer.object).with_context(context)?;
        ensure!(changed >= created && other == created, "{way:?}: {changed}, {other}");
    }
    Ok(())
}

#[tokio::test]
async fn defaulting_sets_no_other_field() -> Result<()> {
    let place = place("nothing-else").await?;
    place.make_runtime("r", &plain()).await?;
    let spec =
        json!({"runtimeRef": {"name": "r", "kind": "TrainingRuntime"}, "trainer": {"numNodes": 1}});
    let job = place.create(Way::Replace, "job", &spec).await?;
    let expected = json!({
        "runtimeRef": {"name": "r", "kind": "TrainingRuntime", "apiGroup": "trainer.kubeflow.org"},
        "trainer": {"numNodes": 1},
        "suspend": false,
        "managedBy": "trainer.kubeflow.org/trainjob-controller",
    });
    ensure!(job["spec"] == expected, "{}", job["spec"]);
    Ok(())
}

/// The job as it is stored.
async fn job_now(place: &super::place::Place, name: &str) -> Result<Value> {
    let answer = place.read(name).await?;
    ensure!(answer.code == 200, "{answer:?}");
    Ok(answer.object)
}
