//! GPU seconds of random jobs: what the records say is compared with a count of the recorded history
//! ([`gpu_seconds`]), which has none of the program's code.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use e2e::accounting::{Counted, holds, records};
use e2e::apply::apply;
use e2e::fixtures::{COMPLETES_AFTER, Tenant, runtime};
use e2e::recorder::AccountingRecorder;
use e2e::until::until_ok;
use explorer::random::Random;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use invariants::accounting::{AccountingHistory, Terms, check, gpu_seconds};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, EvictParams, ListParams};
use serde_json::{Value, json};

use super::{SETTINGS, scaled};

/// What the jobs are drawn by.
const SEED: u64 = 21;
/// How long a job may take until its record is final.
const WITHIN: Duration = Duration::from_mins(5);
/// More GPUs than a node has.
const TOO_MANY: usize = 64;
/// By this annotation a simulated Pod fails, and how.
const OUTCOME: &str = "e2e.trainjob.dev/outcome";
/// By this one it ends at a random instant between its delay and this one.
const JITTER: &str = "pod-complete.stage.kwok.x-k8s.io/jitter-delay";

/// What becomes of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Completes,
    Fails,
    RunsOutOfMemory,
    GoesByItsTtl,
    IsSuspended,
    MeetsItsDeadline,
    IsDeleted,
    LosesAPod(Loss),
    LosesItsJobSet,
    IsNeverScheduled,
}

/// How a Pod is lost.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Loss {
    Deleted,
    Forced,
    Evicted,
}

const FATES: [Fate; 12] = [
    Fate::Completes,
    Fate::Fails,
    Fate::RunsOutOfMemory,
    Fate::GoesByItsTtl,
    Fate::IsSuspended,
    Fate::MeetsItsDeadline,
    Fate::IsDeleted,
    Fate::LosesAPod(Loss::Deleted),
    Fate::LosesAPod(Loss::Forced),
    Fate::LosesAPod(Loss::Evicted),
    Fate::LosesItsJobSet,
    Fate::IsNeverScheduled,
];

/// A job.
#[derive(Debug, Clone)]
struct Drawn {
    name: String,
    fate: Fate,
    nodes: usize,
    gpus: usize,
    restarts: usize,
    /// When its first Pods end by themselves, or somebody does something to it, and how much later others end.
    after: Duration,
    spread: Duration,
    seconds: i64,
}

impl Drawn {
    fn new(number: usize, random: &mut Random) -> Self {
        let millis = |random: &mut Random, most| {
            Duration::from_millis(u64::try_from(random.below(most)).unwrap_or_default())
        };
        // Each of them comes, also among few.
        let fate = FATES.get(number % FATES.len()).copied().unwrap_or(Fate::Completes);
        Self {
            name: format!("job-{number:03}"),
            fate,
            nodes: 1 + random.below(4),
            gpus: if fate == Fate::IsNeverScheduled { TOO_MANY } else { random.below(5) },
            restarts: random.below(3),
            after: millis(random, 6_000),
            spread: millis(random, 3_000),
            seconds: random.between(1, 8),
        }
    }

