//! The draft: a runtime's template with the TrainJob's patches, scale and resources in it.
//!
//! Building has three steps. The draft is made from the runtime; the framework writes into it what its
//! processes need to find each other; then the TrainJob's own wishes are written over it and the draft
//! becomes the JobSet. All three work on the same typed template, in place.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::{ConfigMap, ResourceRequirements};
use serde_json::Value;
use trainjob_api::{
    TrainJob,
    constants::NODE,
    jobset::{JobSetSpec, ReplicatedJob},
    v1alpha1::patches::{JobSetSpecPatch, RuntimePatch},
    v1alpha1::runtime::MlPolicy,
};

use super::{
    error::BuildError,
    objects::SecretClaim,
    replicated_job::{container, container_mut, is_trainer, nodes, set_nodes},
    resolve::Runtime,
    resources, strategic_merge,
    variables::{Variables, without_variables},
};

type Keys = BTreeMap<String, String>;

/// A JobSet in the making.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    /// The TrainJob it is for.
    pub(crate) job: &'a TrainJob,
    /// Labels of the JobSet.
    pub(crate) labels: Keys,
    /// Annotations of the JobSet.
    pub(crate) annotations: Keys,
    /// The template. From the start each job has as many completions as Pods at once, whatever the
    /// runtime says of either: its number of nodes.
    pub(crate) spec: JobSetSpec,
    /// Command of the trainer's replicated job, if not the runtime's: the TrainJob's, which a framework may write
    /// out.
    pub(crate) command: Option<Vec<String>>,
    /// Whether the job named `node` gets the job's resources and variables as the trainer's replicated job does:
    /// with MPI, when that replicated job is the launcher and a training node too.
    pub(crate) launcher_is_node: bool,
    /// What runs in the trainer's replicated job in place of the user's command, and runs that in turn.
    pub(crate) entry_point: Option<Vec<String>>,
    /// What the framework's processes trust each other by.
    pub(crate) secrets: Vec<SecretClaim>,
    /// What the framework's processes read.
    pub(crate) config_maps: Vec<ConfigMap>,
}

impl<'a> Draft<'a> {
    /// The runtime's template, patched, with the runtime's scale and the job's resources.
    ///
    /// Labels and annotations are those of the template; neither the runtime's own nor the TrainJob's
    /// are handed down.
    pub(crate) fn new(job: &'a TrainJob, runtime: &Runtime) -> Result<Self, BuildError> {
        let template = &runtime.spec.template;
        let metadata = template.metadata.clone().unwrap_or_default();
        let mut draft = Self {
            job,
            labels: metadata.labels.unwrap_or_default(),
            annotations: metadata.annotations.unwrap_or_default(),
            spec: template.spec.clone().unwrap_or_default(),
            command: job.spec.trainer.as_ref().and_then(|trainer| trainer.command.clone()),
            launcher_is_node: launcher_is_node(runtime.spec.ml_policy.as_ref()),
            entry_point: None,
            secrets: Vec::new(),
            config_maps: Vec::new(),
        };
        for patch in job.spec.runtime_patches.iter().flatten() {
            draft.patch(patch)?;
        }
        let jobs = template.spec.as_ref().and_then(|spec| spec.replicated_jobs.as_deref());
        draft.restore_order(jobs.unwrap_or_default());
        draft.scale(runtime.spec.ml_policy.as_ref());
        Ok(draft)
    }

    /// The trainer's replicated job: the first one that is labelled so.
    pub(crate) fn trainer(&self) -> Option<&ReplicatedJob> {
        self.spec.replicated_jobs.iter().flatten().find(|job| is_trainer(job))
    }

    /// The trainer's replicated job, to be changed.
    pub(crate) fn trainer_mut(&mut self) -> Option<&mut ReplicatedJob> {
        self.replicated_jobs_mut().find(|job| is_trainer(job))
    }

    /// The replicated jobs, to be changed.
    pub(crate) fn replicated_jobs_mut(&mut self) -> impl Iterator<Item = &mut ReplicatedJob> {
        self.spec.replicated_jobs.iter_mut().flatten()
    }

    /// Gives the trainer's replicated job the number of nodes the TrainJob asks for, if it asks. 0 is a number.
    pub(crate) fn apply_num_nodes(&mut self) {
        let wanted = self.job.spec.trainer.as_ref().and_then(|trainer| trainer.num_nodes);
        if let (Some(wanted), Some(trainer)) = (wanted, self.trainer_mut()) {
            set_nodes(trainer, wanted);
        }
    }

