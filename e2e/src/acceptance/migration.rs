//! From Kubeflow Trainer to this operator and back, as docs/migration.md says, with jobs that run.
//!
//! Kubeflow Trainer itself is not here. A chart of the same shape stands in for its chart, and in the place of
//! its controller works this operator, with a definition that knows no TTL: what it leaves
//! behind are the same objects by the same names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::guide::Guide;
use crate::cluster::{Cluster, Options};
use crate::fixtures::train_job;
use crate::operator::{Operator, OperatorOptions};
use crate::ports::Port;
use crate::product::{CHART, file_of_chart};
use crate::release::programs::Programs;
use crate::tools::Tools;
use crate::until::until_ok;
use crate::workspace::{self, copy_folder};
use crate::yaml;

const GUIDE: &str = "docs/migration.md";
const DOWNGRADE: &str = "docs/upgrade.md";
const STAND_INS: &str = "e2e/stand-in";
const NAMESPACE: &str = "kubeflow-system";
const TRAINER: &str = "kubeflow-trainer";
const OPERATOR: &str = "trainjob-operator";
/// How long the slowest step may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Where a definition has the rules of the deadline.
const DEADLINE: &str = "jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.activeDeadlineSeconds}";

/// A job that runs all the time.
const RUNNING: &str = "running";
/// A job that is suspended, and older than its deadline is long.
const SUSPENDED: &str = "suspended";
/// A job that has completed.
const FINISHED: &str = "finished";
/// A job with a TTL that has not passed when the operator goes.
const KEPT: &str = "kept";

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
///
/// # Errors
///
/// Something is not as it should be, or the guide has a command that was not run.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let mut followed = BTreeSet::from(["Names".to_owned()]);
    for origin in ORIGINS {
        let told = |step: &str| tell(&format!("Trainer {}: {step}", origin.what));
        // A cluster for each: a garbage collector takes half a minute to notice definitions that come anew.
        let options = Options { report: |_, _| {}, ..Options::default() };
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
    trainer_chart: PathBuf,
    manifests: PathBuf,
}

impl<'a> Journey<'a> {
    async fn prepare(cluster: &'a Cluster) -> Result<Self> {
        let tools = Tools::provide(cluster).await?;
        let folder = cluster.folder().join("migration");
        fs::create_dir(&folder)?;
        let mut guide = Guide::open(GUIDE, &folder)?;
        guide.provide(&tools.files())?;
        let charts = folder.join("charts");
        let (trainer_chart, jobset_chart) = (charts.join(TRAINER), charts.join("jobset"));
        copy_folder(&workspace::path(STAND_INS), &charts)?;
        copy_folder(&jobset_chart, &trainer_chart.join("charts/jobset"))?;
        let manifests = folder.join("manifests.yaml");
        let names = guide.text("Names", "sh")?;
        for (name, value) in tools.environment() {
            guide.set(name, value);
        }
        for (name, value) in [
            ("TRAINER_CHART", trainer_chart.as_path()),
            ("JOBSET_CHART", &jobset_chart),
            ("OPERATOR_CHART", &workspace::path(CHART)),
            ("TRAINER_VERSION", Path::new("2.3.0")),
            ("JOBSET_VERSION", Path::new("0.12.0")),
            ("NAMESPACE", Path::new(NAMESPACE)),
        ] {
            ensure!(names.contains(&format!("{name}=")), "{GUIDE} does not say what {name} is");
            guide.set(name, value);
        }
        guide.set("MANIFESTS", &manifests);
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        cluster.apply_yaml(NAMESPACE, &namespace.to_string()).await?;
        fs::write(folder.join("stand-in.yaml"), trainers_definitions()?)?;
        Ok(Self { cluster, tools, guide, trainer_chart, manifests })
    }

