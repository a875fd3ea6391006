//! `trainjob-accounting drain`: releases all Pods that wait to be counted (`docs/accounting.md`, AH8).
//!
//! It is run before the program is removed. Pods that have ended are left to a program that acts, for half a minute. Nothing
//! is written into records: a program that acts counts what it sees go, a later one what is missing.

use std::{
    collections::BTreeSet, io::Write as _, ops::RangeInclusive, process::ExitCode, time::Duration,
};

use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod as StoredPod};
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{DynamicObject, ListParams, Request},
};
use thiserror::Error;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use trainjob_accounting_core::{
    end::{Ended, ended},
    holding::drains,
    pod::Pod,
};
use trainjob_api::{
    JobSet,
    lifecycle::v1alpha1::{ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL},
};
use trainjob_core::{mark::LEASE_BELIEVED, pass::Class};
use trainjob_engine::{
    answer::timed,
    clock::{Clock, monotonic},
    error::RequestError,
    heartbeat::Heartbeat,
    list, stripped,
};
use trainjob_process::{
    OwnFlag,
    client::Clients,
    config::{ConfigError, Flags, Settings},
};

use crate::{
    config::Config,
    fair::{self, Cut},
    key::PodKey,
    pod_view::read,
    requests::{Annotation, release},
    unlabelled::unlabelled,
};

/// The name of the command.
pub const COMMAND: &str = "drain";
/// The flags that only it takes.
pub const FLAGS: &[OwnFlag] = &[
    OwnFlag { name: TIMEOUT.0, value: Some("DURATION"), help: "How long it tries [default: 5m]" },
    OwnFlag {
        name: ABANDON,
        value: None,
        help: "Whether Pods of unfinished JobSets are released, too, which may make marked Pods again",
    },
];

const TIMEOUT: (&str, &str) = ("timeout", "--timeout");
const ABANDON: &str = "abandon";
const DEFAULT: Duration = Duration::from_mins(5);
const BOUNDS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);
/// The exit code where unfinished JobSets have marked Pods.
const UNFINISHED: u8 = 3;
/// How long it waits between two passes.
const BETWEEN: Duration = Duration::from_secs(1);
/// How many passes in a row have to find nothing.
const EMPTY_PASSES: u32 = 2;
/// The types of the conditions by which a JobSet has finished.
const FINISHED: [&str; 2] = ["Completed", "Failed"];

/// What `drain` uses.
#[derive(Debug, Clone, PartialEq)]
pub struct DrainConfig {
    program: Config,
    timeout: Duration,
    abandon: bool,
}

impl Settings for DrainConfig {
    fn load(flags: &Flags) -> Result<Self, ConfigError> {
        let timeout = flags.duration(TIMEOUT, DEFAULT, &BOUNDS)?;
        let abandon = flags.own.contains_key(ABANDON);
        Ok(Self { program: Config::load(flags)?, timeout, abandon })
    }

    fn warnings(&self) -> &[String] {
        self.program.warnings()
    }

    fn clock_jump_pause(&self) -> Duration {
        self.program.clock_jump_pause()
    }
}

