//! kubectl, as somebody uses it who may edit in a namespace.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::testenv::fixtures::{COMPLETES_AFTER, train_job};
use crate::testenv::release::{PATIENCE, Release};
use crate::testenv::tools::Tools;
use crate::testenv::until::until_ok;

/// Shows all of it; `tell` hears of each step.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let release = Release::with_runtimes(&[]).await?;
    let _programs = release.start().await?;
    let (tools, namespace) = release.user("kubectl").await?;
    let release_of_server = release.cluster.versions().kubernetes.release();
    let user = User { tools, namespace };
    tell("the release is there, and somebody may edit in a namespace");
    user.has_the_version_of_the_server(release_of_server).await?;
    user.explains().await?;
    tell("explain says what a TTL is and in which unit");
    user.is_told_of_typing_errors().await?;
    tell("a field that does not exist is refused by name");
    user.sees_a_job_complete().await?;
    tell("apply, wait --for=condition=Complete, get, describe and events tell the course of a job");
    user.sees_jobs_that_wait_and_fail().await?;
    tell("get shows what is suspended, complete and failed; wait --for=condition=Failed ends");
    user.sees_a_ttl_pass().await?;
    tell("wait --for=delete sees a TTL pass");
    user.shares_a_job_with_a_manager().await?;
    tell(
        "two managers apply to one job: each keeps its own, a conflict and a fixed field are refused by name",
    );
    user.deletes_what_is_left().await?;
    tell("delete leaves nothing behind");
    Ok(())
}

struct User {
    tools: Tools,
    namespace: String,
}