    async fn travels(&self, origin: &Origin, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
        self.install_trainer(origin).await?;
        let trainer = self.trainer().await?;
        self.submit().await?;
        let before =
            until_ok("the jobs are where they are to be", PATIENCE, || self.uids()).await?;
        let jobset = self.jobset_controller().await?;

        self.guide.follow("1. Write down what is there").await?;
        if origin.helm.is_some() {
            self.guide.follow("Keep the values of its release").await?;
        }
        self.guide.follow("2. Keep the definitions").await?;
        self.guide.follow(origin.leave).await?;
        drop(trainer);
        ensure!(
            !self.is_there("deployment/kubeflow-trainer-controller-manager").await?,
            "Trainer is still there"
        );
        ensure!(self.jobset_controller().await? == jobset, "JobSet's controller is another one");
        self.same(&before).await?;
        tell("Trainer is gone, the jobs are the same");

        let webhook = self.write_values()?;
        self.guide.follow("4. Install the operator").await?;
        let programs = Programs::start(self.cluster, &self.tools, OPERATOR, NAMESPACE).await?;
        self.enforces_ttl().await?;
        let lost = self.guide.follow("5. Compare").await?;
        ensure!(lost.is_empty(), "the guide finds lost: {lost}");
        self.same(&before).await?;
        ensure!(self.owner().await? == OPERATOR, "the definitions are not the operator's");
        tell("the operator has taken over, the jobs are the same, and it deletes what is due");

        let programs = match origin.helm {
            Some(true) => self.forgets_ttl(programs).await?,
            _ => programs,
        };
        self.guide.follow("6. Write down what is there now").await?;
        self.guide.follow("7. Uninstall the operator").await?;
        drop((programs, webhook));
        self.same(&before).await?;
        self.guide.follow(origin.come_back).await?;
        let trainer = self.trainer().await?;
        let lost = self.guide.follow("9. Compare again").await?;
        ensure!(lost.is_empty(), "the guide finds lost: {lost}");
        self.same(&before).await?;
        ensure!(self.jobset_controller().await? == jobset, "JobSet's controller is another one");
        ensure!(
            self.is_there("deployment/kubeflow-trainer-controller-manager").await?,
            "no Trainer"
        );
        // Whoever brings a definition brings all of its fields.
        ensure!(self.kubectl(&ttl_of(KEPT)).await?.is_empty(), "{KEPT} still has a TTL");
        tell("Trainer is back, the jobs are the same");

        drop(trainer);
        self.remove_carelessly(origin).await?;
        tell("and a plain removal of it has deleted them all, as the guide warns");
        Ok(())
    }

    async fn install_trainer(&self, origin: &Origin) -> Result<()> {
        let values = self.guide.folder().join("stand-in.yaml").display().to_string();
        let chart = self.trainer_chart.display().to_string();
        let mut arguments = vec![TRAINER, &chart, "--namespace", NAMESPACE, "--values", &values];
        if origin.helm != Some(true) {
            arguments.extend(["--set", "jobset.install=false"]);
        }
        if origin.helm.is_some() {
            let install = [&["install", "--wait"], arguments.as_slice()].concat();
            self.tools.helm(&install).await?;
            return Ok(());
        }
        let template = [&["template"], arguments.as_slice()].concat();
        fs::write(&self.manifests, self.tools.helm_offline(&template).await?)?;
        let manifests = self.manifests.display().to_string();
        self.kubectl(&["apply", "--server-side", "-f", &manifests]).await?;
        let names = DEFINITIONS.map(|name| format!("crd/{name}"));
        let wait = ["wait", "--for=condition=Established", "--timeout=60s"];
        let wait: Vec<&str> = wait.into_iter().chain(names.iter().map(String::as_str)).collect();
        self.kubectl(&wait).await?;
        Ok(())
    }

    /// Whoever works in the place of Trainer's controller.
    async fn trainer(&self) -> Result<Operator> {
        let options = OperatorOptions {
            config_yaml:
                "{lifecycle: {deadlineClock: LastResume}, leaderElection: {leaderElect: true}}"
                    .to_owned(),
            env: vec![("POD_NAMESPACE".to_owned(), NAMESPACE.to_owned())],
            ..OperatorOptions::default()
        };
        let trainer = Operator::start(self.cluster, options).await?;
        trainer.wait_ready().await?;
        Ok(trainer)
    }

    async fn submit(&self) -> Result<()> {
        let done = json!({"pod-complete.stage.kwok.x-k8s.io/delay": "1s"});
        let objects = [
            runtime("runs", &json!({})),
            runtime("completes", &done),
            train_job(RUNNING, "runs", &json!({"activeDeadlineSeconds": 3600})),
            train_job(SUSPENDED, "runs", &json!({"activeDeadlineSeconds": 1, "suspend": true})),
            train_job(FINISHED, "completes", &json!({})),
        ];
        self.cluster.apply_yaml("default", &yaml::stream(&objects)).await?;
        Ok(())
    }

    /// The UIDs of the jobs and of everything that has been made for them, once each is where it is to be.
    async fn uids(&self) -> Result<String> {
        for (job, expected) in [(RUNNING, ""), (SUSPENDED, "Suspended"), (FINISHED, "Complete")] {
            let types = "jsonpath={.status.conditions[?(@.status==\"True\")].type}";
            let state = self.kubectl(&["get", "trainjob", job, "-o", types]).await?;
            ensure!(state == expected, "{job} is {state:?}, expected {expected:?}");
        }
        let fields = "jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.status.phase}{\"\\n\"}{end}";
        let pods = format!("jobset.sigs.k8s.io/jobset-name in ({RUNNING},{FINISHED})");
        let pods = self.kubectl(&["get", "pods", "-l", &pods, "-o", fields]).await?;
        ensure!(pods.contains("Running") && pods.contains("Succeeded"), "Pods: {pods}");
        let objects = [RUNNING, SUSPENDED, FINISHED].map(|job| {
            [format!("trainjob/{job}"), format!("jobset/{job}"), format!("job/{job}-node-0")]
        });
        let mut get = vec!["get", "-o", fields];
        get.extend(objects.iter().flatten().map(String::as_str));
        Ok(self.kubectl(&get).await? + &pods)
    }

