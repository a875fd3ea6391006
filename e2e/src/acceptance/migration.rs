//! From Kubeflow Trainer to this operator and back, as docs/migration.md says, with jobs that run.
//!
//! Both are real: Trainer's controller manager runs beside the box as this operator does, each with what its own
//! release gives it. Jobs of every framework are handed over, in every state that a job can be in.

mod charts;
mod checks;
mod crew;
mod objects;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::guide::Guide;
use crate::testenv::chart::CHART;
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::fixtures::{COMPLETES_AFTER, FAILS, runtime, train_job};
use crate::testenv::ports::Port;
use crate::testenv::product::Product;
use crate::testenv::release::programs::Programs;
use crate::testenv::tools::Tools;
use crate::testenv::trainer::{self, Manifests};
use crate::testenv::until::until_ok;
use crate::testenv::{workspace, yaml};
use charts::{Charts, NAMESPACE, TRAINER};
use crew::{Crew, PATIENCE};

const GUIDE: &str = "docs/migration.md";
const DOWNGRADE: &str = "docs/upgrade.md";
const FLUX: &str = "examples/runtimes/flux-distributed.yaml";
const OPERATOR: &str = "trainjob-operator";
/// Two jobs of torchtune in each of its states that use GPUs, and what they are resumed to.
const NODES: usize = 8;

/// A job that is suspended, and older than its deadline is long.
const PATIENT: &str = "patient";
/// A job that completes, with a TTL that has not passed when the operator goes.
const KEPT: &str = "kept";
/// A job that failed, and whose JobSet somebody has deleted.
const BROKEN: &str = "broken";

/// How Kubeflow Trainer was installed, which is what the guide asks for.
struct Origin {
    what: &'static str,
    /// The heading of the way there.
    leave: &'static str,
    /// The heading of the way back.
    come_back: &'static str,
    /// Whether Helm has installed it, and JobSet with it.
    helm: Option<bool>,
}

const ORIGINS: [Origin; 3] = [
    Origin {
        what: "installed with Helm, with JobSet",
        leave: "With Helm, and JobSet came with it",
        come_back: "Where its release has become one of JobSet",
        helm: Some(true),
    },
    Origin {
        what: "installed with Helm, without JobSet",
        leave: "With Helm, and JobSet was installed by itself",
        come_back: "Where there is no release of it",
        helm: Some(false),
    },
    Origin {
        what: "installed with kubectl",
        leave: "With kubectl",
        come_back: "Where it was installed with kubectl",
        helm: None,
    },
];

/// Shows all of it; `tell` hears of each step.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let mut followed = BTreeSet::from(["Names".to_owned(), "Jobs that do not resume".to_owned()]);
    for origin in ORIGINS {
        let told = |step: &str| tell(&format!("Trainer {}: {step}", origin.what));
        // A cluster for each: a garbage collector takes half a minute to notice definitions that come anew.
        let options = Options { nodes: Some(NODES), ..Options::default() };
        let cluster = Cluster::start(options).await?;
        let journey = Journey::prepare(&cluster).await?;
        journey.travels(&origin, &told).await.context(origin.what)?;
        followed.extend(journey.guide.followed());
    }
    let missed = Guide::open(GUIDE, Path::new("."))?.but_for(&followed);
    ensure!(missed.is_empty(), "{GUIDE} has commands that nobody has followed: {missed:?}");
    Ok(())
}

struct Journey<'a> {
    cluster: &'a Cluster,
    tools: Tools,
    guide: Guide,
    charts: Charts,
    manifests: Manifests,
    /// The manifests, as a file.
    file: PathBuf,
    /// Where Trainer's admission server is asked.
    webhook: Port,
}

impl<'a> Journey<'a> {
    async fn prepare(cluster: &'a Cluster) -> Result<Self> {
        let tools = Tools::provide(cluster).await?;
        let folder = cluster.folder().join("migration");
        fs::create_dir(&folder)?;
        let mut guide = Guide::open(GUIDE, &folder)?;
        guide.provide(&tools.files())?;
        let webhook = Port::take()?;
        let charts = Charts::provide(cluster, &tools, &folder.join("charts"), &webhook).await?;
        let manifests = Manifests::provide(cluster, &webhook).await?;
        let file = folder.join("manifests.yaml");
        fs::write(&file, yaml::stream(&manifests.manager))?;
        let names = guide.text("Names", "sh")?;
        for (name, value) in tools.environment() {
            guide.set(name, value);
        }
        for (name, value) in [
            ("TRAINER_CHART", charts.trainer.as_path()),
            ("JOBSET_CHART", &charts.jobset),
            ("OPERATOR_CHART", &workspace::path(CHART)),
            ("TRAINER_VERSION", Path::new(trainer::VERSION)),
            ("JOBSET_VERSION", Path::new("0.12.0")),
            ("NAMESPACE", Path::new(NAMESPACE)),
        ] {
            ensure!(names.contains(&format!("{name}=")), "{GUIDE} does not say what {name} is");
            guide.set(name, value);
        }
        guide.set("MANIFESTS", &file);
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        cluster.apply_yaml(NAMESPACE, &namespace.to_string()).await?;
        Ok(Self { cluster, tools, guide, charts, manifests, file, webhook })
    }

