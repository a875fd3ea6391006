//! The peer that does the whole work: Kubeflow Trainer, with the configuration that its release gives it.

use anyhow::Result;

use super::rig::Rig;
use crate::testenv::apply::apply;
use crate::testenv::ports::Port;
use crate::testenv::product::Product;
use crate::testenv::trainer::{self, Manifests, NAMESPACE};

/// Its row in a table.
pub(super) const NAME: &str = "Kubeflow Trainer 2.3.0";

/// What is needed to start it.
pub(super) struct Trainer {
    webhook: Port,
    manifests: Manifests,
}

impl Trainer {
    /// Brings its definitions, in the place of the operator's, and its permissions. Its admission server is not asked,
    /// nor is the operator's where that is measured.
    pub(super) async fn install(rig: &Rig) -> Result<Self> {
        let webhook = Port::take()?;
        let manifests = Manifests::provide(&rig.cluster, &webhook).await?;
        let mut objects = manifests.for_process();
        let registers = |kind: &str| kind.ends_with("WebhookConfiguration");
        objects.retain(|object| !object["kind"].as_str().is_some_and(registers));
        apply(&rig.admin, NAMESPACE, objects).await?;
        Ok(Self { webhook, manifests })
    }

    /// Starts it and waits until it is ready.
    pub(super) async fn start(&self, rig: &Rig) -> Result<Product> {
        trainer::start(&rig.cluster, &self.webhook, self.manifests.configuration()?).await
    }
}
