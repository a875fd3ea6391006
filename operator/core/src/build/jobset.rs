//! The last step: the TrainJob's own wishes, and the draft becomes a JobSet.
//!
//! | replicated job, by label | what it gets |
//! |---|---|
//! | `dataset-initializer`, `model-initializer` | one replica; `STORAGE_URI`, environment and Secret of the initializer |
//! | `trainer` | one replica; image, command (written out where the framework does), arguments and environment of `spec.trainer` |
//! | the first `trainer` | the framework's entry point, if it has one, in place of command and arguments |
//! | any, named `node`, if the launcher of MPI is a node too | environment of `spec.trainer` |
//!
//! The user's variables are set after the framework's, so that where admission lets the two collide the
//! user wins. Whatever else the template says passes through.

use k8s_openapi::{
    api::core::v1::{Container, EnvFromSource, EnvVar, SecretEnvSource},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use trainjob_api::{
    JobSet, TrainJob,
    constants::{ANCESTOR_TRAINER, DATASET_INITIALIZER, MODEL_INITIALIZER, NODE, STORAGE_URI_ENV},
    jobset::ReplicatedJob,
    v1alpha1::train_job::{InitializerStep, Trainer},
};

use super::{
    Objects,
    draft::Draft,
    owner_reference,
    replicated_job::{ancestor, container_mut, is_trainer, upsert_env},
};

/// What the draft has become.
pub(crate) fn finish(mut draft: Draft<'_>) -> Objects {
    let job = draft.job;
    let command = draft.command.take();
    let launcher_is_node = draft.launcher_is_node;
    let mut entry_point = draft.entry_point.take();
    for replicated_job in draft.replicated_jobs_mut() {
        finish_replicated_job(replicated_job, job, command.as_ref());
        if is_trainer(replicated_job)
            && let (Some(command), Some(node)) =
                (entry_point.take(), container_mut(replicated_job, NODE))
        {
            node.command = Some(command);
            node.args = None;
        }
        if launcher_is_node
            && replicated_job.name == NODE
            && let (Some(trainer), Some(node)) =
                (&job.spec.trainer, container_mut(replicated_job, NODE))
        {
            upsert_env(node, trainer.env.iter().flatten());
        }
    }
    // The template's own value means nothing: whether a job runs is for the TrainJob to say.
    draft.spec.suspend = Some(job.spec.suspend.unwrap_or(false));

    let job_set = JobSet {
        metadata: ObjectMeta {
            name: job.metadata.name.clone(),
            namespace: job.metadata.namespace.clone(),
            labels: Some(draft.labels).filter(|labels| !labels.is_empty()),
            annotations: Some(draft.annotations).filter(|annotations| !annotations.is_empty()),
            owner_references: Some(vec![owner_reference(job)]),
            ..ObjectMeta::default()
        },
        spec: draft.spec,
        status: None,
    };
    Objects { secrets: draft.secrets, config_maps: draft.config_maps, pod_group: None, job_set }
}

fn finish_replicated_job(
    replicated_job: &mut ReplicatedJob,
    job: &TrainJob,
    command: Option<&Vec<String>>,
) {
    let initializer = job.spec.initializer.as_ref();
    let (name, wishes) = match ancestor(replicated_job) {
        Some(DATASET_INITIALIZER) => {
            (DATASET_INITIALIZER, initializer.and_then(|i| i.dataset.as_ref()))
        }
        Some(MODEL_INITIALIZER) => (MODEL_INITIALIZER, initializer.and_then(|i| i.model.as_ref())),
        Some(ANCESTOR_TRAINER) => {
            replicated_job.replicas = Some(1);
            if let (Some(trainer), Some(node)) =
                (&job.spec.trainer, container_mut(replicated_job, NODE))
            {
                set_trainer(node, trainer, command);
            }
            return;
        }
        _ => return,
    };
    replicated_job.replicas = Some(1);
    if let (Some(wishes), Some(container)) = (wishes, container_mut(replicated_job, name)) {
        set_initializer(container, wishes);
    }
}

fn set_initializer(container: &mut Container, wishes: &InitializerStep) {
    let uri = wishes.storage_uri.as_ref().map(|uri| EnvVar {
        name: STORAGE_URI_ENV.into(),
        value: Some(uri.clone()),
        ..EnvVar::default()
    });
    upsert_env(container, uri.iter().chain(wishes.env.iter().flatten()));
    if let Some(secret) = &wishes.secret_ref {
        let secret_ref =
            SecretEnvSource { name: secret.name.clone(), ..SecretEnvSource::default() };
        container
            .env_from
            .get_or_insert_default()
            .push(EnvFromSource { secret_ref: Some(secret_ref), ..EnvFromSource::default() });
    }
}

/// Sets what the TrainJob says; an empty list is said, an absent one is not.
fn set_trainer(node: &mut Container, trainer: &Trainer, command: Option<&Vec<String>>) {
    if let Some(image) = &trainer.image {
        node.image = Some(image.clone());
    }
    if let Some(command) = command {
        node.command = Some(command.clone());
    }
    if let Some(args) = &trainer.args {
        node.args = Some(args.clone());
    }
    upsert_env(node, trainer.env.iter().flatten());
}
