//! A cluster with a release in it, and the Prometheus that looks on.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::prometheus::Prometheus;
use crate::testenv::release::{PATIENCE, Release};
use crate::testenv::until::until_ok;
use crate::testenv::yaml;

/// An object with more in one of its parts.
pub(super) fn with(mut object: Value, part: &str, more: &Value) -> Result<Value> {
    let into = object.pointer_mut(part).and_then(Value::as_object_mut);
    let into = into.with_context(|| format!("no {part}"))?;
    into.extend(
        more.as_object().into_iter().flatten().map(|(name, it)| (name.clone(), it.clone())),
    );
    Ok(object)
}

/// A release, and the Prometheus that looks on.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) release: &'a Release,
    pub(super) prometheus: &'a Prometheus,
}

impl Site<'_> {
    /// Runs kubectl for a namespace.
    pub(super) async fn kubectl(&self, namespace: &str, arguments: &[&str]) -> Result<String> {
        let arguments = [&["--namespace", namespace], arguments].concat();
        self.release.tools.kubectl(&arguments, None).await
    }

    /// Creates objects.
    pub(super) async fn create(&self, namespace: &str, objects: &[Value]) -> Result<()> {
        let create = ["create", "--namespace", namespace, "-f", "-"];
        self.release.tools.kubectl(&create, Some(yaml::stream(objects))).await?;
        Ok(())
    }

    /// Applies objects.
    pub(super) async fn apply(&self, namespace: &str, objects: &[Value]) -> Result<()> {
        self.release.cluster.apply_yaml(namespace, &yaml::stream(objects)).await?;
        Ok(())
    }

    /// Waits until a query finds something.
    pub(super) async fn finds(&self, query: &str) -> Result<()> {
        until_ok(format!("{query} finds something"), PATIENCE, || async {
            ensure!(!self.prometheus.at(query, None).await?.is_empty(), "nothing");
            Ok(())
        })
        .await
    }
}
