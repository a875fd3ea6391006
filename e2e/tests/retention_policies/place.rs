//! A namespace of the box, in which policies are sent.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use e2e::answer::{Answer, ask};
use e2e::chart::install_retention_crds;
use e2e::cluster::{Cluster, Options};
use e2e::fixtures::shared::Shared;
use http::Method;
use kube::Client;
use serde_json::{Value, json};

const GROUP: &str = "lifecycle.trainjob.dev/v1alpha1";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// Both kinds of policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Namespaced,
    Cluster,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Namespaced, Self::Cluster];

    pub(crate) const fn plural(self) -> &'static str {
        match self {
            Self::Namespaced => "retentionpolicies",
            Self::Cluster => "clusterretentionpolicies",
        }
    }

    pub(crate) fn policy(self, name: &str, spec: &Value) -> Value {
        let kind = match self {
            Self::Namespaced => "RetentionPolicy",
            Self::Cluster => "ClusterRetentionPolicy",
        };
        json!({"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec})
    }
}

/// The spec of a policy that says no more than it must.
pub(crate) fn least() -> Value {
    json!({
        "target": {"apiGroup": "batch", "kind": "Job"},
        "rules": [{"name": "all", "action": {"ttlSecondsAfterFinished": 60}}],
    })
}

/// Sets what a JSON pointer names.
pub(crate) fn set(object: &mut Value, pointer: &str, value: Value) -> Result<()> {
    let (parent, field) = pointer.rsplit_once('/').context("no pointer")?;
    let parent = object.pointer_mut(parent).with_context(|| format!("no {parent}"))?;
    match parent {
        Value::Array(items) => {
            *items.get_mut(field.parse::<usize>()?).context("no such item")? = value;
        }
        fields => fields[field] = value,
    }
    Ok(())
}

/// The same without the fields that are null.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            fields.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        plain => plain.clone(),
    }
}

/// A namespace, and a client with all permissions.
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) cluster: Arc<Cluster>,
}

impl Place {
    /// A new one, whose name begins like this.
    pub(crate) async fn new(prefix: &str) -> Result<Self> {
        static CLUSTER: Shared<Cluster> = Shared::new();
        let start = async || {
            let cluster = Cluster::start(Options::bare()).await?;
            install_retention_crds(&cluster.client().await?).await?;
            Ok(cluster)
        };
        let cluster = CLUSTER.get(start).await?;
        let client = cluster.client().await?;
        let namespace = cluster.namespace(prefix).await?;
        Ok(Self { client, namespace, cluster })
    }

    /// Sends a policy or a change of one, or what comes after a `/` in its name. Unknown fields are refused.
    pub(crate) async fn send(
        &self,
        method: Method,
        kind: Kind,
        name: &str,
        body: &Value,
    ) -> Result<Answer> {
        let path = match kind {
            Kind::Namespaced => format!("namespaces/{}/{}", self.namespace, kind.plural()),
            Kind::Cluster => kind.plural().to_owned(),
        };
        let (path, question) = match name.split_once('?') {
            Some((name, question)) => (format!("{path}/{name}"), format!("{question}&")),
            None => (format!("{path}/{name}"), String::new()),
        };
        let path = format!(
            "/apis/{GROUP}/{}?{question}fieldValidation=Strict",
            path.trim_end_matches('/')
        );
        let content = if method == Method::PATCH { MERGE } else { JSON };
        ask(&self.client, method, &path, content, body).await
    }
}

/// Sees that a request was refused because of this one field, with this text.
pub(crate) fn refused(answer: &Answer, field: &str, text: &str) -> Result<()> {
    ensure!(answer.code == 422, "{}: {}", answer.code, answer.object);
    let causes = answer.object["details"]["causes"].as_array().context("no causes")?;
    // After some mistakes the API server adds, of no field, that it has not looked at all rules.
    let causes: Vec<_> = causes.iter().filter(|cause| cause["field"] != "<nil>").collect();
    let [cause] = causes.as_slice() else { bail!("{causes:?}") };
    let message = cause["message"].as_str().unwrap_or_default();
    ensure!(cause["field"] == field, "{field}: {cause}");
    ensure!(message.ends_with(text), "{text}: {cause}");
    Ok(())
}
