//! Where a cluster is, and everything that its parts have to know of each other.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::testenv::binaries::Binaries;
use crate::testenv::credentials::Credentials;
use crate::testenv::modules::Modules;
use crate::testenv::options::Options;
use crate::testenv::ports::Port;

/// The ports of a cluster.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) etcd: Port,
    pub(crate) etcd_peer: Port,
    pub(crate) apiserver: Port,
    pub(crate) controller_manager: Port,
    pub(crate) scheduler: Port,
    pub(crate) jobset_webhook: Port,
    pub(crate) jobset_health: Port,
    pub(crate) jobset_metrics: Port,
    pub(crate) kwok: Port,
}

/// Where a cluster is, and everything its parts have to know of each other.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) folder: PathBuf,
    pub(crate) binaries: Binaries,
    modules: Option<Modules>,
    pub(crate) credentials: Credentials,
    pub(crate) ports: Ports,
    pub(crate) options: Options,
}

impl Site {
    pub(crate) fn new(
        folder: &Path,
        binaries: Binaries,
        modules: Option<Modules>,
        options: Options,
    ) -> Result<Self> {
        let ports = Ports {
            etcd: Port::take()?,
            etcd_peer: Port::take()?,
            apiserver: Port::take()?,
            controller_manager: Port::take()?,
            scheduler: Port::take()?,
            jobset_webhook: Port::take()?,
            jobset_health: Port::take()?,
            jobset_metrics: Port::take()?,
            kwok: Port::take()?,
        };
        let credentials = Credentials::create(folder, ports.apiserver.number())?;
        let folder = folder.to_owned();
        Ok(Self { folder, binaries, modules, credentials, ports, options })
    }

    /// The files of JobSet and KWOK.
    pub(crate) fn modules(&self) -> Result<&Modules> {
        self.modules.as_ref().context("neither JobSet nor KWOK was asked for")
    }

    /// One of its files.
    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}
