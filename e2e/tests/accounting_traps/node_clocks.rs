//! Trap 16: the clocks of nodes are an hour off.

use anyhow::{Result, ensure};
use e2e::accounting::holds;
use e2e::fixtures::status::now;
use e2e::recorder::AccountingRecorder;
use invariants::accounting::Terms;
use serde_json::json;
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;
use trainjob_api::time::Timestamp;

use super::bare::{Bare, Wanted, each, end, ran_between, store};

const HOUR: i64 = 3_600;
/// For how long each Pod has run when its end is reported.
const RAN: i64 = 100;

#[tokio::test]
async fn at3_a_pod_of_a_node_with_a_wrong_clock_is_charged_for_no_time_that_is_impossible()
-> Result<()> {
    let bare = Box::pin(Bare::start()).await?;
    let (tenant, uid) = bare.tenant("clocks").await?;
    let recorder = AccountingRecorder::start(tenant.client.clone()).await?;
    let ended_at = now();
    let bound = Timestamp(ended_at.0 - RAN);
    let all: Vec<_> = [0, HOUR, -HOUR]
        .into_iter()
        .enumerate()
        .map(|(number, ahead)| Wanted {
            number,
            job: "node".to_owned(),
            restart: 0,
            requests: json!({"nvidia.com/gpu": "1"}),
            status: ran_between(bound, Timestamp(ended_at.0 + ahead), 0, ""),
        })
        .collect();
    each(&all, |wanted| store(&tenant, ("clocks", &uid), wanted)).await?;
    bare.open(all.len()).await?;
    each(&all, |wanted| end(&tenant, "clocks", wanted)).await?;
    let status = bare.ends(&tenant, "clocks", "Complete").await?;
    let succeeded = PodCounts { succeeded: 3, ..PodCounts::default() };
    ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
    ensure!(status.clamped == 2, "{} ends were impossible", status.clamped);
    // The right clock's Pod its seconds, the early one's none, the late one's those until it was counted.
    let late = u64::try_from(now().since(bound))?;
    let ran = u64::try_from(RAN)?;
    let possible = 2 * ran..=ran + late;
    ensure!(possible.contains(&status.totals.gpu_seconds), "{:#?} {possible:?}", status.totals);
    recorder.judge(&[&tenant.namespace], &[], &Terms::default()).await
}