    fn patch(&mut self, patch: &RuntimePatch) -> Result<(), BuildError> {
        let Some(template) =
            patch.training_runtime_spec.as_ref().and_then(|spec| spec.template.as_ref())
        else {
            return Ok(());
        };
        if let Some(metadata) = &template.metadata {
            self.labels.extend(metadata.labels.clone().unwrap_or_default());
            self.annotations.extend(metadata.annotations.clone().unwrap_or_default());
        }
        if let Some(spec) = &template.spec {
            self.spec = patched(std::mem::take(&mut self.spec), spec).map_err(|error| {
                BuildError::Patch { manager: patch.manager.clone(), problem: error.to_string() }
            })?;
        }
        Ok(())
    }

    /// Puts the jobs back in the runtime's order, which merging changes. A job that only a patch knows
    /// goes to the first.
    fn restore_order(&mut self, template: &[ReplicatedJob]) {
        let Some(jobs) = &mut self.spec.replicated_jobs else { return };
        let places = template.iter().enumerate().rev();
        let places: HashMap<_, _> = places.map(|(place, job)| (job.name.as_str(), place)).collect();
        jobs.sort_by_key(|job| places.get(job.name.as_str()).copied().unwrap_or(0));
    }

    /// Sets node counts and resources.
    ///
    /// Both follow Kubeflow Trainer to the letter, even where a runtime without `mlPolicy` makes it
    /// ignore `resourcesPerNode`: Kueue computes counts and requests with Trainer's code, and what runs
    /// must be what was counted.
    fn scale(&mut self, policy: Option<&MlPolicy>) {
        let wishes = self.job.spec.trainer.as_ref().and_then(|t| t.resources_per_node.as_ref());
        let launcher_is_node = self.launcher_is_node;
        for job in self.replicated_jobs_mut() {
            let policy = policy.filter(|_| is_trainer(job));
            let count = policy.map_or_else(|| nodes(job), |policy| policy.num_nodes.unwrap_or(1));
            set_nodes(job, count.max(1));

            let is_node = policy.is_some() || (launcher_is_node && job.name == NODE);
            if let (true, Some(wishes), Some(node)) = (is_node, wishes, container_mut(job, NODE)) {
                node.resources = Some(resources::overlay(node.resources.as_ref(), wishes));
            }
        }
    }
}

fn launcher_is_node(policy: Option<&MlPolicy>) -> bool {
    let mpi = policy.and_then(|policy| policy.mpi.as_ref());
    mpi.and_then(|mpi| mpi.run_launcher_as_node).unwrap_or(false)
}

/// The spec with a patch merged into it: variables as they are, the rest by way of JSON, which is what
/// strategic merge is defined on.
fn patched(mut spec: JobSetSpec, patch: &JobSetSpecPatch) -> serde_json::Result<JobSetSpec> {
    let variables = Variables::take(&mut spec);
    let mut merged = serde_json::to_value(spec)?;
    let changes = serde_json::to_value(without_variables(patch))?;
    if let (Value::Object(merged), Value::Object(changes)) = (&mut merged, &changes) {
        strategic_merge::merge(merged, changes);
    }
    let mut merged = serde_json::from_value(merged)?;
    variables.put_back(patch, &mut merged)?;
    Ok(merged)
}

/// How many of something each training node has, or 0.
///
/// What counts is what the container gets, the TrainJob's resources over the runtime's: a job that
/// only raises the memory of a runtime with GPUs still has the GPUs. (Kubeflow Trainer looks at the
/// job's resources alone as soon as it has some.) What the job names goes before the runtime's.
pub(crate) fn per_node(
    draft: &Draft<'_>,
    count: fn(&ResourceRequirements) -> Result<i64, BuildError>,
) -> Result<i64, BuildError> {
    let trainer = draft.job.spec.trainer.as_ref();
    let of_job = trainer.and_then(|trainer| trainer.resources_per_node.as_ref());
    let mut jobs = draft.spec.replicated_jobs.iter().flatten();
    let of_container = jobs
        .find(|job| is_trainer(job) || job.name == NODE)
        .and_then(|job| container(job, NODE)?.resources.as_ref());

    for resources in [of_job, of_container].into_iter().flatten() {
        let counted = count(resources)?;
        if counted > 0 {
            return Ok(counted);
        }
    }
    Ok(0)
}
