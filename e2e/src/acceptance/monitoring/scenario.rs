//! What happens while Prometheus looks on: jobs of every kind, a leader that is killed, missing RBAC permissions.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::alerts::{self, OPERATOR};
use super::faults::{self, RbacBackup, VETOED};
use super::prometheus::Prometheus;
use super::replicas::Replicas;
use crate::testenv::fixtures::{
    COMPLETES, COMPLETES_AFTER, FAILS, RUNS, STUBBORN, runtime, train_job,
};
use crate::testenv::release::programs::Program;
use crate::testenv::release::{PATIENCE, Release};
use crate::testenv::tools::Tools;
use crate::testenv::until::until_ok;
use crate::testenv::yaml;

const OPERATORS: [&str; 2] = ["operator-1", "operator-2"];
const WEBHOOKS: [&str; 2] = ["webhook-1", "webhook-2"];
const REPLACEMENT: &str = "operator-3";
/// The label by which the jobs of one act are found again.
const ACT: &str = "e2e.trainjob.dev/act";
/// The job whose JobSet is kept by somebody's finalizer.
const HELD: &str = "held";
/// How long the Pods of a stubborn job take to end, in seconds.
const GRACE: i64 = 25;
/// How many jobs are to be deleted, and how many to be stopped, while the operator may not.
const DUE: usize = 15;
const STOPPED: usize = 4;

/// The programs of a release, and somebody who has jobs.
pub(super) struct Scenario<'a> {
    release: &'a Release,
    prometheus: &'a Prometheus,
    replicas: Replicas<'a>,
    user: Tools,
    namespace: String,
}

impl<'a> Scenario<'a> {
    /// Starts the programs: two operators and two webhooks, all of which are scraped.
    pub(super) async fn start(release: &'a Release, prometheus: &'a Prometheus) -> Result<Self> {
        let mut replicas = Replicas::new(release, prometheus).await?;
        for name in OPERATORS {
            replicas.start(Program::Operator, name).await?;
        }
        for name in WEBHOOKS {
            replicas.start(Program::Webhook, name).await?;
        }
        replicas.ready().await?;
        replicas.scraped().await?;
        let (user, namespace) = release.user("team").await?;
        Ok(Self { release, prometheus, replicas, user, namespace })
    }

    /// The programs.
    pub(super) const fn replicas(&self) -> &Replicas<'a> {
        &self.replicas
    }

    /// All of it, until everything is well again; `tell` hears of each act.
    pub(super) async fn play(&mut self, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
        let ends = |more: Value| {
            let mut annotations = json!({COMPLETES_AFTER: "1s"});
            if let (Some(all), Some(more)) = (annotations.as_object_mut(), more.as_object()) {
                all.extend(more.clone());
            }
            annotations
        };
        let runtimes = [
            runtime(RUNS, &json!({}), 1, None),
            runtime(COMPLETES, &ends(json!({})), 1, None),
            runtime(FAILS, &ends(json!({"e2e.trainjob.dev/outcome": "fail"})), 1, None),
            runtime(STUBBORN, &json!({"e2e.trainjob.dev/sigterm": "ignore"}), GRACE, None),
        ];
        self.release.cluster.apply_yaml("default", &yaml::stream(&runtimes)).await?;
        faults::veto(self.release).await?;

        self.create("everything", &everything()).await?;
        faults::hold(self.release, &self.namespace, HELD).await?;
        self.is_refused().await?;
        faults::malformed(self.release).await?;
        self.alerted(&[
            "TrainJobUnreleased",
            "TrainJobDeadlineOverdue",
            "TrainJobCleanupFailing",
            "TrainJobWebhookFailing",
        ])
        .await?;
        tell(
            "jobs of every kind; alerts about one that is not released, one that is not stopped, one that is not deleted",
        );

        self.replicas.kill(WEBHOOKS[0])?;
        self.create("due", &due()).await?;
        tell("a webhook was killed, and the other one admits jobs");
        self.wait("due", "Complete").await?;
        self.create("stopped", &stopped()).await?;
        self.job_sets("stopped", STOPPED).await?;
        let rbac = RbacBackup::take(self.release).await?;
        let leader = self.replicas.leader().await?;
        self.replicas.kill(leader)?;
        self.replicas.start(Program::Operator, REPLACEMENT).await?;
        self.alerted(&["TrainJobOperatorNoLeader"]).await?;
        let next = self.replicas.leader().await?;
        ensure!(next != leader && next != REPLACEMENT, "{next} leads after {leader}");
        tell("the leader was killed, and the other one leads");
        let but_late = OPERATOR.by_faults.iter().filter(|name| **name != "TrainJobCleanupLate");
        self.alerted(&but_late.copied().collect::<Vec<_>>()).await?;
        tell(
            "RBAC permissions are missing: alerts about deletions, releases, errors, watches, late deadlines",
        );

        rbac.restore(self.release).await?;
        faults::let_go(self.release, &self.namespace, HELD).await?;
        faults::lift_veto(self.release).await?;
        self.replicas.ready().await?;
        self.replicas.scraped().await?;
        self.alerted(OPERATOR.by_faults).await?;
        self.recovers().await?;
        tell("RBAC permissions are back: deletions go on, late, and nothing is unreleased");
        Ok(())
    }

    /// Stops all programs, and waits until somebody is told.
    pub(super) async fn end(self) -> Result<()> {
        self.replicas.stop();
        alerts::alerted(self.prometheus, OPERATOR.by_absence).await
    }

    async fn create(&self, act: &str, jobs: &[Value]) -> Result<()> {
        let mut jobs = jobs.to_vec();
        for job in &mut jobs {
            let metadata = job.get_mut("metadata").and_then(Value::as_object_mut);
            let labels = metadata.context("no metadata")?.entry("labels").or_insert(json!({}));
            labels.as_object_mut().context("no labels")?.insert(ACT.to_owned(), json!(act));
        }
        let create = ["create", "--namespace", &self.namespace, "-f", "-"];
        self.user.kubectl(&create, Some(yaml::stream(&jobs))).await?;
        Ok(())
    }

    async fn is_refused(&self) -> Result<()> {
        let create = ["create", "--namespace", &self.namespace, "-f", "-"];
        let job = train_job("refused", "missing", &json!({}));
        match self.user.kubectl(&create, Some(job.to_string())).await {
            Ok(_) => bail!("a job without a runtime was admitted"),
            Err(_) => Ok(()),
        }
    }

    async fn wait(&self, act: &str, condition: &str) -> Result<()> {
        let (act, condition) = (format!("{ACT}={act}"), format!("--for=condition={condition}"));
        let wait = ["wait", "trainjobs", "--namespace", &self.namespace, "-l", &act, &condition];
        self.user.kubectl(&[&wait[..], &["--timeout=120s"]].concat(), None).await?;
        Ok(())
    }

    /// Waits until as many jobs whose names begin so have their JobSets.
    async fn job_sets(&self, prefix: &str, count: usize) -> Result<()> {
        let get = ["get", "jobsets", "--namespace", &self.namespace, "-o", "name"];
        until_ok(format!("{prefix} have JobSets"), PATIENCE, || async {
            let names = self.release.tools.kubectl(&get, None).await?;
            let there = names.lines().filter(|name| name.contains(&format!("/{prefix}"))).count();
            ensure!(there == count, "{there} of {count}");
            Ok(())
        })
        .await
    }

    async fn alerted(&self, expected: &[&str]) -> Result<()> {
        alerts::alerted(self.prometheus, expected).await
    }

    /// Waits until the metrics say that every deadline is kept and nothing is unreleased. Deletions that failed are
    /// tried again within two minutes, which is too long to look on.
    async fn recovers(&self) -> Result<()> {
        until_ok("everything is well again", PATIENCE, || async {
            for metric in
                ["trainjob_unreleased", "trainjob_release_blocked", "trainjob_overdue_deadlines"]
            {
                let left = self.prometheus.at(&format!("max({metric}) > 0"), None).await?;
                ensure!(left.is_empty(), "{metric}: {left:?}");
            }
            Ok(())
        })
        .await
    }
}