    async fn same(&self, before: &str) -> Result<()> {
        let now = self.uids().await?;
        ensure!(now == before, "before:\n{before}\nnow:\n{now}");
        Ok(())
    }

    /// The UID of JobSet's Deployment, if JobSet came with Trainer.
    async fn jobset_controller(&self) -> Result<String> {
        let uid = "jsonpath={.metadata.uid}";
        let get = [
            "get",
            "deployment/jobset-controller",
            "-n",
            NAMESPACE,
            "--ignore-not-found",
            "-o",
            uid,
        ];
        self.kubectl(&get).await
    }

    /// The release that the definitions are part of.
    async fn owner(&self) -> Result<String> {
        let release = "jsonpath={.items[*].metadata.annotations.meta\\.helm\\.sh/release-name}";
        let get: Vec<&str> = ["get", "crd", "-o", release].into_iter().chain(DEFINITIONS).collect();
        let releases = self.kubectl(&get).await?;
        let mut releases: Vec<&str> = releases.split(' ').collect();
        releases.dedup();
        Ok(releases.join(", "))
    }

    async fn is_there(&self, object: &str) -> Result<bool> {
        let get = ["get", object, "-n", NAMESPACE, "--ignore-not-found", "-o", "name"];
        Ok(!self.kubectl(&get).await?.is_empty())
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

    /// A job with a TTL is admitted, completes and is deleted; another one stays.
    async fn enforces_ttl(&self) -> Result<()> {
        for (name, ttl) in [(KEPT, 3600), ("short", 0)] {
            let job = train_job(name, "completes", &json!({"ttlSecondsAfterFinished": ttl}));
            until_ok(format!("{name} is admitted"), PATIENCE, || async {
                self.cluster.apply_yaml("default", &job.to_string()).await
            })
            .await?;
        }
        until_ok("its TTL has deleted a job", PATIENCE, || async {
            let jobs = self.kubectl(&["get", "trainjobs", "-o", "name"]).await?;
            ensure!(!jobs.contains("short"), "there are {jobs}");
            Ok(())
        })
        .await
    }

    /// An upgrade, no job that has a TTL any more, and the upgrade taken back, as the page on these has it.
    async fn forgets_ttl(&self, programs: Programs) -> Result<Programs> {
        ensure!(self.kubectl(&ttl_of(KEPT)).await? == "3600", "{KEPT} has another TTL");
        let guide = self.guide.turn_to(DOWNGRADE)?;
        guide.follow("Upgrade").await?;
        guide.follow("1. Allow the field to change").await?;
        // The configuration is read once.
        drop(programs);
        let programs = Programs::start(self.cluster, &self.tools, OPERATOR, NAMESPACE).await?;
        guide.follow("2. Remove it").await?;
        ensure!(self.kubectl(&ttl_of(KEPT)).await?.is_empty(), "{KEPT} still has a TTL");
        guide.follow("Take an upgrade back").await?;
        let immutable =
            self.kubectl(&["get", "crd", "trainjobs.trainer.kubeflow.org", "-o", DEADLINE]);
        ensure!(immutable.await?.contains("self == oldSelf"), "the deadline may still be changed");
        let headings = guide.but_for(&guide.followed());
        ensure!(
            headings.is_empty(),
            "{DOWNGRADE} has commands that nobody has followed: {headings:?}"
        );
        Ok(programs)
    }

    /// What the guide warns of.
    async fn remove_carelessly(&self, origin: &Origin) -> Result<()> {
        if origin.helm.is_some() {
            self.tools.helm(&["uninstall", TRAINER, "--namespace", NAMESPACE]).await?;
        } else {
            let manifests = self.manifests.display().to_string();
            self.kubectl(&["delete", "--wait", "-f", &manifests]).await?;
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

const fn ttl_of(job: &str) -> [&str; 5] {
    ["get", "trainjob", job, "-o", "jsonpath={.spec.ttlSecondsAfterFinished}"]
}

/// The values of the stand-in: the definitions, without what Kubeflow Trainer does not have.
fn trainers_definitions() -> Result<String> {
    let mut texts = Vec::new();
    for name in DEFINITIONS {
        for mut definition in file_of_chart(&format!("crds/{name}.yaml"))? {
            let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
            let fields = definition.pointer_mut(fields).and_then(Value::as_object_mut);
            let removed = fields.context("no fields")?.remove("ttlSecondsAfterFinished");
            ensure!(removed.is_some() == name.starts_with("trainjobs"), "{name}: TTL {removed:?}");
            texts.push(definition.to_string());
        }
    }
    Ok(yaml::stream(&[json!({"definitions": texts})]))
}

fn runtime(name: &str, annotations: &Value) -> Value {
    let template = json!({
        "metadata": {"annotations": annotations},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "node", "image": "training"}],
        },
    });
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "plainml"}},
        "spec": {"template": {"spec": {"replicatedJobs": [{
            "name": "node",
            "template": {
                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                "spec": {"template": template},
            },
        }]}}},
    })
}
