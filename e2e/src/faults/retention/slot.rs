//! The place for an engine behind a proxy, which one or several namespaces share.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::ground::Ground;
use super::objects::target;
use crate::faults::proxy::{Proxy, Scope};
use crate::faults::running::Running;
use crate::testenv::retention::Retention;

/// The place for an engine. Dropped, it kills the engine.
pub(super) struct Slot {
    ground: Arc<Ground>,
    pub(super) proxy: Arc<Proxy>,
    kubeconfig: PathBuf,
    running: Running<Retention>,
}

impl Slot {
    /// One for an engine that sees this much of the box.
    pub(super) async fn new(ground: Arc<Ground>, scope: Scope) -> Result<Self> {
        let proxy = Arc::new(Proxy::start(ground.cluster(), scope).await?);
        let kubeconfig = proxy.kubeconfig(ground.credentials())?;
        Ok(Self { ground, proxy, kubeconfig, running: Running::none() })
    }

    /// Starts an engine with these settings of `retention` beside the usual ones, and with these environment variables.
    pub(super) async fn start(&self, settings: &Value, env: Vec<(String, String)>) -> Result<()> {
        self.proxy.process(self.running.next());
        let mut targets: Vec<Value> = self.ground.kinds().iter().map(target).collect();
        for target in &mut targets {
            // They are for the chart: what an engine may do with them, the API server tells.
            target.as_object_mut().context("a target is a map")?.remove("owners");
        }
        let mut section = json!({"targets": targets, "deletesPerSecond": 0});
        let settings = settings.as_object().cloned().unwrap_or_default();
        section.as_object_mut().context("a section is a map")?.extend(settings);
        // YAML is JSON and more.
        let (section, credentials) = (section.to_string(), self.kubeconfig.clone());
        let cluster = self.ground.cluster();
        self.running.started(Retention::start_as(cluster, &section, credentials, env).await?);
        Ok(())
    }

    /// Kills the engine, as a crash of its machine would.
    pub(super) fn kill(&self) {
        self.running.kill();
    }

    /// The engine that runs.
    pub(super) fn engine(&self) -> Result<Arc<Retention>> {
        self.running.program()
    }
}
