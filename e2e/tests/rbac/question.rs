//! What the webhook is asked about TrainJobs, so that it needs its permissions.

use anyhow::{Context, Result, ensure};
use e2e::answer::ask;
use e2e::apply::apply;
use kube::Client;
use serde_json::{Value, json};

const VALIDATE: &str = "/validate-trainer-kubeflow-org-v1alpha1-trainjob";
const GROUP: &str = "trainer.kubeflow.org";
/// What is said of an object that does not exist, and not of one that may not be read.
const NOT_FOUND: &str = "\"e2e-none\" not found";
/// The UID of the job that is changed, which exists only in the question.
const UID: &str = "e2e";

/// A question, of which the answer needs a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// May there be a job on a runtime that does not exist?
    NoRuntime(&'static str),
    /// May there be a job in a namespace that the webhook has not heard of?
    NewNamespace,
    /// May there be a job whose priority does not exist?
    NoPriority,
    /// May a job change as its snapshot says, and not the runtime that it names?
    Snapshot,
    /// May a suspended job of which nothing runs be patched?
    Patch,
}

impl Question {
    /// Makes what the questions are about, but for the jobs.
    pub(crate) async fn prepare(client: &Client) -> Result<()> {
        let mut urgent = e2e::fixtures::runtime("urgent", &json!({}), 1, None);
        urgent["spec"]["podGroupPolicy"] = json!({"volcano": {}});
        let template = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec";
        let pod = urgent.pointer_mut(template).context("no Pods")?;
        pod["priorityClassName"] = json!("e2e-none");
        let plain = e2e::fixtures::runtime("plain", &json!({}), 1, None);
        let mut torch = e2e::fixtures::runtime("torch", &json!({}), 1, None);
        torch["spec"]["mlPolicy"] = json!({"numNodes": 1, "torch": {}});
        // What the job began with, under the same name.
        let kept = e2e::fixtures::runtime("torch", &json!({}), 1, None);
        let owner = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "kept",
            "uid": UID, "controller": true,
        });
        let snapshot = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kept-runtime-snapshot", "ownerReferences": [owner]},
            "immutable": true,
            "data": {"runtime": kept.to_string()},
        });
        apply(client, "default", vec![urgent, plain, torch, snapshot]).await?;
        Ok(())
    }

    /// Asks a webhook, and sees that it answers as it should.
    pub(crate) async fn ask(self, webhook: &Client) -> Result<()> {
        let (old, new, expected) = match self {
            Self::NoRuntime(kind) => {
                let reference = reference("e2e-none", kind);
                (Value::Null, job("new", &json!({"runtimeRef": reference})), NOT_FOUND)
            }
            Self::NewNamespace => (Value::Null, job("new", &on("plain", false)), ""),
            Self::NoPriority => (Value::Null, job("new", &on("urgent", false)), NOT_FOUND),
            Self::Snapshot => {
                let mut changed = on("torch", false);
                changed["trainer"] = json!({"env": [{"name": "PET_NNODES", "value": "1"}]});
                (job("kept", &on("torch", false)), job("kept", &changed), "")
            }
            Self::Patch => {
                let mut changed = on("plain", true);
                changed["runtimePatches"] = json!([{"manager": "e2e.trainjob.dev/user"}]);
                (job("held", &on("plain", true)), job("held", &changed), "")
            }
        };
        let mut review = review(&old, &new);
        if self == Self::NewNamespace {
            review["request"]["namespace"] = json!("e2e-new");
        }
        let answer =
            ask(webhook, http::Method::POST, VALIDATE, "application/json", &review).await?;
        let response = answer.object.get("response").context("no response")?;
        let message = response.pointer("/status/message").and_then(Value::as_str);
        let said = message.unwrap_or_default();
        let is_so = if expected.is_empty() { said.is_empty() } else { said.contains(expected) };
        ensure!(is_so && answer.code == 200, "{self:?}: {response}");
        Ok(())
    }
}

fn on(runtime: &str, suspend: bool) -> Value {
    json!({"runtimeRef": reference(runtime, "ClusterTrainingRuntime"), "suspend": suspend})
}

fn reference(name: &str, kind: &str) -> Value {
    json!({"apiGroup": GROUP, "kind": kind, "name": name})
}

fn job(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "default", "uid": UID},
        "spec": spec,
    })
}

fn review(old: &Value, new: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": GROUP, "version": "v1alpha1", "kind": "TrainJob"},
            "resource": {"group": GROUP, "version": "v1alpha1", "resource": "trainjobs"},
            "name": new.pointer("/metadata/name"),
            "namespace": "default",
            "operation": if old.is_null() { "CREATE" } else { "UPDATE" },
            "userInfo": {"username": "e2e"},
            "object": new,
            "oldObject": old,
            "dryRun": false,
        },
    })
}
