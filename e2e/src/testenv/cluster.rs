//! A real control plane in a folder: what it consists of, how it starts and how it stops.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use kube::Client;
use rustix::process::Signal;

use crate::testenv::binaries::{Binaries, Program, Versions};
use crate::testenv::chart::install_crds;
use crate::testenv::component::Component;
use crate::testenv::credentials::{Credentials, Identity, client};
use crate::testenv::guard::Guard;
use crate::testenv::modules::Modules;
use crate::testenv::process::Process;
use crate::testenv::site::Site;
use crate::testenv::{jobset, kwok, nodes};

pub use crate::testenv::options::Options;

/// A cluster.
///
/// When it is dropped, or its owner dies in whatever way, all its processes end and its folder is
/// removed. It is bound to no async runtime, so that a `static` can share it between tests, each of
/// which makes its own [`Cluster::client`].
#[derive(Debug)]
pub struct Cluster {
    // Dropped before the guard, so that a drop reaps what the guard has ended.
    running: Mutex<BTreeMap<Component, Arc<Process>>>,
    site: Site,
    guard: Mutex<Guard>,
    created: Instant,
}

impl Cluster {
    /// Starts a cluster and waits until all of it is ready.
    pub async fn start(options: Options) -> Result<Self> {
        let cluster = Self::prepare(options).await?;
        cluster.boot().await?;
        Ok(cluster)
    }

    /// Makes everything up to the point of starting: the kubeconfigs are valid, but nothing listens
    /// yet. [`Cluster::boot`] is the rest.
    pub async fn prepare(mut options: Options) -> Result<Self> {
        options.versions = options.versions.or_as_asked()?;
        // Whoever uses kube in this process may have enabled a second provider; say which.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (programs, modules) = (options.programs(), options.jobset || options.nodes.is_some());
        let versions = options.versions;
        let (binaries, modules) = tokio::task::spawn_blocking(move || {
            let binaries = Binaries::provide_versions(&programs, versions)?;
            anyhow::Ok((binaries, modules.then(|| Modules::provide(versions)).transpose()?))
        })
        .await??;
        let created = Instant::now();
        let guard = Guard::new()?;
        let site = Site::new(guard.folder(), binaries, modules, options)?;
        let running = Mutex::default();
        Ok(Self { running, site, guard: Mutex::new(guard), created })
    }

    /// Starts everything the options ask for and waits until it is ready.
    pub async fn boot(&self) -> Result<()> {
        self.boot_server().await?;
        self.boot_others().await
    }

    /// Starts the API server with its etcd, and installs the definitions: nothing acts on what is stored yet.
    pub(crate) async fn boot_server(&self) -> Result<()> {
        self.run(Component::Etcd).await?;
        self.run(Component::ApiServer).await?;
        self.install_definitions().await
    }

    /// Starts everything else.
    pub(crate) async fn boot_others(&self) -> Result<()> {
        // All at once: each of them mostly waits.
        tokio::try_join!(self.boot_controllers(), self.boot_jobset(), self.boot_nodes())?;
        Ok(())
    }

    /// Before the controllers: a garbage collector that misses a kind looks for new ones only 30 s later.
    async fn install_definitions(&self) -> Result<()> {
        if self.site.options.jobset {
            jobset::install(&self.client().await?, &self.site).await?;
        }
        if self.site.options.crds {
            install_crds(&self.client().await?).await?;
            self.report("custom resource definitions are installed");
        }
        Ok(())
    }

    async fn boot_controllers(&self) -> Result<()> {
        if self.site.options.controllers {
            tokio::try_join!(
                self.run(Component::ControllerManager),
                self.run(Component::Scheduler)
            )?;
        }
        Ok(())
    }

    async fn boot_jobset(&self) -> Result<()> {
        if self.site.options.jobset {
            self.run(Component::JobSet).await?;
        }
        Ok(())
    }

    async fn boot_nodes(&self) -> Result<()> {
        if let Some(count) = self.site.options.nodes {
            kwok::configure(&self.site)?;
            self.run(Component::Kwok).await?;
            self.add_nodes(count).await?;
        }
        Ok(())
    }

