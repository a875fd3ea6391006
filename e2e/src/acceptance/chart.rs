//! The chart, from the first rendering to the last trace of a release.
//!
//! Its Pods run on fake nodes, as far as Pod Security "restricted" lets them. Beside them run the real
//! programs, with the accounts and the configuration of the chart, and the webhook configurations point at
//! the real webhook by its URL.

mod one_file;
mod upgrade;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::runtimes_jobs;
use super::switches::{FOREIGN, MISTAKES, SWITCHES};
use crate::testenv::chart::{CHART, install_crds};
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::fixtures::train_job;
use crate::testenv::ports::Port;
use crate::testenv::release::as_flag;
use crate::testenv::release::programs::Programs;
use crate::testenv::tools::Tools;
use crate::testenv::until::until_ok;
use crate::testenv::{workspace, yaml};

/// The release, which is called as the chart is.
const RELEASE: &str = "trainjob-operator";
const NAMESPACE: &str = "kubeflow-system";
/// How many runtimes there are, if all are enabled that need nothing else.
const RUNTIMES: usize = 8;
/// The values of Kubeflow Trainer's chart, as its users have them.
const TRAINERS_VALUES: &str = "e2e/trainer-2.3-values.yaml";
/// The images of Deployments, a line each.
const IMAGES: &str =
    "jsonpath={range .items[*]}{.spec.template.spec.containers[*].image}{\"\\n\"}{end}";
/// The job that goes through everything that happens to the release.
const JOB: &str = "acceptance";
/// How long the slowest step may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// What etcd takes of one object is 1.5 MiB; a release is a Secret.
const LARGEST_RELEASE: usize = 1024 * 1024;

/// Shows all of it; `tell` hears of each step.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let options = Options { report: |_, _| {}, ..Options::default() };
    let cluster = Cluster::start(options).await?;
    tell("the control plane is there");
    let trial = Trial::prepare(&cluster).await?;
    trial.renders(tell).await?;
    trial.lives(tell).await?;
    trial.remove_what_is_left().await?;
    one_file::run(&trial, tell).await?;
    upgrade::run(&trial, tell).await
}

struct Trial<'a> {
    cluster: &'a Cluster,
    tools: Tools,
    chart: String,
    webhook: Port,
}