    async fn travels(&self, origin: &Origin, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
        self.install_trainer(origin).await?;
        let trainer = self.trainer().await?;
        self.submit().await?;
        let mut there = Crew::assemble(self.cluster, "there", None).await?;
        tell("Trainer has jobs of every framework in every state");
        let jobset = self.jobset_controller().await?;
        there.remember().await?;
        self.leaves(origin, trainer).await?;
        ensure!(self.jobset_controller().await? == jobset, "JobSet's controller is another one");
        there.same().await?;
        there.finish().await?;
        tell("Trainer is gone, the jobs are the same, and some have ended that nobody saw");

        let (programs, webhook) = self.install_operator().await?;
        self.nothing_is_lost("5. Compare").await?;
        there.same().await?;
        there.ends().await?;
        there.resume().await?;
        there.go_on().await?;
        self.is_patient().await?;
        ensure!(self.owner().await? == OPERATOR, "the definitions are not the operator's");
        self.enforces_ttl().await?;
        self.breaks().await?;
        tell("the operator has taken over, and what was paused has resumed");

        let programs = match origin.helm {
            Some(true) => self.forgets_ttl(programs).await?,
            _ => programs,
        };
        let ttl = json!({"ttlSecondsAfterFinished": 3600});
        let mut back = Crew::assemble(self.cluster, "back", Some(&ttl)).await?;
        tell("the operator has jobs of every framework in every state");
        there.remember().await?;
        back.remember().await?;
        self.guide.follow("6. Write down what is there now").await?;
        let broken = self.guide.follow("Look for failed jobs without a JobSet").await?;
        ensure!(broken == format!("default/{BROKEN}\n"), "the guide warns of {broken:?}");
        self.guide.follow("7. Uninstall the operator").await?;
        drop((programs, webhook));
        back.finish().await?;
        self.guide.follow(origin.come_back).await?;
        let trainer = self.trainer().await?;
        self.nothing_is_lost("9. Compare again").await?;
        there.same().await?;
        back.same().await?;
        ensure!(self.jobset_controller().await? == jobset, "JobSet's controller is another one");
        back.ends().await?;
        back.resume().await?;
        self.frees(&back).await?;
        back.go_on().await?;
        self.knows_no_ttl().await?;
        self.tries_again().await?;
        tell("Trainer is back, and what was paused has resumed");

        self.ends(origin, trainer, tell).await
    }

