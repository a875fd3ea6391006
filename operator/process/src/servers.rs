//! The servers beside the work: health, and metrics.

use std::{io, sync::Arc};

use prometheus::Registry;
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};

use crate::{
    config::Config,
    exposition::Exposition,
    health::{Health, Readiness},
    pages::{self, Pages},
};

/// The servers of one process.
#[derive(Debug, Default)]
pub struct Servers(JoinSet<io::Result<()>>);

impl Servers {
    /// Serves health and metrics, each where the configuration says, until `until` is true.
    ///
    /// # Errors
    ///
    /// If one of them cannot listen.
    pub async fn start(
        config: &Config,
        readiness: &Readiness,
        metrics: &Registry,
        until: &watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let (endpoints, readiness) = (config.health_endpoints.clone(), readiness.clone());
        let health: Arc<dyn Pages> = Arc::new(Health { endpoints, readiness });
        let metrics: Arc<dyn Pages> = Arc::new(Exposition(metrics.clone()));
        let mut servers = JoinSet::new();
        for (address, pages) in [(config.health_address, health), (config.metrics_address, metrics)]
        {
            if let Some(address) = address {
                let listener = pages::listen(address).await?;
                servers.spawn(pages::serve(listener, pages, until.clone()));
            }
        }
        Ok(Self(servers))
    }

    /// Waits until the next of them has ended; `None` when there is none left.
    ///
    /// # Errors
    ///
    /// Why it ended, unless it was told to.
    pub async fn ended(&mut self) -> Option<io::Result<()>> {
        let ended: Result<io::Result<()>, JoinError> = self.0.join_next().await?;
        Some(ended.map_err(io::Error::other).and_then(|served| served))
    }
}
