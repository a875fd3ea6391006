//! The TTL of queued jobs where Kueue keeps Workloads as long as their jobs.

use anyhow::{Result, ensure};
use e2e::fixtures::{COMPLETES, FAILS};
use e2e::kueue::{Ask, Clock, QueueOptions, Setting};
use serde_json::json;

use super::{KEPT, TTL};

#[tokio::test(flavor = "multi_thread")]
async fn ttl_deletes_a_job_with_its_workload_whatever_its_end() -> Result<()> {
    let setting = Setting::shared(Clock::Creation).await?;
    setting
        .test("ttl", QueueOptions::default(), async |case| {
            let jobs = [("completes", COMPLETES, "Succeeded"), ("fails", FAILS, "Failed")];
            for (name, runtime, _) in jobs {
                case.submit(name, runtime, Ask::low(4), json!({TTL: KEPT})).await?;
            }
            for (name, _, reason) in jobs {
                let workload = case.workload_is(name, "finished", |it| it.is("Finished")).await?;
                ensure!(workload.reason("Finished") == Some(reason), "{}", workload.brief());
            }
            for (name, ..) in jobs {
                case.both_gone(name).await?;
            }
            Ok(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn ttl_of_zero_deletes_a_job_with_its_workload() -> Result<()> {
    let setting = Setting::shared(Clock::LastResume).await?;
    setting
        .test("ttl-zero", QueueOptions::default(), async |case| {
            case.submit("at-once", COMPLETES, Ask::low(4), json!({TTL: 0})).await?;
            case.both_gone("at-once").await
        })
        .await
}