impl User {
    async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let arguments = [&["--namespace", &self.namespace], arguments].concat();
        self.tools.kubectl(&arguments, None).await
    }

    async fn give(&self, arguments: &[&str], object: &Value) -> Result<String> {
        let arguments = [&["--namespace", &self.namespace], arguments, &["-f", "-"]].concat();
        self.tools.kubectl(&arguments, Some(object.to_string())).await
    }

    /// What is said to this request, which is refused.
    async fn refusal(&self, arguments: &[&str], object: &Value) -> Result<String> {
        match self.give(arguments, object).await {
            Ok(said) => bail!("{arguments:?} was let through: {said}"),
            Err(error) => Ok(format!("{error:#}")),
        }
    }

    /// Server-side apply by a manager.
    async fn apply(&self, manager: &str, object: &Value) -> Result<String> {
        self.give(&["apply", "--server-side", "--field-manager", manager], object).await
    }

    async fn has_the_version_of_the_server(&self, release: &str) -> Result<()> {
        let said: Value = serde_json::from_str(&self.kubectl(&["version", "-o", "json"]).await?)?;
        let expected = json!(format!("v{release}"));
        for side in ["/clientVersion/gitVersion", "/serverVersion/gitVersion"] {
            ensure!(said.pointer(side) == Some(&expected), "{side}: {said}");
        }
        Ok(())
    }

    async fn explains(&self) -> Result<()> {
        let field = self.kubectl(&["explain", "trainjob.spec.ttlSecondsAfterFinished"]).await?;
        contains(
            &field,
            &[
                "KIND:       TrainJob",
                "VERSION:    v1alpha1",
                "FIELD: ttlSecondsAfterFinished <integer>",
                "Seconds after which a finished job is deleted with everything it owns",
            ],
        )?;
        let all = self.kubectl(&["explain", "trainjobs", "--recursive"]).await?;
        contains(&all, &["activeDeadlineSeconds\t<integer>", "runtimeRef\t<Object> -required-"])
    }

    async fn is_told_of_typing_errors(&self) -> Result<()> {
        let job = job("typo", &json!({"ttlSecondsAfterFinishd": 60}));
        let refusal = self.refusal(&["create"], &job).await?;
        contains(&refusal, &["unknown field \"spec.ttlSecondsAfterFinishd\""])
    }

    async fn sees_a_job_complete(&self) -> Result<()> {
        let job = job("first", &json!({"ttlSecondsAfterFinished": 600}));
        let said = self.give(&["apply"], &job).await?;
        contains(&said, &["trainjob.trainer.kubeflow.org/first created"])?;
        let wait = ["wait", "--for=condition=Complete", "trainjob/first", "--timeout=120s"];
        let said = self.kubectl(&wait).await?;
        contains(&said, &["trainjob.trainer.kubeflow.org/first condition met"])?;

        let rows = self.rows().await?;
        let [header, row] = rows.as_slice() else { bail!("{rows:?}") };
        ensure!(header.as_slice() == ["NAME", "STATE", "AGE"], "{rows:?}");
        ensure!(row.starts_with(&["first", "Complete"].map(str::to_owned)), "{rows:?}");

        let described = self.kubectl(&["describe", "trainjob", "first"]).await?;
        contains(
            &described,
            &[
                "Kind:         TrainJob",
                "Ttl Seconds After Finished:  600",
                "Type:                  Complete",
                "Jobs Status:",
            ],
        )
    }

    async fn sees_jobs_that_wait_and_fail(&self) -> Result<()> {
        self.give(&["create"], &job("waits", &json!({"suspend": true}))).await?;
        let endless = json!({"activeDeadlineSeconds": 2, "runtimePatches": []});
        self.give(&["create"], &job("endless", &endless)).await?;
        for (condition, name) in [("Suspended", "waits"), ("Failed", "endless")] {
            let (condition, job) =
                (format!("--for=condition={condition}"), format!("trainjob/{name}"));
            let said = self.kubectl(&["wait", &condition, &job, "--timeout=120s"]).await?;
            contains(&said, &[&format!("{name} condition met")])?;
        }
        let rows = self.rows().await?;
        let states: Vec<&[String]> = rows.iter().filter_map(|row| row.get(..2)).skip(1).collect();
        let expected = [["endless", "Failed"], ["first", "Complete"], ["waits", "Suspended"]];
        ensure!(states == expected, "{states:?}");
        // What is told is sent apart from the status.
        until_ok("the deadline is told", PATIENCE, || async {
            let described = self.kubectl(&["describe", "trainjob", "endless"]).await?;
            contains(&described, &["Reason:                DeadlineExceeded"])?;
            let told = described.split("Events:").nth(1).unwrap_or_default();
            contains(told, &["DeadlineExceeded"])?;
            let events = self.kubectl(&["events", "--for", "trainjob/endless"]).await?;
            contains(&events, &["DeadlineExceeded", "TrainJob/endless"])
        })
        .await
    }

    async fn sees_a_ttl_pass(&self) -> Result<()> {
        self.give(&["create"], &job("short", &json!({"ttlSecondsAfterFinished": 1}))).await?;
        let wait = ["wait", "--for=delete", "trainjob/short", "--timeout=120s"];
        let said = self.kubectl(&wait).await?;
        contains(&said, &["trainjob.trainer.kubeflow.org/short condition met"])?;
        let left = self.kubectl(&["get", "jobs,pods", "-o", "name"]).await?;
        ensure!(!left.contains("short"), "left: {left}");
        Ok(())
    }

    /// The manager of a queue suspends a job and pins its Pods, as Kueue does, while its user goes on to apply
    /// what the job is.
    async fn shares_a_job_with_a_manager(&self) -> Result<()> {
        let theirs = |ttl: u32, suspend: bool| {
            job("shared", &json!({"ttlSecondsAfterFinished": ttl, "suspend": suspend}))
        };
        let said = self.apply("user", &theirs(600, true)).await?;
        contains(&said, &["trainjob.trainer.kubeflow.org/shared serverside-applied"])?;
        let queue = json!([patch("example.com/queue", &json!({"queued": "yes"}))]);
        let queue = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "shared"},
            "spec": {"runtimePatches": queue},
        });
        self.apply("queue", &queue).await?;
        let before = self.read("shared").await?;
        self.apply("user", &theirs(600, true)).await?;
        self.apply("queue", &queue).await?;
        let after = self.read("shared").await?;
        ensure!(before == after, "what is applied again changes something: {before}\n{after}");
        let patches = after.pointer("/spec/runtimePatches").and_then(Value::as_array);
        let patches = patches.context("no patches")?;
        let managers: Vec<_> = patches.iter().filter_map(|patch| patch.get("manager")).collect();
        ensure!(managers == ["example.com/user", "example.com/queue"], "{after}");
        ensure!(patches.iter().all(|patch| patch.get("time").is_some()), "{after}");

        let changed = theirs(60, true);
        let apply = ["apply", "--server-side", "--field-manager", "queue"];
        let conflict = self.refusal(&apply, &changed).await?;
        contains(&conflict, &["conflict with \"user\"", ".spec.ttlSecondsAfterFinished"])?;
        let force = [&apply[..], &["--force-conflicts"]].concat();
        let fixed = self.refusal(&force, &changed).await?;
        contains(&fixed, &["spec.ttlSecondsAfterFinished: Forbidden: field is immutable"])?;

        self.apply("user", &theirs(600, false)).await?;
        let wait = ["wait", "--for=condition=Complete", "trainjob/shared", "--timeout=120s"];
        self.kubectl(&wait).await?;
        let shared = "jobset.sigs.k8s.io/jobset-name=shared";
        let annotations = "jsonpath={.items[*].metadata.annotations}";
        let pods = ["get", "pods", "-l", shared, "-o", annotations];
        let annotations = self.kubectl(&pods).await?;
        contains(&annotations, &["\"queued\":\"yes\"", COMPLETES_AFTER])
    }

    async fn deletes_what_is_left(&self) -> Result<()> {
        let said = self.kubectl(&["delete", "trainjob", "first"]).await?;
        contains(&said, &["trainjob.trainer.kubeflow.org \"first\" deleted"])?;
        self.kubectl(&["delete", "trainjobs", "--all"]).await?;
        until_ok("everything is gone", PATIENCE, || async {
            let kinds = "trainjobs,jobs,pods";
            let left = self.kubectl(&["get", kinds, "-o", "name"]).await?;
            ensure!(left.is_empty(), "left: {left}");
            Ok(())
        })
        .await
    }

    /// What `kubectl get trainjobs` shows, cell by cell.
    async fn rows(&self) -> Result<Vec<Vec<String>>> {
        let table = self.kubectl(&["get", "trainjobs"]).await?;
        let cells = |row: &str| row.split_whitespace().map(str::to_owned).collect();
        Ok(table.lines().map(cells).collect())
    }

    async fn read(&self, name: &str) -> Result<Value> {
        let text = self.kubectl(&["get", "trainjob", name, "-o", "json"]).await?;
        let mut job: Value = serde_json::from_str(&text)?;
        // The operator may have something to say of it at any time.
        for field in ["status", "metadata"] {
            job.as_object_mut().context("no object")?.remove(field);
        }
        Ok(job)
    }
}

/// A TrainJob whose Pod completes after a second, with this much more in its spec.
fn job(name: &str, more: &Value) -> Value {
    let completes = patch("example.com/user", &json!({COMPLETES_AFTER: "1s"}));
    let mut job = train_job(name, "torch-distributed", more);
    if let Some(spec) = job.pointer_mut("/spec").and_then(Value::as_object_mut) {
        spec.insert("runtimePatches".to_owned(), json!([completes]));
    }
    job
}

/// Annotations that a manager gives to the Pods of a job.
fn patch(manager: &str, annotations: &Value) -> Value {
    let pods = json!({"template": {"metadata": {"annotations": annotations}}});
    let jobs = json!([{"name": "node", "template": {"spec": pods}}]);
    json!({
        "manager": manager,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    })
}

fn contains(text: &str, expected: &[&str]) -> Result<()> {
    for expected in expected {
        ensure!(text.contains(expected), "no {expected:?} in:\n{text}");
    }
    Ok(())
}