/// Why not all Pods are released.
#[derive(Debug, Error)]
pub enum DrainError {
    /// The time is over.
    #[error("{left} Pods are not released after {timeout:?}")]
    TimedOut {
        /// How many Pods have the finalizer.
        left: usize,
        /// How long it was tried.
        timeout: Duration,
    },
    /// It was asked to stop.
    #[error("stopped before all Pods were released")]
    Stopped,
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The list of JobSets cannot be written.
    #[error("cannot write the list of JobSets: {0}")]
    Output(#[from] std::io::Error),
}

/// Releases all marked Pods.
///
/// # Errors
///
/// See [`DrainError`].
pub async fn run(
    config: DrainConfig,
    clients: Clients,
    mut stop: watch::Receiver<bool>,
) -> Result<ExitCode, DrainError> {
    if let Some(refusal) = refusal(&config, &clients).await? {
        return Ok(refusal);
    }
    let drained = async {
        drain(&config, &clients).await?;
        // One may have been made meanwhile: the operator goes on.
        Ok(refusal(&config, &clients).await?.unwrap_or(ExitCode::SUCCESS))
    };
    tokio::select! {
        drained = drained => drained,
        _ = stop.wait_for(|stop| *stop) => Err(DrainError::Stopped),
    }
}

/// The exit status if there are unfinished JobSets, which are listed on stdout, unless they are to be abandoned.
async fn refusal(config: &DrainConfig, clients: &Clients) -> Result<Option<ExitCode>, DrainError> {
    if config.abandon {
        return Ok(None);
    }
    let unfinished = unfinished(&clients.work).await?;
    if unfinished.is_empty() {
        return Ok(None);
    }
    tracing::error!(
        job_sets = unfinished.len(),
        "unfinished JobSets would make Pods again that wait to be counted"
    );
    let mut output = std::io::stdout();
    for name in unfinished {
        writeln!(output, "{name}")?;
    }
    Ok(Some(ExitCode::from(UNFINISHED)))
}

/// The JobSets that have not finished and whose Pods get our finalizer.
async fn unfinished(client: &Client) -> Result<BTreeSet<String>, RequestError> {
    let url = JobSet::url_path(&(), None);
    let (mut found, mut unreadable) = (BTreeSet::new(), None);
    let take = |text: &str| match stripped::read_view::<DynamicObject>(text) {
        Ok(job_set) if is_marked(&job_set) && !is_over(&job_set) => {
            let namespace = job_set.namespace().unwrap_or_default();
            found.insert(format!("{namespace}/{}", job_set.name_any()));
        }
        Ok(_) => {}
        Err(error) => unreadable = Some(error),
    };
    let request = |params: &ListParams| Request::new(&*url).list(params);
    match list::each(client, ListParams::default(), request, take).await {
        Ok(_) => {}
        // Without the kind there are none.
        Err(RequestError::Refused(status)) if status.code == 404 => return Ok(found),
        Err(error) => return Err(error),
    }
    match unreadable {
        None => Ok(found),
        Some(error) => Err(kube::Error::SerdeError(error).into()),
    }
}

fn is_marked(job_set: &DynamicObject) -> bool {
    let jobs = job_set.data.pointer("/spec/replicatedJobs").and_then(|it| it.as_array());
    let finalizers = jobs
        .into_iter()
        .flatten()
        .filter_map(|job| job.pointer("/template/spec/template/metadata/finalizers")?.as_array());
    finalizers.flatten().any(|finalizer| finalizer == ACCOUNTING_FINALIZER)
}

fn is_over(job_set: &DynamicObject) -> bool {
    let conditions = job_set.data.pointer("/status/conditions").and_then(|it| it.as_array());
    let field = |of: &serde_json::Value, name: &str, is: &str| {
        of.get(name).and_then(serde_json::Value::as_str) == Some(is)
    };
    let ends = |condition: &serde_json::Value| {
        field(condition, "status", "True")
            && FINISHED.iter().any(|type_| field(condition, "type", type_))
    };
    job_set.metadata.deletion_timestamp.is_some() || conditions.into_iter().flatten().any(ends)
}

async fn drain(config: &DrainConfig, clients: &Clients) -> Result<(), DrainError> {
    let clock = Clock::new(clients.server_time.clone());
    let (namespace, name) = config.program.lease.clone();
    let namespace = namespace.unwrap_or_else(|| clients.namespace.clone());
    let leases: Api<Lease> = Api::namespaced(clients.work.clone(), &namespace);
    let heartbeat = Heartbeat::default();
    let mut empty = 0;
    loop {
        if let Ok(lease) = timed(leases.get_opt(&name)).await {
            heartbeat.saw(lease.as_ref(), monotonic());
        }
        let since = monotonic().saturating_sub(heartbeat.begun());
        let (held, unreadable) = match held(&clients.work).await {
            Ok(found) => found,
            Err(error) if since < config.timeout && may_pass(&error) => {
                tracing::warn!(%error, "cannot list the Pods that are left");
                sleep(BETWEEN).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let left = held.len().saturating_add(unreadable);
        empty = if left == 0 { empty + 1 } else { 0 };
        if empty == EMPTY_PASSES {
            return Ok(());
        }
        if since >= config.timeout && left > 0 {
            return Err(DrainError::TimedOut { left, timeout: config.timeout });
        }
        let lives = lives(&heartbeat, monotonic());
        let now = clock.likely().into();
        let due = held.into_iter().filter(|held| {
            let has_ended = held.known.as_ref().is_some_and(|pod| ended(pod, now) == Ended::Yes);
            drains(lives, has_ended, since)
        });
        let release = |held: Held| held.release(&clients.work);
        let round = fair::round(due, |held| &held.pod.namespace, release, Cut::OnlySlowLeft);
        let left = config.timeout.saturating_sub(since);
        if timeout(left, round).await.is_err() {
            tracing::debug!("the time was over before all were tried");
        }
        sleep(BETWEEN).await;
    }
}

/// Whether a program acts. A Lease that is held is believed until it could have been seen to change.
fn lives(heartbeat: &Heartbeat, now: Duration) -> bool {
    let since = heartbeat.changed_at().unwrap_or_else(|| heartbeat.begun());
    heartbeat.is_held() && now.saturating_sub(since) < LEASE_BELIEVED
}

/// A Pod with our finalizer.
struct Held {
    pod: PodKey,
    /// What is known of it; `None`: its labels name no TrainJob.
    known: Option<Pod>,
}

impl Held {
    async fn release(self, client: &Client) {
        let PodKey { namespace, name, uid } = self.pod;
        let pods: Api<StoredPod> = Api::namespaced(client.clone(), &namespace);
        match release(&pods, &name, &uid, Annotation::Unset).await {
            Ok(_) => tracing::info!(namespace, pod = name, uid, "released"),
            Err(error) if error.says_absent() => {}
            // The next pass tries again.
            Err(error) => {
                tracing::warn!(namespace, pod = name, uid, %error, "cannot release a Pod");
            }
        }
    }
}

/// Whether a failure may pass by itself.
fn may_pass(error: &RequestError) -> bool {
    matches!(error.class(), Class::Transient | Class::Throttled(_))
}

/// All Pods with our finalizer that have our labels or are of a JobSet, and how many cannot be read and may have it.
async fn held(client: &Client) -> Result<(Vec<Held>, usize), RequestError> {
    let url = StoredPod::url_path(&(), None);
    let labels = format!("{TRAIN_JOB_UID_LABEL},{TRAIN_JOB_NAME_LABEL}");
    let (mut held, mut unreadable) = (Vec::new(), 0);
    let take = |text: &str| {
        let stored = match read(text) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::warn!(%error, "a Pod cannot be read, which may have the finalizer");
                unreadable += 1;
                return;
            }
        };
        if stored.finalizers().iter().any(|it| it == ACCOUNTING_FINALIZER) {
            held.push(Held { pod: PodKey::of(&stored.metadata), known: Pod::read(&stored) });
        }
    };
    let request = |params: &ListParams| Request::new(&*url).list(params);
    list::each(client, ListParams::default().labels(&labels), request, take).await?;
    let unlabelled = unlabelled(client).await?.into_iter();
    held.extend(unlabelled.map(|pod| Held { pod, known: None }));
    Ok((held, unreadable))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job_set(finalizers: &Value, conditions: &Value) -> DynamicObject {
        let metadata = json!({"finalizers": finalizers});
        let template = json!({"spec": {"template": {"metadata": metadata}}});
        serde_json::from_value(json!({
            "metadata": {"name": "llm", "namespace": "a"},
            "spec": {"replicatedJobs": [{"name": "node", "template": template}]},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn ah8_unfinished_job_sets_with_our_finalizer_would_make_marked_pods_again() {
        let ours = json!([ACCOUNTING_FINALIZER]);
        let condition = |type_: &str, status: &str| json!([{"type": type_, "status": status}]);
        for (finalizers, conditions, expected) in [
            (&ours, json!([]), true),
            (&ours, condition("Completed", "True"), false),
            (&ours, condition("Failed", "True"), false),
            (&ours, condition("Failed", "False"), true),
            (&ours, condition("Suspended", "True"), true),
            (&json!(["example.com/other"]), json!([]), false),
            (&Value::Null, json!([]), false),
        ] {
            let job_set = job_set(finalizers, &conditions);
            assert_eq!(is_marked(&job_set) && !is_over(&job_set), expected, "{conditions}");
        }
    }

    #[test]
    fn ah8_a_lease_that_is_held_is_believed_for_a_minute() {
        let at = Duration::from_secs;
        let lease = |version: &str, holder: &str| -> Lease {
            let spec = json!({"holderIdentity": holder});
            serde_json::from_value(json!({"metadata": {"resourceVersion": version}, "spec": spec}))
                .unwrap()
        };
        let heartbeat = Heartbeat::since(at(0));
        assert!(!lives(&heartbeat, at(1)), "there is none");
        heartbeat.saw(Some(&lease("1", "a")), at(1));
        assert!(lives(&heartbeat, at(59)) && !lives(&heartbeat, at(60)));
        heartbeat.saw(Some(&lease("2", "a")), at(70));
        assert!(lives(&heartbeat, at(129)) && !lives(&heartbeat, at(130)));
        heartbeat.saw(Some(&lease("3", "")), at(140));
        assert!(!lives(&heartbeat, at(141)), "it was given back");
    }
}
