//! Jobs of every framework in every state, which are handed from one controller to the other.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Map, Value, json};
use trainjob_api::TrainJob;
use trainjob_api::conditions::{COMPLETE, SUSPENDED, find_true};
use trainjob_api::jobset::JobSetView;
use trainjob_api::time::Timestamp;

use super::objects::{self, Objects, same};
use crate::testenv::cluster::Cluster;
use crate::testenv::fixtures::status::{
    brief, conditions_of, created_at, finished_at, is_failed_by_deadline,
};
use crate::testenv::fixtures::{COMPLETES_AFTER, train_job};
use crate::testenv::until::until_ok;
use crate::testenv::yaml;

/// How long the slowest step may take on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_mins(4);
/// Where all of them are.
const NAMESPACE: &str = "default";
/// Seconds that a job may run that is near its deadline. A change of controllers takes about as long.
const DEADLINE: i64 = 60;
/// Pods of each job that train.
const PODS: usize = 2;

/// A framework: what it is called here, its runtime, and the replicated job whose end is that of training.
struct Framework {
    name: &'static str,
    runtime: &'static str,
    trains: &'static str,
}

impl Framework {
    /// Kubeflow Trainer 2.3.0 sends JobSet's claims again when it suspends or resumes, which JobSet refuses: a
    /// defect that its own jobs have, too (D-42 of docs/compatibility.md).
    fn has_claims(&self) -> bool {
        self.name == "torchtune"
    }

    /// The two controllers make other objects for it, and the operator's cannot be changed.
    fn has_scripts(&self) -> bool {
        self.name == "flux"
    }
}

const fn framework(name: &'static str, runtime: &'static str, trains: &'static str) -> Framework {
    Framework { name, runtime, trains }
}

/// Those of the runtimes that come with Kubeflow Trainer, and flux, for which it brings none.
const FRAMEWORKS: [Framework; 7] = [
    framework("torch", "torch-distributed", "node"),
    framework("torchtune", "torchtune-llama3.2-1b", "node"),
    framework("jax", "jax-distributed", "node"),
    framework("xgboost", "xgboost-distributed", "node"),
    framework("deepspeed", "deepspeed-distributed", "launcher"),
    framework("mlx", "mlx-distributed", "launcher"),
    framework("flux", "flux-distributed", "node"),
];

/// What a job is doing when its controller goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its Pods run.
    Running,
    /// It was created suspended and has never run.
    Queued,
    /// It ran, and is suspended.
    Paused,
    /// Its Pods run, and end while no controller is there.
    Finishing,
    /// It is complete.
    Finished,
    /// Its Pods run, and its deadline is near.
    Due,
}

impl State {
    const ALL: [Self; 6] =
        [Self::Running, Self::Queued, Self::Paused, Self::Finishing, Self::Finished, Self::Due];

    const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Queued => "queued",
            Self::Paused => "paused",
            Self::Finishing => "finishing",
            Self::Finished => "finished",
            Self::Due => "due",
        }
    }

    /// Whether nothing may happen to the objects of such a job until somebody asks for it. What a queued job of
    /// flux has is made anew by the operator.
    fn is_steady(self, framework: &Framework) -> bool {
        !matches!(self, Self::Finishing | Self::Due)
            && (self != Self::Queued || !framework.has_scripts())
    }
}

/// Jobs that begin under one controller and go on under the next.
pub(super) struct Crew {
    client: Client,
    jobs: Api<TrainJob>,
    pods: Api<Pod>,
    name: &'static str,
    /// Whether they begin under Kubeflow Trainer.
    of_trainer: bool,
    before: Objects,
}

impl Crew {
    /// Creates them, and waits until each is where it is to be. `more` is in the spec of each of them; those of
    /// the operator have some.
    pub(super) async fn assemble(
        cluster: &Cluster,
        name: &'static str,
        more: Option<&Value>,
    ) -> Result<Self> {
        let of_trainer = more.is_none();
        let none = json!({});
        let more = more.unwrap_or(&none);
        let client = cluster.client().await?;
        let jobs = Api::namespaced(client.clone(), NAMESPACE);
        let pods = Api::namespaced(client.clone(), NAMESPACE);
        let crew = Self { client, jobs, pods, name, of_trainer, before: Objects::new() };
        let early = State::ALL.into_iter().filter(|state| *state != State::Due);
        for state in early {
            crew.create(cluster, state, more).await?;
        }
        for state in [State::Running, State::Paused, State::Finishing, State::Finished] {
            crew.each(state, Self::runs).await?;
        }
        crew.each(State::Paused, Self::suspend).await?;
        crew.each(State::Finished, Self::complete_pods).await?;
        crew.each(State::Finished, |crew, job, _| crew.becomes(job, COMPLETE)).await?;
        for state in [State::Paused, State::Queued] {
            crew.each(state, |crew, job, _| crew.becomes(job, SUSPENDED)).await?;
        }
        // The last, because their time is short.
        crew.create(cluster, State::Due, &json!({"activeDeadlineSeconds": DEADLINE})).await?;
        crew.each(State::Due, Self::runs).await?;
        Ok(crew)
    }

