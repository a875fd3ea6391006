//! A namespace in which rows are sent, in all the ways that clients know.
//!
//! | way | created by | changed by |
//! |---|---|---|
//! | `replace` | POST | PUT of the object as it was read, with another spec |
//! | `kubectl apply` | POST with the annotation of what was applied | a merge patch of what has changed since |
//! | `server-side apply` | PATCH | PATCH |
//! | JSON patch | POST | `replace /spec` |

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::answer::{Answer, ask};
use e2e::binaries::Kubernetes;
use e2e::cluster::Cluster;
use e2e::until::until_ok;
use http::Method;
use kube::Client;
use serde_json::{Map, Value, json};

use super::Site;
use super::row::{Expect, Row};

const VERSION: &str = "trainer.kubeflow.org/v1alpha1";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const JSON: &str = "application/json";
const NAMESPACES: &str = "/api/v1/namespaces";

/// How long the webhook may take to learn of a runtime.
const LEARNS: Duration = Duration::from_secs(30);

/// A way to create and change an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Replace,
    KubectlApply,
    ServerSideApply,
    JsonPatch,
}

impl Way {
    pub(crate) const ALL: [Self; 4] =
        [Self::Replace, Self::KubectlApply, Self::ServerSideApply, Self::JsonPatch];
}

/// A namespace, and a client with all permissions.
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    kubernetes: Kubernetes,
    count: AtomicUsize,
    /// The box that it is in, where tests share one: it stays as long as somebody has it.
    _site: Option<Arc<Site>>,
}

impl Place {
    /// A new namespace, whose name begins like this.
    pub(crate) async fn of(cluster: &Cluster, prefix: &str) -> Result<Self> {
        Self::annotated(cluster, prefix, &json!({})).await
    }

    /// The same with these annotations.
    pub(crate) async fn annotated(
        cluster: &Cluster,
        prefix: &str,
        annotations: &Value,
    ) -> Result<Self> {
        let client = cluster.client().await?;
        let metadata = json!({"generateName": format!("{prefix}-"), "annotations": annotations});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        let made = ask(&client, Method::POST, NAMESPACES, JSON, &namespace).await?;
        ensure!(made.code == 201, "the namespace is refused: {}", made.message());
        let name = made.object["metadata"]["name"].as_str();
        let namespace = name.context("a namespace without a name")?.to_owned();
        let kubernetes = cluster.versions().kubernetes;
        Ok(Self { client, namespace, kubernetes, count: AtomicUsize::new(1), _site: None })
    }

    /// Keeps the box that it is in for as long as it is there itself.
    pub(crate) fn keeping(self, site: Arc<Site>) -> Self {
        Self { _site: Some(site), ..self }
    }

    /// Changes annotations of the namespace; the webhook hears of it a moment later.
    pub(crate) async fn annotate(&self, annotations: &Value) -> Result<()> {
        let path = format!("{NAMESPACES}/{}", self.namespace);
        let change = json!({"metadata": {"annotations": annotations}});
        let merge = "application/merge-patch+json";
        let answer = ask(&self.client, Method::PATCH, &path, merge, &change).await?;
        ensure!(answer.code == 200, "{answer:?}");
        Ok(())
    }

    /// Sends each row in all ways; tells of all that are not as expected.
    pub(crate) async fn check(&self, rows: Vec<Row>) -> Result<()> {
        let mut problems = Vec::new();
        for row in &rows {
            if let Err(problem) = self.check_row(row).await {
                problems.push(format!("{}: {problem:#}", row.what));
            }
        }
        ensure!(
            problems.is_empty(),
            "{} of {}:\n{}",
            problems.len(),
            rows.len(),
            problems.join("\n")
        );
        Ok(())
    }