/// Jobs in every state, with every end, and with deadlines near and far.
fn everything() -> Vec<Value> {
    let mut jobs: Vec<Value> =
        (0..6).map(|index| numbered("complete", index, COMPLETES, &json!({TTL: 2}))).collect();
    jobs.extend((0..3).map(|index| numbered("fails", index, FAILS, &json!({TTL: 4}))));
    jobs.extend(
        (0..3).map(|index| numbered("over", index, RUNS, &json!({DEADLINE: 4 + index, TTL: 3}))),
    );
    for (index, deadline) in [300, 1_800, 43_200, 604_800].into_iter().enumerate() {
        jobs.push(numbered("far", index, RUNS, &json!({DEADLINE: deadline})));
    }
    let gpus = json!({"resourcesPerNode": {"requests": {"nvidia.com/gpu": 1_000}}});
    jobs.extend([
        train_job("kept", COMPLETES, &json!({TTL: 86_400})),
        train_job("failed", FAILS, &json!({})),
        train_job("suspended", RUNS, &json!({"suspend": true})),
        train_job("queued", RUNS, &json!({"trainer": gpus})),
        train_job("elsewhere", RUNS, &json!({"managedBy": "kueue.x-k8s.io/multikueue"})),
        train_job(HELD, RUNS, &json!({DEADLINE: 6})),
        train_job("stubborn", STUBBORN, &json!({DEADLINE: 4})),
        vetoed("undeletable", "deletion", COMPLETES, &json!({TTL: 1})),
        vetoed("unstoppable", "status", RUNS, &json!({DEADLINE: 5})),
    ]);
    jobs
}

/// Jobs that are due for deletion when the permission for it is gone.
fn due() -> Vec<Value> {
    (0..DUE).map(|index| numbered("due", index, COMPLETES, &json!({TTL: 10}))).collect()
}

/// Jobs whose deadline passes while nobody leads, and that may not be stopped then.
fn stopped() -> Vec<Value> {
    (0..STOPPED).map(|index| numbered("stopped", index, RUNS, &json!({DEADLINE: 6}))).collect()
}

const TTL: &str = "ttlSecondsAfterFinished";
const DEADLINE: &str = "activeDeadlineSeconds";

fn numbered(name: &str, index: usize, runtime: &str, spec: &Value) -> Value {
    train_job(&format!("{name}-{index}"), runtime, spec)
}

fn vetoed(name: &str, what: &str, runtime: &str, spec: &Value) -> Value {
    let mut job = train_job(name, runtime, spec);
    if let Some(metadata) = job.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        metadata.insert("labels".to_owned(), json!({VETOED: what}));
    }
    job
}
