//! The box itself: what runs in it behaves, and nothing of it stays.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use e2e::cluster::{Cluster, Options};
use e2e::component::Component;
use e2e::fixtures::COMPLETES_AFTER;
use e2e::fixtures::shared::Shared;
use e2e::until::{until, until_ok};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

/// Long enough for two cores that build something else at the same time.
const PATIENCE: Duration = Duration::from_mins(1);

/// The grace period of Pods, in seconds.
const GRACE: i64 = 3;

/// The cluster that most tests share, each in a namespace of its own.
async fn shared() -> Result<Arc<Cluster>> {
    static SHARED: Shared<Cluster> = Shared::new();
    SHARED.get(async || Cluster::start(Options::default()).await).await
}

/// A JobSet of one Job with one Pod.
fn jobset(name: &str, annotations: &Value, grace: i64) -> String {
    let container =
        json!({"name": "a", "image": "a", "resources": {"limits": {"nvidia.com/gpu": 8}}});
    let pod = json!({
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": grace, "containers": [container]},
    });
    let job = json!({"spec": {"backoffLimit": 0, "template": pod}});
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": [{"name": "node", "template": job}]},
    })
    .to_string()
}

fn jobsets(client: Client, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("jobset.x-k8s.io", "v1alpha2", "JobSet");
    Api::namespaced_with(client, namespace, &ApiResource::from_gvk(&kind))
}

async fn ends(api: &Api<DynamicObject>, name: &str, state: &str) -> Result<()> {
    until_ok(format!("{name} is {state}"), PATIENCE, || async {
        let jobset = api.get(name).await?;
        let now = jobset.data.pointer("/status/terminalState").and_then(Value::as_str);
        if now == Some(state) { Ok(()) } else { bail!("it is {now:?}") }
    })
    .await
}

/// Waits for the only Pod of a namespace to run.
async fn running(pods: &Api<Pod>) -> Result<Pod> {
    until("a Pod runs", PATIENCE, || async {
        let pod = pods.list(&ListParams::default()).await.ok()?.items.pop()?;
        (pod.status.as_ref()?.phase.as_deref() == Some("Running")).then_some(pod)
    })
    .await
}

#[tokio::test]
async fn a_jobset_runs_to_completion_and_one_that_fails_fails() -> Result<()> {
    let cluster = shared().await?;
    let namespace = cluster.namespace("outcome").await?;
    let api = jobsets(cluster.client().await?, &namespace);
    let delay = json!({COMPLETES_AFTER: "100ms"});
    cluster.apply_yaml(&namespace, &jobset("good", &delay, GRACE)).await?;
    let fails = json!({"e2e.trainjob.dev/outcome": "fail"});
    cluster.apply_yaml(&namespace, &jobset("bad", &fails, GRACE)).await?;
    ends(&api, "good", "Completed").await?;
    ends(&api, "bad", "Failed").await?;

    let pods: Api<Pod> = Api::namespaced(cluster.client().await?, &namespace);
    let codes = pods.list(&ListParams::default()).await?.items.into_iter().map(|pod| {
        let name = pod.name_any();
        let statuses = pod.status.and_then(|status| status.container_statuses);
        let container = statuses.into_iter().flatten().next();
        let ended = container.and_then(|container| container.state?.terminated);
        (name.starts_with("good"), ended.map(|ended| ended.exit_code))
    });
    let mut codes: Vec<_> = codes.collect();
    codes.sort_unstable();
    assert_eq!(codes, [(false, Some(1)), (true, Some(0))]);
    Ok(())
}