impl<'a> Trial<'a> {
    async fn prepare(cluster: &'a Cluster) -> Result<Self> {
        let (tools, webhook) = (Tools::provide(cluster).await?, Port::take()?);
        let chart = workspace::path(CHART).display().to_string();
        let mut objects = vec![json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": NAMESPACE,
                "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
            },
        })];
        objects.extend(FOREIGN.map(foreign_kind));
        cluster.apply_yaml(NAMESPACE, &yaml::stream(&objects)).await?;
        Ok(Self { cluster, tools, chart, webhook })
    }

    /// Lint, every switch, every mistake.
    async fn renders(&self, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
        self.tools.helm_offline(&["lint", "--strict", &self.chart]).await?;
        tell("helm lint --strict has nothing to say");
        // The runtimes are judged by the schema they will have.
        install_crds(&self.cluster.client().await?).await?;
        for (what, sets) in SWITCHES {
            self.accepted(sets).await.with_context(|| format!("{what}: {sets:?}"))?;
        }
        tell(&format!("{} ways to render it, all accepted by the API server", SWITCHES.len()));
        for (mistake, said) in MISTAKES {
            let refusal = self.rendered(&[mistake]).await.err();
            let refusal = refusal.with_context(|| format!("{mistake} was let through"))?;
            ensure!(format!("{refusal:#}").contains(said), "{mistake}: {refusal:#}");
        }
        // Which a cluster without JobSet has.
        let api = ["--set", "jobset.install=true", "--api-versions", "v1/Pod"];
        let arguments = [&["template", RELEASE, &self.chart][..], &api].concat();
        let refusal = self.tools.helm_offline(&arguments).await.err();
        let refusal = format!("{:#}", refusal.context("JobSet need not be there")?);
        ensure!(refusal.contains("kubectl apply --server-side -f https://"), "{refusal}");
        // Which a cluster without runtimes has: Jobs create them.
        let jobs = ["--set", "networkPolicy.enabled=true,runtimes.defaultEnabled=true"];
        let policies = ["--show-only", "templates/network-policies.yaml"];
        let known = ["--api-versions", "v1/Pod"];
        let arguments = [&["template", RELEASE, &self.chart][..], &jobs, &policies, &known];
        let policies = self.tools.helm_offline(&arguments.concat()).await?;
        ensure!(policies.contains("component: runtimes"), "none is about the Jobs: {policies}");
        tell(&format!("{} mistakes, all refused by name", MISTAKES.len() + 1));
        // An installation brings them itself.
        let files = workspace::path(&format!("{CHART}/files/crds")).display().to_string();
        self.tools.kubectl(&["delete", "--wait", "-f", &files], None).await?;
        Ok(())
    }

    async fn rendered(&self, sets: &[&str]) -> Result<String> {
        let mut arguments = vec!["template", RELEASE, &self.chart, "--namespace", NAMESPACE];
        arguments.extend(sets.iter().flat_map(|set| [as_flag(set), set]));
        self.tools.helm_offline(&arguments).await
    }

    async fn accepted(&self, sets: &[&str]) -> Result<()> {
        let objects = self.rendered(sets).await?;
        let mut arguments = vec!["apply", "--dry-run=server", "--validate=strict", "-f", "-"];
        // The definitions are there already, for the runtimes' sake.
        arguments.extend(["--server-side", "--force-conflicts"]);
        self.tools.kubectl(&arguments, Some(objects)).await?;
        Ok(())
    }

    /// A release from its installation to its end, with a job in it.
    async fn lives(&self, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
        let wanted = "runtimes.defaultEnabled=true";
        let (_, created) = self.installs_runtimes(&[wanted]).await?;
        tell(
            "installed in one step, with all runtimes; every Pod is ready, under Pod Security restricted",
        );
        self.install("upgrade", &[wanted]).await?;
        ensure!(self.runtimes().await? == created, "an upgrade has replaced the runtimes");
        let manifest = ["get", "manifest", RELEASE, "--namespace", NAMESPACE];
        let manifest = self.tools.helm(&manifest).await?;
        let runtimes = manifest.lines().filter(|it| *it == "kind: ClusterTrainingRuntime").count();
        ensure!(runtimes == RUNTIMES, "the upgrade has taken {runtimes} runtimes into the release");
        tell("upgraded; the runtimes are the same, and objects of the release");

        let programs = Programs::start(self.cluster, &self.tools, RELEASE, NAMESPACE).await?;
        until_ok("a job is admitted", PATIENCE, || async {
            self.cluster.apply_yaml("default", &job("torch-distributed").to_string()).await
        })
        .await?;
        let running = until_ok("its JobSet is there", PATIENCE, || self.uids()).await?;
        tell(
            "operator and webhook run with the chart's accounts, RBAC, webhook configurations and configuration",
        );

        for sets in [
            &[wanted, "commonLabels.revision=third"][..],
            &["runtimes.torchDistributed.enabled=true"],
        ] {
            self.install("upgrade", sets).await?;
            ensure!(self.uids().await? == running, "an upgrade has replaced the job or its JobSet");
        }
        // The webhook configurations still trust the certificate that the webhook has made itself.
        let create = ["create", "--dry-run=server", "-f", "-"];
        let refusal = self.tools.kubectl(&create, Some(job("missing").to_string())).await.err();
        let refusal = refusal.context("a job without a runtime was admitted")?;
        ensure!(format!("{refusal:#}").contains("denied the request"), "{refusal:#}");
        tell(
            "upgraded twice, with the job running: it and its JobSet are the same, and admission answers",
        );
        self.releases_are_small().await?;

        drop(programs);
        self.tools.helm(&["uninstall", RELEASE, "--namespace", NAMESPACE, "--wait"]).await?;
        ensure!(self.uids().await? == running, "the job has gone with the release");
        ensure!(self.names("clustertrainingruntimes").await?.is_empty(), "runtimes have stayed");
        self.tools.kubectl(&["delete", "trainjob", JOB, "--timeout=60s"], None).await?;
        self.remove_what_is_left().await?;
        tell(
            "uninstalled: jobs and definitions have stayed, and nothing stands in the way of removing them",
        );
        self.goes_without_an_upgrade(wanted).await?;
        tell(
            "installed in one step with the values of Kubeflow Trainer's chart, and uninstalled without an upgrade: the runtimes have gone",
        );
        Ok(())
    }

    /// Removes what an uninstalled release has left: its namespace and its definitions.
    async fn remove_what_is_left(&self) -> Result<()> {
        self.tools.kubectl(&["delete", "namespace", NAMESPACE, "--timeout=60s"], None).await?;
        for plural in ["trainjobs", "trainingruntimes", "clustertrainingruntimes"] {
            let name = format!("{plural}.trainer.kubeflow.org");
            self.tools.kubectl(&["delete", "crd", &name, "--timeout=60s"], None).await?;
        }
        Ok(())
    }

    /// Installs the release where the kind of runtimes is not known yet. What Helm has said, and names and UIDs of the runtimes
    /// that are there then.
    async fn installs_runtimes(&self, sets: &[&str]) -> Result<(String, String)> {
        let place = (RELEASE, NAMESPACE);
        let (said, created) = tokio::join!(
            self.install("install", sets),
            runtimes_jobs::play(self.cluster, &self.tools, place, "create")
        );
        created?;
        let said = said?;
        ensure!(said.contains("A Job has created the runtimes: deepspeed-distributed"), "{said}");
        let runtimes = self.runtimes().await?;
        ensure!(runtimes.lines().count() == RUNTIMES, "runtimes: {runtimes}");
        let left = ["get", "job,sa,cm", "--namespace", NAMESPACE, "-o", "name"];
        let left = self.tools.kubectl(&left, None).await?;
        ensure!(!left.contains("-runtimes"), "the Job or its account has stayed: {left}");
        Ok((said, runtimes))
    }

    /// Somebody has a values file of Kubeflow Trainer's chart, and one runtime is somebody else's when the release goes.
    async fn goes_without_an_upgrade(&self, wanted: &str) -> Result<()> {
        self.tools.kubectl(&["create", "namespace", NAMESPACE], None).await?;
        let values = workspace::path(TRAINERS_VALUES).display().to_string();
        let (said, _) = self.installs_runtimes(&[wanted, &values]).await?;
        for without_effect in [
            "jobset.install",
            "jobset.fullnameOverride",
            "image.repository",
            "runtimes.installer",
            "dataCache.lws",
        ] {
            ensure!(said.contains(&format!("  {without_effect}: ")), "{without_effect}: {said}");
        }
        let image = ["get", "deployments", "--namespace", NAMESPACE, "-o", IMAGES];
        let images = self.tools.kubectl(&image, None).await?;
        ensure!(images.lines().all(|it| it.starts_with("ghcr.io/trainjob-operator/")), "{images}");
        let foreign = "clustertrainingruntime/torch-distributed";
        let owner = "meta.helm.sh/release-name=other";
        self.tools.kubectl(&["annotate", "--overwrite", foreign, owner], None).await?;
        let uninstall = ["uninstall", RELEASE, "--namespace", NAMESPACE, "--wait"];
        let (uninstalled, removed) = tokio::join!(
            self.tools.helm(&uninstall),
            runtimes_jobs::play(self.cluster, &self.tools, (RELEASE, NAMESPACE), "remove")
        );
        removed?;
        uninstalled?;
        let left = self.names("clustertrainingruntimes").await?;
        ensure!(
            left.len() == 1 && left.iter().all(|it| it.ends_with("/torch-distributed")),
            "{left:?}"
        );
        Ok(())
    }

    /// Names and UIDs of the runtimes.
    async fn runtimes(&self) -> Result<String> {
        let columns = "jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{\"\\n\"}{end}";
        self.tools.kubectl(&["get", "clustertrainingruntimes", "-o", columns], None).await
    }

    /// `helm install` or `helm upgrade`, until its Pods are ready; gives what Helm says.
    async fn install(&self, how: &str, sets: &[&str]) -> Result<String> {
        self.install_chart(how, &self.chart, sets).await
    }

    /// The same with this chart. What begins with `--` is a flag, and no value.
    async fn install_chart(&self, how: &str, chart: &str, sets: &[&str]) -> Result<String> {
        let address = self.address();
        let mut arguments = vec![how, RELEASE, chart, "--namespace", NAMESPACE];
        arguments.extend(["--wait", "--timeout=3m"]);
        let (flags, sets): (Vec<_>, Vec<_>) = sets.iter().partition(|it| it.starts_with("--"));
        arguments.extend(flags);
        let sets = address.iter().map(String::as_str).chain(sets);
        arguments.extend(sets.flat_map(|set| [as_flag(set), set]));
        self.tools.helm(&arguments).await
    }

    /// The values by which the API server reaches a webhook that runs beside it.
    fn address(&self) -> [String; 3] {
        let (host, port) = ("127.0.0.1", self.webhook.number());
        [
            format!("webhook.url=https://{host}:{port}"),
            format!("manager.config.webhook.host={host}"),
            format!("manager.config.webhook.port={port}"),
        ]
    }

    async fn names(&self, resource: &str) -> Result<Vec<String>> {
        let text = self.tools.kubectl(&["get", resource, "-o", "name"], None).await?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// The UIDs of the job and of its JobSet.
    async fn uids(&self) -> Result<String> {
        let (job, jobset) = (format!("trainjob/{JOB}"), format!("jobset/{JOB}"));
        let uids = "jsonpath={range .items[*]}{.metadata.uid}{\"\\n\"}{end}";
        self.tools.kubectl(&["get", &job, &jobset, "-o", uids], None).await
    }

    async fn releases_are_small(&self) -> Result<()> {
        let sizes = "jsonpath={range .items[*]}{.data.release}{\"\\n\"}{end}";
        let get = ["get", "secrets", "--namespace", NAMESPACE, "-l", "owner=helm", "-o", sizes];
        let releases = self.tools.kubectl(&get, None).await?;
        let largest = releases.lines().map(str::len).max().unwrap_or_default();
        if largest == 0 || largest >= LARGEST_RELEASE {
            bail!(
                "the largest release has {largest} bytes, expected some, and less than {LARGEST_RELEASE}"
            );
        }
        Ok(())
    }
}

fn foreign_kind((group, kind, plural): (&str, &str, &str)) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

fn job(runtime: &str) -> Value {
    let trainer = json!({"numNodes": 1, "command": ["sleep", "600"]});
    train_job(JOB, runtime, &json!({"ttlSecondsAfterFinished": 3600, "trainer": trainer}))
}
