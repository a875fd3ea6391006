//! Finished objects, and policies that delete, audit, trip, fail, loop and lack rights.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::refusals::REFUSED;
use super::site::{Site, with};
use crate::acceptance::retention::policy;
use crate::testenv::fixtures::{COMPLETES, COMPLETES_AFTER, train_job};
use crate::testenv::release::PATIENCE;
use crate::testenv::until::until_ok;

const JOB: (&str, &str) = ("batch", "Job");
/// The policy that deletes most.
const SWEEPS: &str = "jobs";
/// How many Jobs it deletes, of which somebody keeps one, and one that it may not delete.
const COMPLETE: usize = 8;
const FAILED: usize = 4;
const DUE: usize = COMPLETE + FAILED + 2;
/// How many Jobs end after it has begun to delete, so that their Pods go before them.
const LATE: usize = 3;
/// How many Jobs make a policy trip whose breaker allows one.
const TOO_MANY: usize = 3;
/// How often a Job is made that is deleted each time.
const ROUNDS: usize = 4;
/// A finalizer of somebody else.
const KEPT: &str = "e2e.trainjob.dev/kept";

/// The namespaces.
pub(super) struct Retention<'a> {
    site: Site<'a>,
    namespace: String,
    /// Where policies only look on, where one trips, and where a Job is made again and again.
    audits: String,
    trips: String,
    loops: String,
}

impl<'a> Retention<'a> {
    pub(super) async fn new(site: Site<'a>) -> Result<Self> {
        let namespace = |prefix| site.release.cluster.namespace(prefix);
        let [swept, audits, trips, loops] = ["swept", "audits", "trips", "loops"].map(namespace);
        Ok(Self {
            site,
            namespace: swept.await?,
            audits: audits.await?,
            trips: trips.await?,
            loops: loops.await?,
        })
    }

    /// All of it, until nothing more is deleted.
    pub(super) async fn play(&self, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
        self.prepare().await?;
        tokio::try_join!(self.sweeps(), self.trips(), self.loops())?;
        tell(
            "policies delete Jobs and Pods, audit, trip and loop; a hold, an owner, a finalizer and a refusal keep objects",
        );
        Ok(())
    }

    /// Objects of every kind, and the policies that delete nothing.
    async fn prepare(&self) -> Result<()> {
        let mut jobs: Vec<_> = (0..COMPLETE).map(|it| job(&format!("complete-{it}"))).collect();
        for number in 0..FAILED {
            let fails = json!({"e2e.trainjob.dev/outcome": "fail"});
            let pod = "/spec/template/metadata/annotations";
            jobs.push(with(job(&format!("failed-{number}")), pod, &fails)?);
        }
        let hold = json!({"lifecycle.trainjob.dev/hold-until": "2100-01-01T00:00:00Z"});
        for (name, more) in [
            ("held", json!({"annotations": hold})),
            ("refused", json!({"labels": {REFUSED: "true"}})),
            ("kept", json!({"finalizers": [KEPT]})),
        ] {
            jobs.push(with(job(name), "/metadata", &more)?);
        }
        jobs.push(half_done());
        self.site.create(&self.namespace, &jobs).await?;
        self.site.apply(&self.namespace, &[sweeping("Audit")]).await?;
        let audited = train_job("audited", COMPLETES, &json!({}));
        self.site.create(&self.audits, &[audited]).await?;
        let records = ("lifecycle.trainjob.dev", "TrainJobRecord");
        let train_jobs = ("trainer.kubeflow.org", "TrainJob");
        let policies = [
            policy("RetentionPolicy", "trainjobs", train_jobs, "Audit", &json!({})),
            // The engine has no rights for these.
            policy("RetentionPolicy", "records", records, "Audit", &json!({})),
        ];
        self.site.apply(&self.audits, &policies).await
    }

    async fn sweeps(&self) -> Result<()> {
        let due = format!("max(trainjob_retention_would_delete{{policy=\"{SWEEPS}\"}}) == {DUE}");
        self.site.finds(&due).await?;
        self.site.apply(&self.namespace, &[sweeping("Enforce")]).await?;
        let late: Vec<_> = (0..LATE).map(|it| job(&format!("late-{it}"))).collect();
        self.site.create(&self.namespace, &late).await?;
        let get = ["get", "jobs", "-o", "name"];
        until_ok("what is due is deleted", PATIENCE, || async {
            let mut left = self.site.kubectl(&self.namespace, &get).await?;
            for name in ["held", "refused", "kept", "half-done-0", "half-running-0"] {
                let line = format!("job.batch/{name}\n");
                ensure!(left.contains(&line), "no {name}: {left}");
                left = left.replace(&line, "");
            }
            ensure!(left.is_empty(), "left: {left}");
            Ok(())
        })
        .await?;
        for state in ["terminating", "owned", "held"] {
            let state = format!("max(trainjob_retention_objects{{state=\"{state}\"}}) > 0");
            self.site.finds(&state).await?;
        }
        Ok(())
    }

    async fn trips(&self) -> Result<()> {
        let jobs: Vec<_> = (0..TOO_MANY).map(|it| job(&format!("many-{it}"))).collect();
        self.site.create(&self.trips, &jobs).await?;
        let wait = ["wait", "jobs", "--all", "--for=condition=Complete", "--timeout=120s"];
        self.site.kubectl(&self.trips, &wait).await?;
        let strict = |mode| {
            let strict = policy("RetentionPolicy", "strict", JOB, mode, &json!({}));
            with(strict, "/spec", &json!({"breaker": {"maxCount": 1}}))
        };
        self.site.apply(&self.trips, &[strict("Audit")?]).await?;
        let due = "max(trainjob_retention_would_delete{policy=\"strict\"})";
        self.site.finds(&format!("{due} == {TOO_MANY}")).await?;
        self.site.apply(&self.trips, &[strict("Enforce")?]).await?;
        self.site.finds("max(trainjob_retention_tripped) > 0").await
    }

    async fn loops(&self) -> Result<()> {
        let quick = policy("RetentionPolicy", "quick", JOB, "Enforce", &json!({}));
        self.site.apply(&self.loops, &[quick]).await?;
        let get = ["get", "jobs", "--ignore-not-found", "-o", "name"];
        for _ in 0..ROUNDS {
            self.site.create(&self.loops, &[job("again")]).await?;
            until_ok("it is deleted", PATIENCE, || async {
                let left = self.site.kubectl(&self.loops, &get).await?;
                ensure!(left.is_empty(), "it is still there");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

/// The policy that deletes most.
fn sweeping(mode: &str) -> Value {
    let rule = json!({
        "action": {"ttlSecondsAfterFinished": 5}, "pods": {"ttlSecondsAfterFinished": 2},
    });
    policy("RetentionPolicy", SWEEPS, JOB, mode, &rule)
}

/// A Job whose Pod completes after a second.
fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": pod(&json!({COMPLETES_AFTER: "1s"}))},
    })
}

fn pod(annotations: &Value) -> Value {
    json!({
        "metadata": {"annotations": annotations},
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "node", "image": "example.com/train:1"}],
        },
    })
}

/// A JobSet of which one Job has finished and another runs on.
fn half_done() -> Value {
    let replicated = |name: &str, annotations: Value| json!({"name": name, "template": {"spec": {"template": pod(&annotations)}}});
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "half"},
        "spec": {"replicatedJobs": [
            replicated("done", json!({COMPLETES_AFTER: "1s"})),
            replicated("running", json!({})),
        ]},
    })
}
