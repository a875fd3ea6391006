//! TrainJobs of a megabyte, in one namespace.

use anyhow::Result;
use kube::api::{Api, PostParams};
use serde::Serialize;
use trainjob_api::v1alpha1::train_job::{TrainJobSpec, Trainer};
use trainjob_api::{JobSet, TrainJob};

use super::super::jobs::{in_places, on_torch};
use super::super::rig::Rig;
use super::super::usage::megabytes;
use super::replica::Replica;
use super::rest::settle;
use super::stock::without_job_set;

const NAMESPACE: &str = "hostile";
/// Arguments of a job, and the length of each: the API server accepts no more than a megabyte and a half.
const ARGUMENTS: usize = 100;
const LENGTH: usize = 10_000;
/// Jobs that are created at a time: more leave an API server on two cores no room to renew a Lease.
const PLACES: usize = 1;

/// What came of it, in megabytes.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Hostile {
    pub(super) jobs: usize,
    pub(super) peak_mb: f64,
    pub(super) pss_mb: f64,
    pub(super) restarted_peak_mb: f64,
    pub(super) restarted_pss_mb: f64,
    pub(super) ready_ms: f64,
    /// Jobs without a JobSet.
    pub(super) missing: usize,
}

/// Creates them beside an operator, which is then killed and started again.
pub(super) async fn run(rig: &Rig, jobs: usize, seconds: usize) -> Result<Hostile> {
    without_job_set(rig).await?;
    rig.bare_namespace(NAMESPACE).await?;
    let first = Replica::launch(rig, "first").await?;
    first.ready().await?;
    rig.progress.step("creating TrainJobs of a megabyte", jobs);
    let api: Api<TrainJob> = Api::namespaced(rig.admin.clone(), NAMESPACE);
    let (progress, spec) = (rig.progress.clone(), large());
    in_places(PLACES, (0..jobs).collect(), move |number: usize| {
        let (api, progress, spec) = (api.clone(), progress.clone(), spec.clone());
        async move {
            let job = TrainJob::new(&format!("large-{number:05}"), spec);
            api.create(&PostParams::default(), &job).await?;
            progress.one();
            Ok(())
        }
    })
    .await?;
    rig.progress.step("JobSets of them", jobs);
    let missing = jobs - rig.until_count::<JobSet>(NAMESPACE, jobs).await?.min(jobs);
    settle(rig, seconds).await?;
    let before = first.usage()?;
    first.operator.kill9();
    rig.progress.step("the operator starts again", 0);
    let second = Replica::launch(rig, "second").await?;
    let ready_ms = second.ready().await?;
    settle(rig, seconds).await?;
    let after = second.usage()?;
    Ok(Hostile {
        jobs,
        peak_mb: megabytes(before.peak),
        pss_mb: megabytes(before.now),
        restarted_peak_mb: megabytes(after.peak),
        restarted_pss_mb: megabytes(after.now),
        ready_ms,
        missing,
    })
}

fn large() -> TrainJobSpec {
    let args = vec!["a".repeat(LENGTH); ARGUMENTS];
    let trainer = Trainer { args: Some(args), ..Trainer::default() };
    TrainJobSpec { trainer: Some(trainer), ..on_torch() }
}