    async fn check_row(&self, row: &Row) -> Result<()> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let runtime = format!("r{number}{}", row.ending);
        if !row.runtime.is_null() {
            self.make_runtime(&runtime, &row.runtime).await?;
        }
        for (letter, way) in ["a", "b", "c", "d"].into_iter().zip(Way::ALL) {
            // On creation, two of the ways are one.
            if row.then.is_none() && way == Way::JsonPatch {
                continue;
            }
            let name = format!("j{number}{letter}");
            let case = Case { place: self, row, way, job: &name, runtime: &runtime };
            case.check().await.with_context(|| format!("{way:?}"))?;
        }
        Ok(())
    }

    /// Makes a TrainingRuntime, and waits until the webhook knows it.
    pub(crate) async fn make_runtime(&self, name: &str, spec: &Value) -> Result<()> {
        let runtime = json!({
            "apiVersion": VERSION, "kind": "TrainingRuntime", "metadata": {"name": name}, "spec": spec,
        });
        let path = self.path("trainingruntimes", "");
        let made = ask(&self.client, Method::POST, &path, JSON, &runtime).await?;
        ensure!(made.code == 201, "the runtime is refused: {}", made.message());
        until_ok(format!("the webhook knows {name}"), LEARNS, || async {
            let probe = manifest("probe", &on(name, &json!({})));
            let answer = self.send(&Request::create(Way::Replace, probe), true).await?;
            ensure!(!answer.message().contains("must be created before"), "{}", answer.message());
            Ok(())
        })
        .await
    }

    /// The path of an object, or of all of a kind.
    pub(crate) fn path(&self, resource: &str, name: &str) -> String {
        let path = format!("/apis/{VERSION}/namespaces/{}/{resource}", self.namespace);
        if name.is_empty() { path } else { format!("{path}/{name}") }
    }

    /// Sends a request about a TrainJob.
    pub(crate) async fn send(&self, request: &Request, dry_run: bool) -> Result<Answer> {
        let Request { method, name, content_type, body } = request;
        let path = self.path("trainjobs", name);
        let dry_run = if dry_run { "&dryRun=All" } else { "" };
        let force = if *content_type == APPLY { "&force=true" } else { "" };
        let path = format!("{path}?fieldManager=e2e{force}{dry_run}");
        ask(&self.client, method.clone(), &path, content_type, body).await
    }

    /// A TrainJob as it is stored; the code is 404 where there is none.
    pub(crate) async fn read(&self, name: &str) -> Result<Answer> {
        ask(&self.client, Method::GET, &self.path("trainjobs", name), JSON, &Value::Null).await
    }

    /// Creates a TrainJob, which must be admitted.
    pub(crate) async fn create(&self, way: Way, name: &str, spec: &Value) -> Result<Value> {
        let answer = self.send(&Request::create(way, manifest(name, spec)), false).await?;
        ensure!(answer.code == 201, "{name} is refused: {}", answer.message());
        Ok(answer.object)
    }

    /// Changes the spec of a stored TrainJob to this one.
    pub(crate) async fn change(&self, way: Way, job: &Value, spec: &Value) -> Result<Answer> {
        self.send(&Request::change(way, job, spec)?, false).await
    }
}

const APPLY: &str = "application/apply-patch+yaml";

/// A request about a TrainJob.
#[derive(Debug)]
pub(crate) struct Request {
    method: Method,
    name: String,
    content_type: &'static str,
    body: Value,
}

impl Request {
    /// To create a TrainJob.
    pub(crate) fn create(way: Way, mut manifest: Value) -> Self {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match way {
            Way::ServerSideApply => {
                Self { method: Method::PATCH, name, content_type: APPLY, body: manifest }
            }
            Way::Replace | Way::JsonPatch | Way::KubectlApply => {
                if way == Way::KubectlApply {
                    remember(&mut manifest);
                }
                let name = String::new();
                Self { method: Method::POST, name, content_type: JSON, body: manifest }
            }
        }
    }

    /// To change the spec of a stored TrainJob to this one.
    pub(crate) fn change(way: Way, job: &Value, spec: &Value) -> Result<Self> {
        let name = job["metadata"]["name"].as_str().context("a job without a name")?.to_owned();
        let request =
            |method, content_type, body| Self { method, name: name.clone(), content_type, body };
        Ok(match way {
            Way::Replace => {
                let mut changed = job.clone();
                changed["spec"] = spec.clone();
                request(Method::PUT, JSON, changed)
            }
            Way::JsonPatch => {
                let patch = json!([{"op": "replace", "path": "/spec", "value": spec}]);
                request(Method::PATCH, "application/json-patch+json", patch)
            }
            Way::ServerSideApply => request(Method::PATCH, APPLY, manifest(&name, spec)),
            Way::KubectlApply => {
                let applied = job["metadata"]["annotations"][LAST_APPLIED].as_str();
                let applied: Value = serde_json::from_str(applied.context("was not applied")?)?;
                let mut patch = difference(&applied["spec"], spec);
                let mut new = manifest(&name, spec);
                remember(&mut new);
                let metadata = json!({"annotations": new["metadata"]["annotations"]});
                patch = json!({"metadata": metadata, "spec": patch});
                request(Method::PATCH, "application/merge-patch+json", patch)
            }
        })
    }
}

/// A TrainJob.
pub(crate) fn manifest(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": VERSION, "kind": "TrainJob", "metadata": {"name": name}, "spec": spec})
}

