//! The servers beside the work: health, and metrics.

use std::{io, sync::Arc};

use kube::Client;
use prometheus::Registry;
use rustls::server::ResolvesServerCert;
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};

use crate::{
    config::{MetricsServer, Served, Tls},
    exposition::Exposition,
    health::{Health, Readiness},
    metrics_auth::MetricsAuth,
    pages::{self, Pages, Site},
    tls,
};

/// The servers of one process.
#[derive(Debug, Default)]
pub struct Servers(JoinSet<io::Result<()>>);

/// What is served beside health, and what that takes.
pub struct Shown<'a> {
    /// The metrics.
    pub metrics: &'a Registry,
    /// The certificates, where that is over TLS.
    pub certificates: Arc<dyn ResolvesServerCert>,
    /// Who is asked who may see them.
    pub client: &'a Client,
}

impl Servers {
    /// Serves health and metrics, each where the configuration says, until `until` is true.
    ///
    /// # Errors
    ///
    /// If one of them cannot listen.
    pub async fn start(
        served: Served<'_>,
        readiness: &Readiness,
        shown: Shown<'_>,
        until: &watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let mut servers = JoinSet::new();
        if let Some(address) = served.health {
            let (endpoints, readiness) = (served.endpoints.clone(), readiness.clone());
            let site = Site::open(Arc::new(Health { endpoints, readiness }));
            servers.spawn(pages::serve(pages::listen(address).await?, site, until.clone()));
        }
        if let Some(metrics) = served.metrics {
            let site = site(metrics, served.tls, shown)?;
            let listener = pages::listen(metrics.address).await?;
            servers.spawn(pages::serve(listener, site, until.clone()));
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

fn site(server: MetricsServer, tls: &Tls, shown: Shown<'_>) -> io::Result<Site> {
    let pages: Arc<dyn Pages> = Arc::new(Exposition(shown.metrics.clone()));
    if !server.tls {
        return Ok(Site::open(pages));
    }
    // Pages are not served over HTTP/2.
    let tls = Tls { protocols: vec!["http/1.1"], ..tls.clone() };
    let acceptor = tls::acceptor(&tls, shown.certificates).map_err(io::Error::other)?;
    let auth = server.auth.then(|| MetricsAuth::new(shown.client.clone()));
    Ok(Site::over_tls(pages, acceptor, auth))
}
