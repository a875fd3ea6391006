//! What had to make room in the operator's memory is read again when it is needed, once (`docs/scale.md`).

use anyhow::{Result, ensure};
use e2e::apply::apply;
use e2e::fixtures::{LITTLE_ROOM, PATIENCE, POOL, fillers, runtime};
use e2e::until::until_ok;
use serde_json::json;

const READ: &str = "trainjob_operator_runtimes_read_total";
const KIND: &str = "TrainingRuntime";

#[tokio::test]
async fn a_job_whose_runtime_made_room_gets_its_jobset_after_one_get_of_it() -> Result<()> {
    POOL.test("evicted", async |tenant| {
        // They are listed by name, so it comes before those that take its room.
        let mut first = runtime("a", &json!({"edition": "first"}), 1, None);
        first["kind"] = json!(KIND);
        apply(&tenant.client, &tenant.namespace, vec![first]).await?;
        let others = fillers(KIND, "other");
        let stays = others.last().map(|other| other["metadata"]["name"].clone());
        apply(&tenant.client, &tenant.namespace, others).await?;
        tenant.world.start_operator_with(LITTLE_ROOM).await?;

        let stays = stays.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
        let of_namespace = json!({"runtimeRef": {"name": "", "kind": KIND}});
        tenant.create("kept", stays, of_namespace.clone()).await?;
        tenant.has_job_set("kept").await?;
        ensure!(tenant.requests("get", "trainingruntimes", stays)?.is_empty(), "it was there");

        tenant.create("job", "a", of_namespace).await?;
        let job_set = tenant.has_job_set("job").await?;
        ensure!(job_set.data.to_string().contains("first"), "it is made of {}", job_set.data);
        // The API server notes a request after its effect can be seen.
        let reads = until_ok("the GET is noted", PATIENCE, || async {
            let reads = tenant.requests("get", "trainingruntimes", "a")?;
            ensure!(!reads.is_empty(), "no GET is");
            Ok(reads)
        })
        .await?;
        ensure!(reads.len() == 1, "{reads:#?}");
        let page = tenant.world.metrics().await?;
        ensure!(page.lines().any(|line| line == format!("{READ} 1")), "{page}");
        Ok(())
    })
    .await
}