/// The spec with a reference to a TrainingRuntime of this name, unless it has one.
pub(crate) fn on(runtime: &str, spec: &Value) -> Value {
    let reference = json!({"runtimeRef": {"name": runtime, "kind": "TrainingRuntime"}});
    let mut all = reference.as_object().cloned().unwrap_or_default();
    all.extend(spec.as_object().cloned().unwrap_or_default());
    Value::Object(all)
}

/// Notes in an annotation what is applied, as `kubectl apply` does.
fn remember(manifest: &mut Value) {
    manifest["metadata"]["annotations"] = json!({LAST_APPLIED: manifest.to_string()});
}

/// The merge patch that makes `new` of `old`.
fn difference(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return new.clone() };
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    let mut patch: Map<_, _> = gone.map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in new {
        match old.get(key) {
            Some(known) if known == value => {}
            Some(known) => {
                patch.insert(key.clone(), difference(known, value));
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

/// A row in one of the ways.
struct Case<'a> {
    place: &'a Place,
    row: &'a Row,
    way: Way,
    job: &'a str,
    runtime: &'a str,
}

impl Case<'_> {
    async fn check(&self) -> Result<()> {
        let first = on(self.runtime, &self.row.job);
        let Some(then) = &self.row.then else {
            let request = Request::create(self.way, manifest(self.job, &first));
            return self.send_twice(&request, 201).await;
        };
        let stored = self.place.create(self.way, self.job, &first).await?;
        let request = Request::change(self.way, &stored, &on(self.runtime, then))?;
        self.send_twice(&request, 200).await
    }

    /// As a dry run, which changes nothing, and then in earnest.
    async fn send_twice(&self, request: &Request, success: u16) -> Result<()> {
        let before = self.place.read(self.job).await?;
        for dry_run in [true, false] {
            let answer = self.place.send(request, dry_run).await?;
            self.judge(&answer, success).with_context(|| format!("dry run: {dry_run}"))?;
            let after = self.place.read(self.job).await?;
            let is_done = !dry_run && self.is_admitted();
            ensure!(is_done || version(&after) == version(&before), "it has left a trace");
            ensure!(!is_done || after.code == 200, "it is not there");
        }
        Ok(())
    }

    fn is_admitted(&self) -> bool {
        matches!(self.row.expect, Expect::Admitted) && self.refused_by_oldest().is_none()
    }

    /// What the API server says if it is of the oldest release and refuses what all others leave to the webhook.
    fn refused_by_oldest(&self) -> Option<&'static str> {
        let is_apply = self.way == Way::ServerSideApply;
        let is_oldest = self.place.kubernetes == Kubernetes::Oldest;
        self.row.oldest_apply.filter(|_| is_apply && is_oldest)
    }

    fn judge(&self, answer: &Answer, success: u16) -> Result<()> {
        let message = answer.message();
        if let Some(text) = self.refused_by_oldest() {
            ensure!(answer.code == 422, "{}: {message}", answer.code);
            ensure!(message.contains(text), "it says {message} and not {text}");
            return Ok(());
        }
        match &self.row.expect {
            Expect::Admitted => ensure!(answer.code == success, "{}: {message}", answer.code),
            Expect::Denied(text) => {
                let webhook = "validator.trainjob.trainer.kubeflow.org";
                let text = self.with_names(text);
                let expected =
                    format!("admission webhook \"{webhook}\" denied the request: {text}");
                ensure!(message == expected, "\n  it says {message}\n  and not {expected}");
                ensure!(answer.code == 403, "{}", answer.code);
                ensure!(answer.object["reason"] == "Forbidden", "{}", answer.object);
            }
            Expect::Invalid { path, reason } => {
                ensure!(answer.code == 422, "{}: {message}", answer.code);
                let kind = "TrainJob.trainer.kubeflow.org";
                let start = format!("{kind} \"{}\" is invalid: {path}: Invalid value: ", self.job);
                if !(message.starts_with(&start) && message.ends_with(&format!(": {reason}"))) {
                    bail!("it says {message} and not {start}…: {reason}");
                }
            }
        }
        let warnings: Vec<_> = self.row.warnings.iter().map(|it| self.with_names(it)).collect();
        ensure!(answer.warnings == warnings, "it warns {:?} and not {warnings:?}", answer.warnings);
        Ok(())
    }

    fn with_names(&self, text: &str) -> String {
        let reference = format!(
            r#"{{"name":"{}","apiGroup":"trainer.kubeflow.org","kind":"TrainingRuntime"}}"#,
            self.runtime
        );
        text.replace("{job}", self.job)
            .replace("{runtime}", self.runtime)
            .replace("{ref}", &reference)
    }
}

fn version(job: &Answer) -> Option<&str> {
    job.object.pointer("/metadata/resourceVersion").and_then(Value::as_str)
}