    /// Those whose job can be in this state.
    fn frameworks(&self, state: State) -> impl Iterator<Item = &'static Framework> {
        let cannot = self.of_trainer && state == State::Paused;
        FRAMEWORKS.iter().filter(move |framework| !(cannot && framework.has_claims()))
    }

    async fn create(&self, cluster: &Cluster, state: State, more: &Value) -> Result<()> {
        let mut objects = Vec::new();
        for framework in self.frameworks(state) {
            let name = self.job(framework, state);
            let trainer = json!({"numNodes": PODS, "command": ["train"]});
            let mut spec = Map::from_iter([("trainer".to_owned(), trainer)]);
            if state == State::Queued {
                spec.insert("suspend".into(), json!(true));
            }
            if framework.has_claims() {
                spec.insert("runtimePatches".into(), initializers_complete());
                // One for its first claim, one for that of a JobSet that is made anew.
                objects.extend([volume(&name), volume(&format!("{name}-again"))]);
            }
            spec.extend(more.as_object().cloned().unwrap_or_default());
            objects.push(train_job(&name, framework.runtime, &spec.into()));
        }
        // A webhook that has just been registered may not be asked yet, or asked too early.
        until_ok(format!("jobs that are to be {} are admitted", state.name()), PATIENCE, || {
            let text = yaml::stream(&objects);
            async move { cluster.apply_yaml(NAMESPACE, &text).await }
        })
        .await?;
        Ok(())
    }

    fn job(&self, framework: &Framework, state: State) -> String {
        format!("{}-{}-{}", self.name, framework.name, state.name())
    }

    /// Does something with the job of every framework that is in this state.
    async fn each<'a, F>(
        &'a self,
        state: State,
        act: impl Fn(&'a Self, String, &'static Framework) -> F,
    ) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        for framework in self.frameworks(state) {
            let job = self.job(framework, state);
            act(self, job.clone(), framework).await.context(job)?;
        }
        Ok(())
    }

    /// Waits until all Pods of a job that train run.
    async fn runs(&self, job: String, _: &'static Framework) -> Result<()> {
        until_ok(format!("{job} runs"), PATIENCE, || async {
            let pods = self.pods_of(&job).await?;
            let phases: Vec<&str> = pods.iter().map(phase).collect();
            let running = phases.iter().filter(|phase| **phase == "Running").count();
            ensure!(running == PODS, "its Pods are {phases:?}: {}", self.said(&job).await?);
            Ok(())
        })
        .await
    }

    async fn suspend(&self, job: String, _: &'static Framework) -> Result<()> {
        self.set_suspended(&job, true).await?;
        until_ok(format!("the Pods of {job} are gone"), PATIENCE, || async {
            let pods = self.pods_of(&job).await?;
            let running = pods.iter().filter(|pod| phase(pod) == "Running").count();
            ensure!(running == 0, "{running} run");
            Ok(())
        })
        .await
    }

    async fn set_suspended(&self, job: &str, suspended: bool) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"suspend": suspended}}));
        self.jobs.patch(job, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Lets the Pods complete that the end of training depends on.
    async fn complete_pods(&self, job: String, framework: &'static Framework) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {COMPLETES_AFTER: "100ms"}}}));
        for pod in self.pods_of(&job).await? {
            let of = pod.labels().get("jobset.sigs.k8s.io/replicatedjob-name");
            if of.is_some_and(|of| of == framework.trains) {
                self.pods.patch(&pod.name_any(), &PatchParams::default(), &patch).await?;
            }
        }
        Ok(())
    }

    async fn becomes(&self, job: String, condition: &'static str) -> Result<()> {
        until_ok(format!("{job} is {condition}"), PATIENCE, || async {
            let train_job = self.jobs.get(&job).await?;
            let there = find_true(conditions_of(&train_job), condition);
            there.with_context(|| brief(conditions_of(&train_job)))?;
            Ok(())
        })
        .await
    }

    /// Notes everything there is of those to which nothing may happen.
    pub(super) async fn remember(&mut self) -> Result<()> {
        self.before = self.steady().await?;
        Ok(())
    }

    /// Sees that all that was noted is what it was. A job that is over may be so under its controller alone.
    pub(super) async fn same(&self) -> Result<()> {
        same(&self.before, &self.steady().await?).context(self.name)
    }

    async fn steady(&self) -> Result<Objects> {
        let mut objects = objects::all(&self.client, NAMESPACE).await?;
        objects.retain(|name, (job, _)| {
            let mut of_crew = FRAMEWORKS
                .iter()
                .flat_map(|framework| State::ALL.into_iter().map(move |state| (framework, state)));
            let found = of_crew.find(|(framework, state)| *job == self.job(framework, *state));
            // Of the others, the TrainJob stays whatever becomes of the rest.
            found.is_some_and(|(framework, state)| {
                state.is_steady(framework) || name.starts_with("TrainJob ")
            })
        });
        Ok(objects)
    }

    /// While nobody is in charge: training ends, and nobody tells.
    pub(super) async fn finish(&self) -> Result<()> {
        self.each(State::Finishing, Self::complete_pods).await?;
        let sets: Api<JobSetView> = Api::namespaced(self.client.clone(), NAMESPACE);
        for framework in &FRAMEWORKS {
            let job = self.job(framework, State::Finishing);
            until_ok(format!("the JobSet of {job} is completed"), PATIENCE, || async {
                let conditions = sets.get(&job).await?.status.conditions;
                find_true(&conditions, "Completed").with_context(|| brief(&conditions))?;
                Ok(())
            })
            .await?;
            let train_job = self.jobs.get(&job).await?;
            let told = find_true(conditions_of(&train_job), COMPLETE);
            ensure!(told.is_none(), "{job} is complete, and nobody is there to say so");
        }
        Ok(())
    }

    /// Under the next controller: what ended is seen, and deadlines are enforced.
    pub(super) async fn ends(&self) -> Result<()> {
        self.each(State::Finishing, |crew, job, _| crew.becomes(job, COMPLETE)).await?;
        self.each(State::Due, Self::is_stopped).await
    }

    /// Asks for what was queued or paused to run.
    pub(super) async fn resume(&self) -> Result<()> {
        for state in [State::Queued, State::Paused] {
            self.each(state, async |crew, job, _| crew.set_suspended(&job, false).await).await?;
        }
        Ok(())
    }

    /// Sees all run that has been asked to.
    pub(super) async fn go_on(&self) -> Result<()> {
        for state in [State::Queued, State::Paused, State::Running] {
            self.each(state, Self::runs).await?;
        }
        Ok(())
    }

    /// The jobs that Kubeflow Trainer cannot resume before what was made for them is deleted: their namespaces
    /// and names. The operator resumes all of them.
    pub(super) fn stuck(&self) -> Vec<(&'static str, String)> {
        let stuck = |framework: &&Framework| framework.has_scripts() || framework.has_claims();
        let states = [State::Queued, State::Paused];
        let of = |framework| states.map(|state| (NAMESPACE, self.job(framework, state)));
        FRAMEWORKS.iter().filter(stuck).flat_map(of).collect()
    }

    async fn is_stopped(&self, job: String, _: &'static Framework) -> Result<()> {
        let patience = PATIENCE + Duration::from_secs(DEADLINE.unsigned_abs());
        until_ok(format!("the deadline of {job} has come"), patience, || async {
            let train_job = self.jobs.get(&job).await?;
            let told = brief(conditions_of(&train_job));
            ensure!(is_failed_by_deadline(&train_job), "{told}");
            let due: Timestamp = created_at(&train_job).plus(DEADLINE);
            ensure!(finished_at(&train_job)? >= due, "{job} was due at {due}: {told}");
            let pods = self.pods_of(&job).await?;
            ensure!(pods.is_empty(), "{} Pods are left", pods.len());
            Ok(())
        })
        .await
    }

    async fn pods_of(&self, job: &str) -> Result<Vec<Pod>> {
        let of = format!("jobset.sigs.k8s.io/jobset-name={job}");
        Ok(self.pods.list(&ListParams::default().labels(&of)).await?.items)
    }

    async fn said(&self, job: &str) -> Result<String> {
        Ok(brief(conditions_of(&self.jobs.get(job).await?)))
    }
}

fn phase(pod: &Pod) -> &str {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase.unwrap_or_default()
}

/// A patch that lets the initializers of torchtune complete; training waits for them.
fn initializers_complete() -> Value {
    let replicated_job = |name: &str| {
        let pod = json!({"metadata": {"annotations": {COMPLETES_AFTER: "100ms"}}});
        json!({"name": name, "template": {"spec": {"template": pod}}})
    };
    let jobs = json!([replicated_job("dataset-initializer"), replicated_job("model-initializer")]);
    let spec = json!({"template": {"spec": {"replicatedJobs": jobs}}});
    json!([{"manager": "e2e.trainjob.dev/test", "trainingRuntimeSpec": spec}])
}

/// Nothing in the box provides volumes for claims.
fn volume(job: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": job},
        "spec": {
            "capacity": {"storage": "20Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/of-fake-pods"},
        },
    })
}
