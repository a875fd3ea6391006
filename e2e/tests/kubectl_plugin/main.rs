//! `kubectl trainjob`, as somebody uses it who has the rights that its help names and no others.
//!
//! All tests share a box. That of `extend` makes deadlines mutable half-way, which matters to no other.

mod user;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use e2e::fixtures::finalizer::{hold, let_go};
use e2e::fixtures::shared::Shared;
use e2e::fixtures::status::{created_at, finished_at};
use e2e::fixtures::{COMPLETES, PATIENCE, POOL, PooledBox, RUNS, stubborn};
use e2e::until::until_ok;
use e2e::workspace;
use serde_json::{Value, json};
use trainjob_api::conditions::COMPLETE;
use trainjob_api::crd::{self, FieldUpdates};
use trainjob_api::time::Timestamp;

use self::user::User;

/// A runtime whose Pods do not react to SIGTERM for longer than the plugin takes to answer, on a busy machine.
const STUBBORN: &str = "stubborn-for-long";

async fn in_the_box(body: impl AsyncFnOnce(&User<'_>) -> Result<()>) -> Result<()> {
    static SHARED: Shared<PooledBox> = Shared::new();
    let world = SHARED
        .get(async || {
            let world = POOL.take().await?;
            world.start_operator().await?;
            Ok(world)
        })
        .await?;
    world.test("plugin", async |tenant| body(&User::new(tenant).await?).await).await
}

/// A job with these labels on a runtime that wants so many GPUs of one node.
fn gpu_job(name: &str, runtime: &str, labels: &Value, gpus: u32, more: &Value) -> Result<Value> {
    let resources = json!({"limits": {"nvidia.com/gpu": gpus.to_string()}});
    let mut spec = json!({
        "runtimeRef": {"name": runtime}, "trainer": {"resourcesPerNode": resources},
    });
    let (Some(spec_fields), Some(more)) = (spec.as_object_mut(), more.as_object()) else {
        bail!("no objects");
    };
    spec_fields.extend(more.clone());
    Ok(json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": name, "labels": labels}, "spec": spec,
    }))
}

