//! The peer beside us: the TTL controller of Kubernetes, with the client limits it has by default and without.

use std::path::Path;

use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use trainjob_api::time::Timestamp;

use super::Size;
use super::calls::Micros;
use super::figures::{Times, float};
use super::jobs::{in_seconds, side_by_side, still_to_come};
use super::progress::Progress;
use super::report::{Bar, Bound, row};
use super::rig::{Rig, control_plane};
use crate::testenv::binaries::Program;
use crate::testenv::cluster::Options;
use crate::testenv::credentials::Identity;
use crate::testenv::ports::Port;
use crate::testenv::process::Process;
use crate::testenv::ready::answers;

const TTL: i64 = 3_600;

/// How many requests its client may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limits {
    /// As many as by default.
    Default,
    /// As many as it can.
    None,
}

impl Limits {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Default, Self::None];

    /// Its flags: a limit that nothing comes near is none.
    fn flags(self) -> Vec<String> {
        match self {
            Self::Default => Vec::new(),
            Self::None => {
                ["--kube-api-qps=1000000", "--kube-api-burst=1000000"].map(str::to_owned).into()
            }
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::None => " without limits",
        }
    }
}

/// What came of it.
pub(super) struct Peer {
    limits: Limits,
    jobs: usize,
    rate: f64,
    lateness: Times,
}

impl Peer {
    /// Its row in the table of the storm.
    pub(super) fn row(&self) -> Vec<String> {
        let Times { first, p50, p99, last } = self.lateness;
        let name =
            format!("TTL controller of Kubernetes{}, {} Jobs", self.limits.name(), self.jobs);
        let whole = |ms: f64| format!("{ms:.0}");
        row([&name, &whole(self.rate), &whole(first), &whole(p50), &whole(p99), &whole(last)])
    }

    /// How much faster the operator is, which deletes at this rate, than what clusters have today; `None` without limits, which
    /// nobody lifts.
    pub(super) fn bar(&self, rate: f64) -> Option<Bar> {
        let what = "operator / TTL controller of Kubernetes";
        (self.limits == Limits::Default)
            .then(|| Bar::measured(what, rate / self.rate, Bound::AtLeast(60.0)))
    }

    /// Its figures.
    pub(super) fn json(&self) -> Value {
        let limits = self.limits == Limits::Default;
        json!({"limits": limits, "jobs": self.jobs, "rate": self.rate, "lateness_ms": self.lateness})
    }
}

/// Lets finished Jobs fall due in the same second, once.
pub(super) async fn run(size: Size, limits: Limits, progress: &Progress) -> Result<Peer> {
    let count = size.peer_jobs;
    // Its own limits are generous here; and these Jobs never ran.
    let controllers = "--controllers=*,-ttl-after-finished-controller,-job-controller".to_owned();
    let controller_manager_flags = vec![controllers];
    let options = Options { controller_manager_flags, ..control_plane(size.fsync) };
    let rig = Rig::start(options, progress).await?;
    let namespace = rig.cluster.namespace("peer").await?;
    let port = Port::take()?;
    let _controller = start(&rig, &port, limits).await?;
    let due = finished_jobs(&rig, &namespace, count).await?;
    still_to_come(due)?;
    rig.progress.step("the TTL controller of Kubernetes deletes Jobs; there are", count);
    rig.until_count::<Job>(&namespace, 0).await?;
    let (calls, due) = (rig.noted().await?.peer, Micros::of(due));
    let deleted = calls.accepted("delete", "jobs");
    let lateness = Times::of(deleted.iter().map(|call| call.completed().since(due)));
    Ok(Peer { limits, jobs: count, rate: float(deleted.len()) / lateness.last * 1e3, lateness })
}

/// A controller manager that does nothing else.
async fn start(rig: &Rig, port: &Port, limits: Limits) -> Result<Process> {
    let credentials = rig.cluster.credentials();
    let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
    let mut arguments = vec![
        flag("kubeconfig", &credentials.kubeconfig(Identity::ControllerManager)),
        flag("tls-cert-file", &credentials.path("tls.crt")),
        flag("tls-private-key-file", &credentials.path("tls.key")),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", port.number()),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials".to_owned(),
        "--controllers=ttl-after-finished-controller".to_owned(),
    ];
    arguments.extend(limits.flags());
    let program = rig.cluster.program(Program::ControllerManager);
    let process = rig.cluster.spawn("ttl-controller", program, &arguments, &[])?;
    let server = format!("https://{}", port.address());
    process.ready_when(answers(&server, "/healthz", rig.cluster.authority())).await?;
    Ok(process)
}

/// Creates Jobs that have finished; returns when all of them are due.
async fn finished_jobs(rig: &Rig, namespace: &str, count: usize) -> Result<Timestamp> {
    rig.progress.step("creating finished Jobs", count);
    let api: Api<Job> = Api::namespaced(rig.admin.clone(), namespace);
    // A hundred a second is less than any machine seen so far can do.
    let due = in_seconds(float(count) / 100.0);
    let progress = rig.progress.clone();
    side_by_side((0..count).collect(), move |number| {
        let (api, progress) = (api.clone(), progress.clone());
        async move {
            let job = api.create(&PostParams::default(), &job(number)?).await?;
            let end = Patch::Merge(end(due.plus(-TTL)));
            let ended = api.patch_status(&job.name_any(), &PatchParams::default(), &end).await;
            ended.context("the Job cannot be finished")?;
            progress.one();
            Ok(())
        }
    })
    .await?;
    Ok(due)
}

fn job(number: usize) -> Result<Job> {
    Ok(serde_json::from_value(json!({
        "metadata": {"name": format!("job-{number:06}")},
        "spec": {"ttlSecondsAfterFinished": TTL, "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "node", "image": "example.com/train:1"}],
        }}},
    }))?)
}

/// The status of a Job that completed `at`.
fn end(at: Timestamp) -> Value {
    let at = Time::from(at);
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "CompletionsReached", "message": "",
            "lastProbeTime": at, "lastTransitionTime": at,
        })
    };
    json!({"status": {
        "startTime": at,
        "completionTime": at,
        "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    }})
}