    /// Starts one part, on the port and with the data it had before, and waits until it is ready.
    pub async fn run(&self, component: Component) -> Result<()> {
        let process = {
            let mut running = self.running();
            if running.get(&component).is_some_and(|process| process.ended().is_none()) {
                bail!("{} runs already", component.name());
            }
            let program = self.site.binaries.path(component.program());
            let arguments = self.site.arguments(component);
            let environment = self.site.environment();
            let process = self.spawn(component.name(), program, &arguments, &environment)?;
            let process = Arc::new(process);
            running.insert(component, Arc::clone(&process));
            process
        };
        let client = self.client().await?;
        // On the heap, or every future that starts a cluster would be very large.
        Box::pin(process.ready_when(self.site.ready(component, &client))).await?;
        self.report(&format!("{} is ready", component.name()));
        Ok(())
    }

    /// Kills one part at once. Its data stays.
    pub fn stop(&self, component: Component) {
        if let Some(process) = self.running().remove(&component) {
            process.kill();
        }
    }

    /// Makes one part hang: it keeps its connections and answers nothing.
    pub fn pause(&self, component: Component) -> Result<()> {
        self.process(component)?.pause()
    }

    /// Lets a paused part go on.
    pub fn resume(&self, component: Component) -> Result<()> {
        self.process(component)?.signal(Signal::CONT)
    }

    /// The process of one part.
    pub fn process(&self, component: Component) -> Result<Arc<Process>> {
        let process = self.running().get(&component).cloned();
        process.with_context(|| format!("{} does not run", component.name()))
    }

    /// Kills the API server at once; etcd goes on.
    pub fn stop_apiserver(&self) {
        self.stop(Component::ApiServer);
    }

    /// Starts the API server again, on the same port, and waits until it is ready.
    pub async fn start_apiserver(&self) -> Result<()> {
        self.run(Component::ApiServer).await
    }

    /// Starts another program that belongs to the cluster and ends with it. Its working directory
    /// is the cluster's folder, its output goes to `NAME.log` there.
    pub fn spawn(
        &self,
        name: &str,
        program: &Path,
        arguments: &[String],
        environment: &[(String, String)],
    ) -> Result<Process> {
        let guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        guard.spawn(name, program, arguments, environment)
    }

    /// Adds `count` fake nodes and waits until Pods can be scheduled on them.
    pub async fn add_nodes(&self, count: usize) -> Result<()> {
        let client = self.client().await?;
        nodes::add(&client, count).await?;
        nodes::ready(&client, self.site.options.controllers).await?;
        self.report(&format!("{count} nodes are ready"));
        Ok(())
    }

    /// A client with all permissions. It belongs to the async runtime it is made in.
    pub async fn client(&self) -> Result<Client> {
        client(&self.kubeconfig()).await
    }

    /// The kubeconfig with all permissions.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.site.credentials.kubeconfig(Identity::Admin)
    }

    /// The folder of the cluster, with all logs and credentials.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.site.folder
    }

    /// The folder with `tls.crt` and `tls.key` for a server on 127.0.0.1.
    #[must_use]
    pub fn serving_certificate(&self) -> &Path {
        self.site.credentials.folder()
    }

    /// The PEM of the authority that signed the serving certificate, for the `caBundle` of a
    /// webhook.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.site.credentials.authority()
    }

    /// The file of kubectl.
    #[must_use]
    pub fn kubectl(&self) -> &Path {
        self.site.binaries.path(Program::Kubectl)
    }

    /// The file of one of the programs that the cluster consists of.
    pub(crate) fn program(&self, program: Program) -> &Path {
        self.site.binaries.path(program)
    }

    /// Which releases it is made of.
    #[must_use]
    pub const fn versions(&self) -> Versions {
        self.site.options.versions
    }

    /// The address of the API server.
    #[must_use]
    pub fn address(&self) -> String {
        self.site.ports.apiserver.address()
    }

    /// The address of etcd.
    pub(crate) fn etcd_address(&self) -> String {
        self.site.ports.etcd.address()
    }

    /// The command line of one of its parts.
    pub(crate) fn arguments(&self, component: Component) -> Vec<String> {
        self.site.arguments(component)
    }

    pub(crate) const fn has_controllers(&self) -> bool {
        self.site.options.controllers
    }

    pub(crate) const fn credentials(&self) -> &Credentials {
        &self.site.credentials
    }

    fn report(&self, step: &str) {
        (self.site.options.report)(self.created.elapsed(), step);
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<Component, Arc<Process>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsRef<Self> for Cluster {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The guard ends them in order and with a chance to finish; dropping a process kills it.
        self.guard.get_mut().unwrap_or_else(PoisonError::into_inner).stop();
    }
}