/// The cells of a line of a table.
fn cells(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[tokio::test]
async fn status_shows_phase_time_left_gpus_and_queue() -> Result<()> {
    in_the_box(async |user| {
        let tenant = user.tenant;
        ensure!(user.prints(&["status"])?.starts_with("No TrainJobs in namespace plugin-"));
        let (none, queue) = (json!({}), json!({"kueue.x-k8s.io/queue-name": "gpus"}));
        let day = json!({"activeDeadlineSeconds": 90_000, "ttlSecondsAfterFinished": 3_600});
        user.create(gpu_job("runs", RUNS, &none, 3, &day)?).await?;
        user.create(gpu_job("queued", RUNS, &queue, 3, &json!({"suspend": true}))?).await?;
        let long = "sweep-of-learning-rate-and-batch-size-x7k2p";
        user.create(gpu_job(long, COMPLETES, &none, 1, &day)?).await?;
        tenant.completes(long).await?;
        let runs = until_ok("a job runs with its GPUs", PATIENCE, || async {
            let list = user.json(&["status", "runs"])?;
            let row = list["items"][0].clone();
            ensure!(row["phase"] == "Running" && row["gpus"] == 3, "{row}");
            Ok(row)
        })
        .await?;
        let created = created_at(&tenant.jobs.get("runs").await?);
        ensure!(runs["deadline"]["due"] == created.plus(90_000).to_string(), "{runs}");
        ensure!(runs["ttl"] == json!({"state": "AfterEnd", "seconds": 3_600}), "{runs}");

        let table = user.prints(&["status"])?;
        let lines: Vec<&str> = table.lines().collect();
        ensure!(lines.iter().all(|line| line.chars().count() <= 80), "{table}");
        let [header, queued, running, complete] = &*lines else { bail!("{table}") };
        ensure!(cells(header) == ["NAME", "PHASE", "DEADLINE", "TTL", "GPUS", "QUEUE"], "{table}");
        ensure!(cells(queued) == ["queued", "Queued", "-", "-", "0", "gpus"], "{table}");
        let running = cells(running);
        let [name, phase, deadline, rest @ ..] = &*running else { bail!("{table}") };
        ensure!((*name, *phase) == ("runs", "Running") && deadline.starts_with("1d"), "{table}");
        ensure!(rest == ["+1h", "3", "-"], "{table}");
        let complete = cells(complete);
        let [name, phase, deadline, ttl, gpus, _] = &*complete else { bail!("{table}") };
        let is_cut = name.starts_with("sweep-") && name.contains('…') && name.ends_with("x7k2p");
        ensure!(is_cut && *phase == "Complete", "{table}");
        ensure!((*deadline, *gpus) == ("-", "0"), "{table}");
        ensure!(ttl.starts_with("59m") || *ttl == "1h", "{table}");

        let selected = user.prints(&["status", "-l", "kueue.x-k8s.io/queue-name=gpus"])?;
        ensure!(selected.lines().count() == 2 && selected.contains("Queued"), "{selected}");
        let named = user.prints(&["status", "runs", "queued"])?;
        ensure!(named.lines().count() == 3, "{named}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn status_of_all_namespaces_needs_rights_and_shows_where() -> Result<()> {
    in_the_box(async |user| {
        user.tenant.create("somewhere", RUNS, json!({"suspend": true})).await?;
        let said = user.fails(&["status", "missing"])?;
        ensure!(said.starts_with("error: no TrainJob missing in namespace plugin-"), "{said}");

        // Without --namespace, which goes together with no -A.
        let all = |kubeconfig: &Path| {
            let mut command = Command::new(workspace::kubectl_plugin()?);
            anyhow::Ok(
                command
                    .env_clear()
                    .arg("--kubeconfig")
                    .arg(kubeconfig)
                    .args(["status", "-A"])
                    .output()?,
            )
        };
        let refused = all(&user.kubeconfig)?;
        let said = String::from_utf8(refused.stderr)?;
        ensure!(
            refused.status.code() == Some(1) && said.contains("cannot list resource \"trainjobs\""),
            "{said}"
        );
        let shown = all(&user.tenant.world.cluster.kubeconfig())?;
        let table = String::from_utf8(shown.stdout)?;
        let header = table.lines().next().context("nothing is printed")?;
        ensure!(cells(header).starts_with(&["NAMESPACE", "NAME", "PHASE"]), "{table}");
        let is_it = |line: &str| {
            cells(line).starts_with(&[&user.tenant.namespace, "somewhere", "Suspended"])
        };
        ensure!(table.lines().any(is_it), "{table}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn why_says_what_a_job_waits_for() -> Result<()> {
    in_the_box(async |user| {
        let tenant = user.tenant;
        let (none, queue) = (json!({}), json!({"kueue.x-k8s.io/queue-name": "gpus"}));
        let suspended = json!({"suspend": true, "activeDeadlineSeconds": 90_000});
        tenant.create("no-runtime", "missing", none.clone()).await?;
        tenant.create("by-hand", RUNS, suspended.clone()).await?;
        user.create(gpu_job("queued", RUNS, &queue, 1, &suspended)?).await?;
        user.create(gpu_job("too-large", RUNS, &none, 9, &none)?).await?;
        tenant.create("elsewhere", RUNS, json!({"managedBy": "kueue.x-k8s.io/multikueue"})).await?;
        tenant.create("runs", RUNS, none).await?;
        for (name, cause, texts) in [
            (
                "no-runtime",
                "Waiting",
                &["waits (RuntimeNotFound)", "missing", "kubectl get trainingruntimes"][..],
            ),
            (
                "by-hand",
                "Suspended",
                &["is suspended since", "kubectl patch trainjob by-hand", "at the earliest"],
            ),
            (
                "queued",
                "QueuedByKueue",
                &[
                    "waits in the queue gpus",
                    "made no Workload",
                    "kubectl describe localqueue gpus",
                ],
            ),
            (
                "too-large",
                "PodsPending",
                &[
                    "1 of 1 does not run",
                    "Insufficient nvidia.com/gpu",
                    "kubectl describe pod too-large-node-0-0",
                ],
            ),
            ("elsewhere", "ManagedElsewhere", &["kueue.x-k8s.io/multikueue", "never touches it"]),
            ("runs", "Running", &["TrainJob runs runs: 1 Pod with no GPU."]),
        ] {
            user.is_told(name, cause, texts).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn why_says_what_is_left_of_a_job_after_its_end() -> Result<()> {
    in_the_box(async |user| {
        let tenant = user.tenant;
        let empty = json!({});
        let stubborn = stubborn(STUBBORN, 25).to_string();
        tenant.world.cluster.apply_yaml("default", &stubborn).await?;
        let deadline = json!({"activeDeadlineSeconds": 20});
        user.create(gpu_job("stubborn", STUBBORN, &empty, 2, &deadline)?).await?;
        user.create(gpu_job(
            "complete",
            COMPLETES,
            &empty,
            1,
            &json!({"ttlSecondsAfterFinished": 3_600}),
        )?)
        .await?;
        tenant.create("kept", COMPLETES, empty).await?;

        // For as long as its Pod does not react to SIGTERM.
        let pod = tenant.runs("stubborn").await?;
        let node = pod.spec.and_then(|spec| spec.node_name).context("it has no node")?;
        let left = format!("on node {node} since ");
        let texts =
            ["was stopped by its deadline", "1 Pod of it still holds 2 GPUs", &left, "Wait until"];
        user.is_told("stubborn", "NotReleased", &texts).await?;
        let row = &user.json(&["status", "stubborn"])?["items"][0];
        ensure!(row["phase"] == "Releasing" && row["gpus"] == 2, "{row}");
        tenant.released("stubborn").await?;
        user.is_told("stubborn", "KeptForEver", &["holds nothing any more"]).await?;

        let complete = tenant.becomes("complete", COMPLETE).await?;
        let due = format!("Its TTL deletes it at {}, in ", finished_at(&complete)?.plus(3_600));
        user.is_told("complete", "TtlRunning", &[&due, "hold-until=TIME"]).await?;
        tenant.becomes("kept", COMPLETE).await?;
        user.is_told(
            "kept",
            "KeptForEver",
            &["no ttlSecondsAfterFinished", "kubectl delete trainjob kept"],
        )
        .await?;

        hold(&tenant.jobs, "kept").await?;
        tenant.delete("kept").await?;
        user.is_told("kept", "Deleting", &["Its finalizer e2e.trainjob.dev/hold keeps it"]).await?;
        let_go(&tenant.jobs, "kept").await?;
        tenant.gone("kept").await
    })
    .await
}

#[tokio::test]
async fn extend_raises_a_deadline_where_the_cluster_allows_it() -> Result<()> {
    in_the_box(async |user| {
        let tenant = user.tenant;
        let deadline = async |name: &str| {
            anyhow::Ok(tenant.jobs.get(name).await?.spec.active_deadline_seconds)
        };
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 3_600})).await?;
        tenant.create("endless", RUNS, json!({})).await?;
        tenant.runs("job").await?;
        let said = user.fails(&["extend", "job", "--by", "2h"])?;
        ensure!(
            said.contains("field is immutable") && said.contains("lifecycle.fieldUpdates"),
            "{said}"
        );
        ensure!(deadline("job").await? == Some(3_600));

        let mutable = crd::yaml(&crd::train_job_crd(FieldUpdates::Mutable))?;
        tenant.world.cluster.apply_yaml("default", &mutable).await?;
        // The API server takes the new schema a moment after it was stored.
        until_ok("deadlines are mutable", PATIENCE, || async {
            user.prints(&["extend", "job", "--by", "2h", "--dry-run"])
        })
        .await?;
        ensure!(deadline("job").await? == Some(3_600), "a dry run has changed it");
        let said = user.prints(&["extend", "job", "--by", "2h"])?;
        ensure!(said.contains("extended: activeDeadlineSeconds is 10800, was 3600"), "{said}");
        let due: Timestamp = created_at(&tenant.jobs.get("job").await?).plus(10_800);
        ensure!(said.contains(&format!("Its deadline ends at {due}, in ")), "{said}");
        user.prints(&["extend", "job", "--to", "20000"])?;
        ensure!(deadline("job").await? == Some(20_000));

        for (arguments, expected) in [
            (
                &["extend", "job", "--to", "20000"][..],
                "--to: 20000 is not more than its 20000 seconds",
            ),
            (&["extend", "endless", "--by", "1h"], "has no activeDeadlineSeconds"),
            (&["extend", "missing", "--by", "1h"], "no TrainJob missing in namespace"),
            (&["extend", "job", "--by", "soon"], "such as 90m, 2h, 1h30m or 1d"),
            (&["extend", "job"], "--by <DURATION>"),
        ] {
            let said = user.fails(arguments)?;
            ensure!(said.contains(expected), "{arguments:?}: {said}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn why_of_a_job_that_its_ttl_has_deleted_quotes_the_event() -> Result<()> {
    in_the_box(async |user| {
        let tenant = user.tenant;
        tenant.create("short", COMPLETES, json!({"ttlSecondsAfterFinished": 0})).await?;
        tenant.gone("short").await?;
        tenant.tells("short", "TTLExpired").await?;
        let said = user.fails(&["why", "short"])?;
        ensure!(said.starts_with("error: no TrainJob short in namespace plugin-"), "{said}");
        ensure!(said.contains("\nhint: TTLExpired at "), "{said}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn kubectl_finds_the_plugin_and_shells_complete_it() -> Result<()> {
    in_the_box(async |user| {
        user.tenant.create("job", RUNS, json!({"suspend": true})).await?;
        let plugin = workspace::kubectl_plugin()?;
        let folder = plugin.parent().context("a program without a directory")?;
        let mut kubectl = Command::new(user.tenant.world.cluster.kubectl());
        kubectl.env_clear().env("PATH", folder).env("KUBECONFIG", &user.kubeconfig);
        let output = kubectl.args(["trainjob", "status", "-n", &user.tenant.namespace]).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let table = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{said}");
        ensure!(table.lines().any(|line| cells(line).starts_with(&["job", "Suspended"])), "{table}");

        let script = r#"eval "$("$0" completion bash)"; COMP_WORDS=(kubectl-trainjob st); COMP_CWORD=1
            _kubectl__trainjob kubectl-trainjob st kubectl-trainjob; echo "${COMPREPLY[@]}""#;
        let output = Command::new("bash").arg("-c").arg(script).arg(&plugin).output()?;
        let completed = String::from_utf8_lossy(&output.stdout);
        ensure!(completed.trim() == "status", "{completed} {}", String::from_utf8_lossy(&output.stderr));
        for shell in ["zsh", "fish"] {
            let script = user.prints(&["completion", shell])?;
            ensure!(script.contains("kubectl-trainjob"), "{shell}: {script}");
        }
        for (arguments, expected) in [
            (&["status", "--context", "nowhere"][..], "--context: the kubeconfig has no context nowhere; it has "),
            (&["status", "--kubeconfig", "/nowhere"], "name another file with --kubeconfig"),
            (&["status", "--output", "yaml"], "[possible values: wide, json]"),
        ] {
            let said = user.fails(arguments)?;
            ensure!(said.contains(expected), "{arguments:?}: {said}");
        }
        Ok(())
    })
    .await
}