#[tokio::test]
async fn a_pod_that_heeds_sigterm_goes_at_once_and_one_that_does_not_takes_its_grace_period()
-> Result<()> {
    let cluster = shared().await?;
    for (annotations, grace, expected) in [
        // Long before its grace period ends, however little there is to run on.
        (json!({}), 60, Duration::ZERO..Duration::from_secs(30)),
        (
            json!({"e2e.trainjob.dev/sigterm": "ignore"}),
            GRACE,
            // 3 s, which the API server cuts off to a full second.
            Duration::from_millis(1_900)..PATIENCE,
        ),
    ] {
        let namespace = cluster.namespace("deletion").await?;
        let client = cluster.client().await?;
        cluster.apply_yaml(&namespace, &jobset("job", &annotations, grace)).await?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        running(&pods).await?;

        let asked = Instant::now();
        jobsets(client, &namespace).delete("job", &DeleteParams::foreground()).await?;
        until("the Pod is gone", PATIENCE, || async {
            pods.list(&ListParams::default()).await.ok()?.items.is_empty().then_some(())
        })
        .await?;
        let took = asked.elapsed();
        assert!(expected.contains(&took), "{annotations}: {took:?}, expected {expected:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_webhook_of_jobset_refuses_nonsense() -> Result<()> {
    let cluster = shared().await?;
    let namespace = cluster.namespace("invalid").await?;
    let mut object: Value = serde_json::from_str(&jobset("nonsense", &json!({}), GRACE))?;
    object["spec"]["successPolicy"] =
        json!({"operator": "All", "targetReplicatedJobs": ["nowhere"]});
    let refusal = cluster.apply_yaml(&namespace, &object.to_string()).await.unwrap_err();
    let refusal = format!("{refusal:#}");
    assert!(refusal.contains("vjobset.kb.io"), "{refusal}");
    Ok(())
}

#[tokio::test]
async fn service_account_has_only_its_own_permissions() -> Result<()> {
    let cluster = shared().await?;
    let namespace = cluster.namespace("rbac").await?;
    let client = cluster.service_account_client(&namespace, "default").await?;
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let refusal = pods.list(&ListParams::default()).await.unwrap_err().to_string();
    let user = format!("system:serviceaccount:{namespace}:default");
    assert!(refusal.contains(&user) && refusal.contains("cannot list"), "{refusal}");
    Ok(())
}

#[tokio::test]
async fn boxes_side_by_side_know_nothing_of_each_other() -> Result<()> {
    let (one, other) =
        tokio::try_join!(Cluster::start(Options::bare()), Cluster::start(Options::bare()))?;
    let namespace = one.namespace("mine").await?;
    assert_ne!(one.address(), other.address());
    assert_ne!(one.folder(), other.folder());
    let found = async |cluster: &Cluster| -> Result<bool> {
        let api: Api<Namespace> = Api::all(cluster.client().await?);
        Ok(api.get_opt(&namespace).await?.is_some())
    };
    assert!(found(&one).await?);
    assert!(!found(&other).await?);
    Ok(())
}

#[tokio::test]
async fn an_api_server_comes_back_with_what_it_had_where_it_was() -> Result<()> {
    let cluster = Cluster::prepare(Options::bare()).await?;
    let api: Api<ConfigMap> = Api::namespaced(cluster.client().await?, "default");
    api.list(&ListParams::default()).await.unwrap_err();

    cluster.boot().await?;
    let object = serde_json::from_value(json!({"metadata": {"name": "kept"}}))?;
    api.create(&PostParams::default(), &object).await?;

    cluster.stop_apiserver();
    api.get("kept").await.unwrap_err();
    cluster.start_apiserver().await?;
    api.get("kept").await?;

    cluster.pause(Component::ApiServer)?;
    let answer = tokio::time::timeout(Duration::from_millis(500), api.get("kept")).await;
    assert!(answer.is_err(), "a paused API server answered");
    cluster.resume(Component::ApiServer)?;
    api.get("kept").await?;
    Ok(())
}

#[tokio::test]
async fn a_failed_start_shows_the_log_of_what_failed() -> Result<()> {
    let apiserver_flags = vec!["--no-such-flag".to_owned()];
    let options = Options { apiserver_flags, ..Options::bare() };
    let error = Cluster::start(options).await.unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("kube-apiserver is not ready"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
    Ok(())
}

#[tokio::test]
async fn nothing_is_left_of_a_dropped_box() -> Result<()> {
    let cluster = Cluster::start(Options::bare()).await?;
    let folder = cluster.folder().to_owned();
    let processes = processes_in(&folder)?;
    assert_eq!(processes.len(), 2, "etcd and the API server");
    drop(cluster);
    assert!(!folder.exists());
    assert!(processes_in(&folder)?.is_empty());
    Ok(())
}

#[tokio::test]
async fn nothing_is_left_of_a_box_whose_owner_was_killed() -> Result<()> {
    let mut owner = Owner::start(&["--nodes", "1"])?;
    let folder = owner.folder()?;
    assert_eq!(processes_in(&folder)?.len(), 6);
    owner.0.kill()?;
    owner.0.wait()?;
    gone(&folder).await
}

#[tokio::test]
async fn an_interrupted_box_ends_well() -> Result<()> {
    let mut owner = Owner::start(&["--nodes", "1"])?;
    let folder = owner.folder()?;
    let id = rustix::process::Pid::from_child(&owner.0);
    rustix::process::kill_process(id, rustix::process::Signal::INT)?;
    let status = owner.0.wait()?;
    assert!(status.success(), "{status}");
    assert!(!folder.exists());
    assert!(processes_in(&folder)?.is_empty());
    Ok(())
}

async fn gone(folder: &Path) -> Result<()> {
    until_ok("the box is gone", PATIENCE, || async {
        let left = processes_in(folder)?;
        if left.is_empty() && !folder.exists() {
            return Ok(());
        }
        bail!("there are still {left:?} and {}", folder.display())
    })
    .await
}

/// The `box` program as somebody would run it. What it prints stays readable as long as it runs: a
/// closed pipe would end it.
struct Owner(Child, BufReader<ChildStdout>);

impl Owner {
    fn start(arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_box"));
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let output = child.stdout.take().context("it is piped")?;
        Ok(Self(child, BufReader::new(output)))
    }

    /// Its folder, as it prints it when everything is ready.
    fn folder(&mut self) -> Result<PathBuf> {
        let mut line = String::new();
        while self.1.read_line(&mut line)? > 0 {
            if let Some(folder) = line.trim_end().strip_prefix("Logs are in ") {
                return Ok(folder.trim_end_matches('.').into());
            }
            line.clear();
        }
        bail!("it ended before it was ready")
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The ids of all processes that work in `folder`.
fn processes_in(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        // Everything else in there, and processes that have ended, have no such link.
        if fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(found)
}