    /// The operator once more, or what must not be done.
    async fn ends(
        &self,
        origin: &Origin,
        trainer: Product,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<()> {
        if origin.helm == Some(false) {
            self.leaves(origin, trainer).await?;
            let _programs = self.install_operator().await?;
            self.remembers_ttl().await?;
            tell("the operator is there again, and has what is left of the TTLs");
        } else {
            drop(trainer);
            self.remove_carelessly(origin).await?;
            tell("and a plain removal of Trainer has deleted them all, as the guide warns");
        }
        Ok(())
    }

    async fn install_trainer(&self, origin: &Origin) -> Result<()> {
        let chart = self.charts.trainer.display().to_string();
        // The box has certificates, and so does what the webhook configurations say of them.
        let certificates = "manager.config.certManagement.enable=false";
        let mut install = vec![
            "install",
            "--wait",
            TRAINER,
            &chart,
            "--namespace",
            NAMESPACE,
            "--set",
            certificates,
        ];
        if let Some(with_jobset) = origin.helm {
            if !with_jobset {
                install.extend(["--set", "jobset.install=false"]);
            }
            self.tools.helm(&install).await?;
        } else {
            let file = self.file.display().to_string();
            self.kubectl(&["apply", "--server-side", "-f", &file]).await?;
        }
        let names = DEFINITIONS.map(|name| format!("crd/{name}"));
        let wait = ["wait", "--for=condition=Established", "--timeout=60s"];
        let wait: Vec<&str> = wait.into_iter().chain(names.iter().map(String::as_str)).collect();
        self.kubectl(&wait).await?;
        Ok(())
    }

    /// Starts Trainer's manager with the configuration that its release has in the cluster.
    async fn trainer(&self) -> Result<Product> {
        let (name, file) = trainer::CONFIGURATION;
        let file = format!("jsonpath={{.data.{}}}", file.replace('.', "\\."));
        let get = ["get", "configmap", name, "--namespace", NAMESPACE, "-o", &file];
        let text = self.kubectl(&get).await?;
        let configuration = yaml::documents(&text)?.pop().context("an empty configuration")?;
        trainer::start(self.cluster, &self.webhook, configuration).await
    }

    /// What all jobs need, and one that waits longer than it may run.
    async fn submit(&self) -> Result<()> {
        let fails = json!({
            COMPLETES_AFTER: "100ms",
            "e2e.trainjob.dev/outcome": "fail",
        });
        let mut runtimes = self.manifests.runtimes.clone();
        runtimes.extend(yaml::documents(&workspace::read(FLUX)?)?);
        runtimes.push(runtime(FAILS, &fails, 1, None));
        let patient = json!({"activeDeadlineSeconds": 1, "suspend": true});
        runtimes.push(train_job(PATIENT, "torch-distributed", &patient));
        // A webhook that has just been registered may not be answered yet.
        until_ok("the runtimes are admitted", PATIENCE, || async {
            self.cluster.apply_yaml("default", &yaml::stream(&runtimes)).await
        })
        .await?;
        Ok(())
    }

    /// Steps 1 to 3: of Trainer there is nothing left but its definitions.
    async fn leaves(&self, origin: &Origin, trainer: Product) -> Result<()> {
        self.guide.follow("1. Write down what is there").await?;
        if origin.helm.is_some() {
            self.guide.follow("Keep the values of its release").await?;
        }
        self.guide.follow("2. Keep the definitions").await?;
        self.guide.follow(origin.leave).await?;
        drop(trainer);
        for object in &self.manifests.manager {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
            let (kind, name) = (text("/kind"), text("/metadata/name"));
            let (kind, name) = (kind.context("no kind")?, name.context("no name")?);
            if !matches!(kind, "Namespace" | "CustomResourceDefinition") {
                let left = self.is_there(&format!("{kind}/{name}")).await?;
                ensure!(!left, "Trainer's {kind} {name} is still there");
            }
        }
        Ok(())
    }

    /// Step 4, and the programs that the release would run.
    async fn install_operator(&self) -> Result<(Programs, Port)> {
        let webhook = self.write_values()?;
        self.guide.follow("4. Install the operator").await?;
        let programs = Programs::start(self.cluster, &self.tools, OPERATOR, NAMESPACE).await?;
        Ok((programs, webhook))
    }

    /// The values that the guide has, with the address at which the box finds the admission server.
    fn write_values(&self) -> Result<Port> {
        let text = self.guide.text("4. Install the operator", "yaml")?;
        let mut values = yaml::documents(&text)?.pop().context("no values")?;
        let port = Port::take()?;
        let webhook = json!({"host": "127.0.0.1", "port": port.number()});
        let config = values.pointer_mut("/manager/config").context("no configuration")?;
        let clock = config.pointer("/lifecycle/deadlineClock").and_then(Value::as_str);
        ensure!(clock == Some("LastResume"), "another clock: {config}");
        config.as_object_mut().context("no map")?.insert("webhook".to_owned(), webhook);
        let url = json!({"url": format!("https://127.0.0.1:{}", port.number())});
        values.as_object_mut().context("no map")?.insert("webhook".to_owned(), url);
        fs::write(self.guide.folder().join("operator-values.yaml"), yaml::stream(&[values]))?;
        Ok(port)
    }

    /// What the guide warns of.
    async fn remove_carelessly(&self, origin: &Origin) -> Result<()> {
        if origin.helm.is_some() {
            self.tools.helm(&["uninstall", TRAINER, "--namespace", NAMESPACE]).await?;
        } else {
            let file = self.file.display().to_string();
            self.kubectl(&["delete", "--wait", "-f", &file]).await?;
        }
        // Their JobSets and Pods follow; a garbage collector that has just lost the kind may take its time.
        until_ok("the definitions are gone, and with them every TrainJob", PATIENCE, || async {
            let left = self.kubectl(&["get", "crd", "-o", "name"]).await?;
            ensure!(!left.contains("trainer.kubeflow.org"), "there are {left}");
            Ok(())
        })
        .await?;
        Ok(())
    }

    async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.tools.kubectl(arguments, None).await
    }
}

const DEFINITIONS: [&str; 3] = [
    "clustertrainingruntimes.trainer.kubeflow.org",
    "trainingruntimes.trainer.kubeflow.org",
    "trainjobs.trainer.kubeflow.org",
];
