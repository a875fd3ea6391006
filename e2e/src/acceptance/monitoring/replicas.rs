//! The replicas of a release, which come and go, and the Prometheus that follows them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;

use super::access::Access;
use super::prometheus::{Prometheus, Target};
use crate::testenv::ports::Port;
use crate::testenv::product::{Options, Product};
use crate::testenv::release::programs::Program;
use crate::testenv::release::{NAMESPACE, PATIENCE, RELEASE, Release};
use crate::testenv::service::Service;
use crate::testenv::until::until_ok;
use crate::testenv::yaml;

/// The Lease that operators lead by.
const LEASE: &str = "trainer.kubeflow.org";

/// What runs, by the name that its Pod would have.
pub(super) struct Replicas<'a> {
    release: &'a Release,
    prometheus: &'a Prometheus,
    /// Where the webhook configurations expect a webhook.
    webhooks: Service,
    running: BTreeMap<&'static str, Replica>,
}

struct Replica {
    program: Program,
    product: Product,
    /// Where it answers reviews, if it is a webhook.
    reviews: Port,
}

impl<'a> Replicas<'a> {
    /// None yet.
    pub(super) async fn new(release: &'a Release, prometheus: &'a Prometheus) -> Result<Self> {
        let webhooks = Service::listen(&release.webhook_address()).await?;
        Ok(Self { release, prometheus, webhooks, running: BTreeMap::new() })
    }

    /// Starts one that is called so, and does not wait until it is ready.
    pub(super) async fn start(&mut self, program: Program, name: &'static str) -> Result<()> {
        let kubeconfig = program.kubeconfig(&self.release.cluster, NAMESPACE).await?;
        let reviews = Port::take()?;
        let mut config = program.configuration(&self.release.tools, RELEASE, NAMESPACE).await?;
        if let Some(port) = config.pointer_mut("/webhook/port") {
            *port = reviews.number().into();
        }
        let options = Options {
            config_yaml: yaml::stream(&[config]),
            env: [("HOSTNAME", name), ("POD_NAMESPACE", NAMESPACE)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            kubeconfig: Some(kubeconfig),
            ..Options::default()
        };
        let product = program.start(&self.release.cluster, options).await?;
        self.running.insert(name, Replica { program, product, reviews });
        self.follow()
    }

    /// Waits until all of them are ready.
    pub(super) async fn ready(&self) -> Result<()> {
        for replica in self.running.values() {
            replica.product.wait_ready().await?;
        }
        Ok(())
    }

    /// Kills one, as a crash of its node would: it is not asked, and its Pod is gone.
    pub(super) fn kill(&mut self, name: &str) -> Result<()> {
        let replica = self.running.remove(name).with_context(|| format!("no {name} runs"))?;
        replica.product.kill9();
        self.follow()
    }

    /// Stops all of them. Where they were is still scraped: nobody has said that they are to be gone.
    pub(super) fn stop(self) {
        drop(self.running);
    }

    /// Waits until one of the operators leads, and says which.
    pub(super) async fn leader(&self) -> Result<&'static str> {
        let leases: Api<Lease> = Api::namespaced(self.release.cluster.client().await?, NAMESPACE);
        until_ok("one of them leads", PATIENCE, || async {
            let lease = leases.get(LEASE).await?;
            let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
            let is_holder = |name: &&&str| holder.starts_with(&format!("{name}_"));
            let name = self.running.keys().find(is_holder);
            name.copied().with_context(|| format!("{holder:?} leads"))
        })
        .await
    }

    /// Waits until every one of them has been scraped.
    pub(super) async fn scraped(&self) -> Result<()> {
        until_ok("all are scraped", PATIENCE, || async {
            let up = self.prometheus.at("up == 1", None).await?;
            ensure!(
                up.len() == self.running.len(),
                "of {:?} there are {up:?}",
                self.running.keys()
            );
            Ok(())
        })
        .await
    }

    /// Sees that nobody but Prometheus reads metrics of any of them.
    pub(super) async fn are_closed_to_others(&self, access: &Access) -> Result<()> {
        for replica in self.running.values() {
            access.is_of_nobody_else(&replica.product.metrics_address()).await?;
        }
        Ok(())
    }

    fn follow(&self) -> Result<()> {
        let webhooks = self.running.values().filter(|it| it.program == Program::Webhook);
        self.webhooks.lead_to(webhooks.map(|webhook| webhook.reviews.address()).collect());
        let target = |(name, replica): (&&'static str, &Replica)| Target {
            address: replica.product.metrics_address(),
            labels: [("job", replica.program.name()), ("namespace", NAMESPACE), ("pod", *name)]
                .map(|(label, value)| (label, value.to_owned()))
                .into(),
        };
        self.prometheus.scrape(&self.running.iter().map(target).collect::<Vec<_>>())
    }
}