    /// Its runtime, of its name.
    fn runtime(&self) -> Result<Value> {
        let delay = format!("{}ms", self.after.as_millis());
        let latest = format!("{}ms", (self.after + self.spread).as_millis());
        let fails = |how| json!({COMPLETES_AFTER: delay, JITTER: latest, OUTCOME: how});
        let annotations = match self.fate {
            Fate::Completes | Fate::GoesByItsTtl => {
                json!({COMPLETES_AFTER: delay, JITTER: latest})
            }
            Fate::Fails => fails("fail"),
            Fate::RunsOutOfMemory => fails("oom"),
            Fate::IsSuspended
            | Fate::MeetsItsDeadline
            | Fate::IsDeleted
            | Fate::LosesAPod(_)
            | Fate::LosesItsJobSet
            | Fate::IsNeverScheduled => json!({}),
        };
        let mut runtime = runtime(&self.name, &annotations, 3, None);
        let job_set = runtime.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut);
        let policy = json!({"maxRestarts": self.restarts});
        job_set.context("no JobSet")?.insert("failurePolicy".to_owned(), policy);
        Ok(runtime)
    }

    fn spec(&self) -> Value {
        let limits = json!({"nvidia.com/gpu": self.gpus.to_string(), "cpu": "1"});
        let trainer = json!({"numNodes": self.nodes, "resourcesPerNode": {"limits": limits}});
        match self.fate {
            Fate::GoesByItsTtl => {
                json!({"trainer": trainer, "ttlSecondsAfterFinished": self.seconds % 3})
            }
            Fate::MeetsItsDeadline => {
                json!({"trainer": trainer, "activeDeadlineSeconds": self.seconds})
            }
            _ => json!({"trainer": trainer}),
        }
    }

    /// Whether somebody has to delete it.
    const fn ends(&self) -> bool {
        matches!(
            self.fate,
            Fate::Completes
                | Fate::Fails
                | Fate::RunsOutOfMemory
                | Fate::GoesByItsTtl
                | Fate::MeetsItsDeadline
        )
    }

    /// Lives it, until nothing is left to count. Returns its UID.
    async fn live(&self, tenant: &Tenant<'_>) -> Result<String> {
        apply(&tenant.client, "default", vec![self.runtime()?]).await?;
        let job = tenant.create(&self.name, &self.name, self.spec()).await?;
        if !self.ends() {
            // People do things at any time.
            tokio::time::sleep(self.after).await;
            self.happens(tenant).await?;
            tokio::time::sleep(self.spread).await;
            tenant.delete(&self.name).await?;
        }
        self.over(tenant).await?;
        job.uid().context("no UID")
    }

    /// What somebody does to it.
    async fn happens(&self, tenant: &Tenant<'_>) -> Result<()> {
        let name = &self.name;
        match self.fate {
            Fate::IsSuspended => {
                tenant.patch(name, &json!({"spec": {"suspend": true}})).await?;
                tenant.becomes(name, "Suspended").await?;
                tokio::time::sleep(self.spread).await;
                tenant.patch(name, &json!({"spec": {"suspend": false}})).await?;
            }
            Fate::LosesAPod(loss) => {
                let pod = until_ok("it has a Pod", WITHIN, || async {
                    let going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
                    let mut pods = tenant.pods_of(name).await?.into_iter();
                    pods.find(|pod| !going(pod)).context("it has none")
                })
                .await?;
                let answer = match loss {
                    Loss::Deleted => {
                        let how = DeleteParams::default();
                        tenant.pods.delete(&pod.name_any(), &how).await.map(|_| ())
                    }
                    Loss::Forced => {
                        let how = DeleteParams::default().grace_period(0);
                        tenant.pods.delete(&pod.name_any(), &how).await.map(|_| ())
                    }
                    Loss::Evicted => {
                        let how = EvictParams::default();
                        tenant.pods.evict(&pod.name_any(), &how).await.map(|_| ())
                    }
                };
                // It may have gone by itself.
                answer.or_else(|error| match error {
                    kube::Error::Api(status) if status.code == 404 => Ok(()),
                    error => Err(error),
                })?;
            }
            Fate::LosesItsJobSet => {
                tenant.has_job_set(name).await?;
                tenant.delete_job_set(name).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Waits until its record is final, or it went before it had a Pod.
    async fn over(&self, tenant: &Tenant<'_>) -> Result<()> {
        until_ok("all is counted", WITHIN, || async {
            // Before the record: a Pod that goes meanwhile has one.
            let is_gone = self.is_gone(tenant).await?;
            let records = records(tenant, &self.name).await?;
            let mut all = records.iter().map(|it| it.status.as_ref());
            let final_ones = all.all(|it| it.is_some_and(|status| holds(status, "Final")));
            let is_over = if records.is_empty() { is_gone } else { final_ones };
            ensure!(is_over, "gone: {is_gone}, {records:#?}");
            Ok(())
        })
        .await
    }

    /// Whether there is neither a Pod of it nor what makes one. Who makes others is looked for before them.
    async fn is_gone(&self, tenant: &Tenant<'_>) -> Result<bool> {
        let name = &self.name;
        let is_there = tenant.jobs.get_opt(name).await?.is_some()
            || tenant.job_sets.get_opt(name).await?.is_some();
        if is_there {
            return Ok(false);
        }
        let jobs: Api<Job> = Api::namespaced(tenant.client.clone(), &tenant.namespace);
        let label = format!("jobset.sigs.k8s.io/jobset-name={name}");
        let jobs = jobs.list(&ListParams::default().labels(&label)).await?.items;
        Ok(jobs.is_empty() && tenant.pods_of(name).await?.is_empty())
    }
}

/// The GPU seconds of a job, of which record and history say the same.
fn judge(uid: &str, history: &AccountingHistory, terms: &Terms) -> Result<u64> {
    let pods = history.pods.iter().filter(|pod| pod.job == uid);
    let pods: BTreeSet<_> = pods.map(|pod| &pod.uid).collect();
    let versions = history.records.iter().filter(|record| record.job == uid);
    let Some(last) = versions.max_by_key(|record| record.revision) else {
        ensure!(pods.is_empty(), "it has {} Pods and no record", pods.len());
        return Ok(0);
    };
    let status = &last.status;
    ensure!(holds(status, "Final") && holds(status, "Exact"), "{status:#?}");
    let counted = status.totals.pods;
    let counted = counted.succeeded + counted.failed + counted.deleted;
    ensure!(counted == pods.len() as u64, "{counted} of {} Pods: {status:#?}", pods.len());
    let expected = gpu_seconds(history, uid, terms.watch_behind).map_err(|error| anyhow!(error))?;
    let told = status.totals.gpu_seconds;
    ensure!(expected.contains(&told), "{told} GPU seconds, not {expected:?}: {status:#?}");
    if status.outcome != "Complete" {
        let wasted = status.totals.wasted_gpu_seconds;
        ensure!(wasted == told, "{wasted} of {told} are wasted: {status:#?}");
    }
    Ok(told)
}

#[tokio::test]
async fn gpu_seconds_of_random_jobs_are_those_of_an_independent_count() -> Result<()> {
    let (count, lanes) = (scaled(12, 200), scaled(6, 10));
    let counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let cluster = &counted.world.cluster;
    cluster.add_nodes(scaled(4, 12)).await?;
    let recorder = AccountingRecorder::start(cluster.client().await?).await?;
    let tenant = counted.world.tenant("random").await?;
    let mut random = Random::new(SEED);
    let drawn: Vec<_> = (0..count).map(|number| Drawn::new(number, &mut random)).collect();
    let lived = stream::iter(&drawn).map(async |job| {
        let uid = job.live(&tenant).await.with_context(|| format!("{job:?}"))?;
        anyhow::Ok((job, uid))
    });
    let lived: Vec<_> = lived.buffer_unordered(lanes).try_collect().await?;
    let history = recorder.history(&[&tenant.namespace], &[]).await?;
    let terms = Terms::default();
    let broken = check(&history, &terms);
    let broken: Vec<_> = broken.iter().map(ToString::to_string).collect();
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    let mut wrong = Vec::new();
    let mut sum = 0;
    for (job, uid) in lived {
        match judge(&uid, &history, &terms) {
            Ok(seconds) => sum += seconds,
            Err(error) => wrong.push(format!("{job:?}: {error:#}")),
        }
    }
    ensure!(wrong.is_empty(), "{} of {count} jobs:\n{}", wrong.len(), wrong.join("\n"));
    let pods: BTreeSet<_> = history.pods.iter().map(|pod| &pod.uid).collect();
    ensure!(pods.len() > count && sum > 0, "{} Pods, {sum} GPU seconds", pods.len());
    launcher::say(format_args!(
        "{count} jobs, {} Pods, {sum} GPU seconds, all as the history says",
        pods.len()
    ));
    Ok(())
}
