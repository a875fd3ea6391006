//! Jobs of one namespace that each cause warnings: a policy refuses their JobSets.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use tokio::task::JoinSet;
use trainjob_api::TrainJob;

use super::super::calls::Micros;
use super::super::figures::float;
use super::super::jobs::suspended;
use super::super::rig::Rig;
use super::load::{Beside, Round};
use super::neighbour::job_set;
use crate::testenv::apply::apply;
use crate::testenv::fixtures::{Operation, PATIENCE, SYSTEM, denial};
use crate::testenv::kinds::job_sets;
use crate::testenv::operator::{Operator, SERVICE_ACCOUNT};
use crate::testenv::until::until_ok;

/// Warnings for each job that a bad neighbour has in other cases: as many jobs, which are refused once each, and then
/// others.
const EACH: usize = 10;
const POLICY: &str = "refuses-job-sets";
/// How long it is until there are more warnings, at most. One that the API server did not take comes again with the next
/// refusal, and what is refused is tried again after a minute.
const NEXT_WARNING: Duration = Duration::from_mins(2);
const DROPPED: &str = "trainjob_operator_events_dropped_total";

/// Measures the neighbour while jobs of another namespace cause warnings.
pub(super) async fn beside(beside: &Beside<'_>) -> Result<Round> {
    let Beside { rig, neighbour, jobs, seconds } = *beside;
    let namespace = rig.cluster.namespace("hostile").await?;
    refuse(rig, &namespace).await?;
    let operator = rig.start_operator().await?;
    neighbour.settled(rig).await?;
    let wanted = EACH * jobs;
    let api: Api<TrainJob> = Api::namespaced(rig.admin.clone(), &namespace);
    let (created, served) =
        tokio::try_join!(cause(api, wanted, seconds), neighbour.lives(rig, &rig.raw))?;
    rig.progress.step("warnings that the operator tried", wanted);
    let (mut sent, mut dropped) = tried(rig, &operator, &namespace).await?;
    while sent + dropped < wanted {
        rig.progress.at(sent + dropped);
        let more = until_ok("there come to be more warnings", NEXT_WARNING, || async {
            let now = tried(rig, &operator, &namespace).await?;
            ensure!(now.0 + now.1 > sent + dropped, "there are {now:?}");
            Ok(now)
        });
        let Ok(now) = more.await else { break };
        (sent, dropped) = now;
    }
    let load = format!("{created} jobs; {sent} warnings sent, {dropped} dropped");
    Ok(Round { served, load, lacking: wanted.saturating_sub(sent + dropped) })
}

/// Has a policy refuse JobSets of the operator there, and waits until it does.
async fn refuse(rig: &Rig, namespace: &str) -> Result<()> {
    apply(&rig.admin, namespace, denial(POLICY, namespace, Operation::Create)).await?;
    let operator: Client = rig.cluster.service_account_client(SYSTEM, SERVICE_ACCOUNT).await?;
    let api: Api<DynamicObject> = Api::namespaced_with(operator, namespace, &job_sets());
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    until_ok("JobSets are refused", PATIENCE, || async {
        match api.create(&dry_run, &job_set("probe")?).await {
            Err(kube::Error::Api(refusal)) if refusal.message.contains(POLICY) => Ok(()),
            Err(error) => bail!(error),
            Ok(_) => bail!("they are not yet"),
        }
    })
    .await
}

/// Creates jobs, evenly spread; returns how many.
async fn cause(api: Api<TrainJob>, count: usize, seconds: usize) -> Result<usize> {
    let (begin, mut creating) = (Micros::now(), JoinSet::new());
    let apart = Duration::from_secs_f64(float(seconds) / float(count.max(1)));
    let apart = i64::try_from(apart.as_micros()).context("a bench takes no 300,000 years")?;
    for (number, due) in (0..count).zip((0..).map(|turn| begin.0 + turn * apart)) {
        tokio::time::sleep(Micros(due).away()).await;
        let api = api.clone();
        creating.spawn(async move {
            let job = TrainJob::new(&format!("job-{number:06}"), suspended());
            api.create(&PostParams::default(), &job).await
        });
    }
    while let Some(done) = creating.join_next().await {
        done??;
    }
    Ok(count)
}

/// Warnings that the operator has sent to the namespace, and those that it dropped.
async fn tried(rig: &Rig, operator: &Operator, namespace: &str) -> Result<(usize, usize)> {
    let events = rig.noted().await?.operator.events;
    let sent = events.iter().filter(|event| event.object.namespace == namespace).count();
    let dropped = operator.metric(DROPPED).await?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    Ok((sent, dropped as usize))
}
