//! A box in which engines are disturbed, and what they may do there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use super::objects::{KINDS, Kind, definitions};
use crate::testenv::apply::{apply, established};
use crate::testenv::chart::install_retention_crds;
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::retention::{NAMESPACE, SERVICE_ACCOUNT, allow_retention_of};

/// Group and plural of a kind that engines may delete and that a case may define.
const TO_COME: (&str, &str) = ("visits.e2e.trainjob.dev", "visits");

/// Whatever has a box.
pub type House = dyn AsRef<Cluster> + Send + Sync;

/// A box without an engine.
pub struct Ground {
    house: Arc<House>,
    kinds: &'static [Kind],
    credentials: PathBuf,
}

impl Ground {
    /// Starts a box in which nothing acts, with all of [`KINDS`].
    pub async fn start() -> Result<Self> {
        let cluster = Cluster::start(Options::bare()).await?;
        let client = cluster.client().await?;
        let defined = apply(&client, "default", definitions()).await?;
        established(&client, &defined).await?;
        Self::within(Arc::new(cluster), &KINDS).await
    }

    /// A box that is there, with these kinds.
    pub async fn within(house: Arc<House>, kinds: &'static [Kind]) -> Result<Self> {
        let cluster = (*house).as_ref();
        install_retention_crds(&cluster.client().await?).await?;
        let mut allowed: Vec<_> =
            kinds.iter().map(|(group, .., plural)| (*group, *plural)).collect();
        allowed.push(TO_COME);
        allow_retention_of(cluster, &allowed).await?;
        let credentials = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        Ok(Self { house, kinds, credentials })
    }

    /// The box.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        (*self.house).as_ref()
    }

    /// The kinds that policies are about in it.
    pub(super) const fn kinds(&self) -> &'static [Kind] {
        self.kinds
    }

    /// What an engine proves with who it is.
    pub(super) fn credentials(&self) -> &Path {
        &self.credentials
    }
}
