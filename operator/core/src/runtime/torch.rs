//! PyTorch: what its elastic launcher, `torchrun`, needs to find the other nodes.
//!
//! | variable | value |
//! |---|---|
//! | `PET_NNODES` | nodes of the training step |
//! | `PET_NPROC_PER_NODE` | `spec.trainer.numProcPerNode`, else `auto` with GPUs, else the CPUs, at least 1 |
//! | `PET_NODE_RANK` | index of the Pod in its Job |
//! | `PET_MASTER_ADDR` | first Pod of the training step, `<job>-node-0-0.<job>` in the usual runtime |
//! | `PET_MASTER_PORT` | 29500 |
//!
//! Container `node` of the training step gets the variables, after the user's own, and port 29500. It
//! gets neither if the TrainJob has no `spec.trainer` at all; an empty one is enough. That is Kubeflow
//! Trainer's rule. The containers of `mlPolicy.torch.envInjection` always get the variables.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector};
use trainjob_api::{
    constants::{COMPLETION_INDEX_FIELD, NODE, TRAINER_PORT},
    runtime::TorchPolicy,
};

use super::{
    BuildError,
    draft::Draft,
    parts::{
        any_container_mut, container, container_mut, ensure_port, is_trainer, nodes, upsert_env,
    },
    resources::{cpus, has_gpu},
};

/// The command that stands for a torchtune recipe.
const TORCHTUNE: [&str; 2] = ["tune", "run"];

/// Writes the table above into the draft.
pub(super) fn enforce(draft: &mut Draft<'_>, policy: &TorchPolicy) -> Result<(), BuildError> {
    let trainer = draft.job.spec.trainer.as_ref();
    if trainer.and_then(|trainer| trainer.command.as_ref()).is_some_and(|c| *c == TORCHTUNE) {
        return Err(BuildError::UnsupportedPolicy {
            field: "spec.trainer.command [\"tune\", \"run\"] with mlPolicy.torch",
            advice: "leave the command to the runtime, or write it out with recipe and config",
        });
    }

    draft.apply_num_nodes();
    let variables = variables(draft)?;

    let node = draft.trainer_mut().and_then(|step| container_mut(step, NODE));
    if let (Some(trainer), Some(node)) = (trainer, node) {
        upsert_env(node, trainer.env.iter().flatten());
        upsert_env(node, &variables);
        ensure_port(node, TRAINER_PORT);
    }
    inject(draft, policy, &variables)
}

/// Sets the variables in the further containers that the runtime names.
fn inject(
    draft: &mut Draft<'_>,
    policy: &TorchPolicy,
    variables: &[EnvVar],
) -> Result<(), BuildError> {
    let targets =
        policy.env_injection.iter().flat_map(|injection| injection.targets.iter().flatten());
    for target in targets {
        for name in &target.container_names {
            let job = draft.jobs_mut().find(|job| job.name == target.job_name);
            let container = job.and_then(|job| any_container_mut(job, name)).ok_or_else(|| {
                BuildError::EnvInjectionTarget {
                    job: target.job_name.clone(),
                    container: name.clone(),
                }
            })?;
            upsert_env(container, variables);
        }
    }
    Ok(())
}

fn variables(draft: &Draft<'_>) -> Result<[EnvVar; 5], BuildError> {
    let count = draft.trainer().map_or(1, nodes);
    Ok([
        variable("PET_NNODES", count.to_string()),
        variable("PET_NPROC_PER_NODE", processes(draft)?),
        EnvVar {
            name: "PET_NODE_RANK".into(),
            value_from: Some(EnvVarSource {
                field_ref: Some(ObjectFieldSelector {
                    field_path: COMPLETION_INDEX_FIELD.into(),
                    ..ObjectFieldSelector::default()
                }),
                ..EnvVarSource::default()
            }),
            ..EnvVar::default()
        },
        variable("PET_MASTER_ADDR", address(draft)),
        variable("PET_MASTER_PORT", TRAINER_PORT.to_string()),
    ])
}

fn variable(name: &str, value: String) -> EnvVar {
    EnvVar { name: name.into(), value: Some(value), ..EnvVar::default() }
}

/// Processes on each node.
///
/// What counts is what the container gets, the TrainJob's resources over the runtime's: a job that
/// only raises the memory of a runtime with GPUs still has the GPUs. (Kubeflow Trainer looks at the
/// job's resources alone as soon as it has some.) CPUs that the job names go before the runtime's.
fn processes(draft: &Draft<'_>) -> Result<String, BuildError> {
    let trainer = draft.job.spec.trainer.as_ref();
    if let Some(explicit) = trainer.and_then(|trainer| trainer.num_proc_per_node) {
        return Ok(explicit.to_string());
    }
    let of_job = trainer.and_then(|trainer| trainer.resources_per_node.as_ref());
    let mut jobs = draft.spec.replicated_jobs.iter().flatten();
    let of_container = jobs
        .find(|job| is_trainer(job) || job.name == NODE)
        .and_then(|job| container(job, NODE)?.resources.as_ref());

    let sources = [of_job, of_container];
    for resources in sources.into_iter().flatten() {
        if has_gpu(resources)? {
            return Ok("auto".into());
        }
    }
    for resources in sources.into_iter().flatten() {
        let cpus = cpus(resources)?;
        if cpus > 0 {
            return Ok(cpus.to_string());
        }
    }
    Ok("1".into())
}

/// Where the nodes meet: the name that JobSet gives to the first Pod of the training step.
///
/// Kubeflow Trainer always says `<job>-node-0-0.<job>`; a template whose step or sub-domain is called
/// otherwise could not work with that.
fn address(draft: &Draft<'_>) -> String {
    let name = draft.job.metadata.name.as_deref().unwrap_or_default();
    let step = draft.trainer().map_or(NODE, |step| &step.name);
    let network = draft.spec.network.as_ref();
    let subdomain = network.and_then(|n| n.subdomain.as_deref()).filter(|s| !s.is_empty());
    format!("{name}-{step}-0-0.{}", subdomain.unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{
        build,
        testing::{built, container, job, runtime, step, torch, variable},
    };

    /// The container of the training step of a job on a runtime with these resources.
    fn node(trainer: &Value, resources: &Value) -> Value {
        let job_set =
            built(&job(&json!({"trainer": trainer})), &torch(&json!({"resources": resources})));
        job_set.pointer(&container(0)).unwrap().clone()
    }

    #[test]
    fn the_processes_of_a_node_follow_its_processors() {
        let limits = |cpu: Value| json!({"limits": {"cpu": cpu}});
        let requests = |cpu: Value| json!({"requests": {"cpu": cpu}});
        for (resources, expected) in [
            (limits(json!("4")), "4"),
            (json!({}), "1"),
            (limits(json!("2")), "2"),
            (limits(json!(2)), "2"),
            (requests(json!("3")), "3"),
            (requests(json!("2500m")), "3"),
            (requests(json!("3.7")), "4"),
            (requests(json!("0.7")), "1"),
            (json!({"requests": {"cpu": "2"}, "limits": {"cpu": "8"}}), "2"),
            (json!({"requests": {"cpu": "0"}, "limits": {"cpu": "8"}}), "8"),
            (json!({"limits": {"nvidia.com/gpu": "2"}}), "auto"),
            (json!({"requests": {"amd.com/GPU": "1"}, "limits": {"cpu": "8"}}), "auto"),
            (json!({"limits": {"nvidia.com/gpu": "0", "cpu": "3"}}), "3"),
            (json!({"limits": {"google.com/tpu": "4", "cpu": "3"}}), "3"),
            (json!({"limits": {"nvidia.com/mig-1g.5gb": "4"}}), "1"),
        ] {
            let of = |node| variable(&node, "PET_NPROC_PER_NODE").unwrap();
            let in_job = node(&json!({"resourcesPerNode": resources}), &json!({}));
            assert_eq!(of(in_job), expected, "{resources} in the TrainJob");
            assert_eq!(of(node(&json!({}), &resources)), expected, "{resources} in the runtime");
            let explicit =
                node(&json!({"resourcesPerNode": resources, "numProcPerNode": 3}), &json!({}));
            assert_eq!(of(explicit), "3", "{resources} and an explicit number");
        }
    }

    #[test]
    fn a_job_that_names_some_resources_keeps_the_runtime_s_others() {
        for (of_job, of_runtime, expected) in [
            (
                json!({"limits": {"memory": "8Gi"}}),
                json!({"limits": {"nvidia.com/gpu": 2}}),
                "auto",
            ),
            (json!({"limits": {"memory": "8Gi"}}), json!({"limits": {"cpu": 6}}), "6"),
            (json!({"limits": {"cpu": 4}}), json!({"requests": {"cpu": 2}}), "4"),
        ] {
            let node = node(&json!({"resourcesPerNode": of_job}), &of_runtime);
            assert_eq!(variable(&node, "PET_NPROC_PER_NODE").unwrap(), expected, "{of_job}");
        }
    }

    #[test]
    fn a_quantity_that_is_none_is_an_error() {
        let job = job(&json!({"trainer": {"resourcesPerNode": {"limits": {"cpu": "many"}}}}));
        let error = build(&job, &torch(&json!({}))).unwrap_err().to_string();
        assert!(error.contains("\"many\" is not a quantity of cpu"), "{error}");
    }

    #[test]
    fn the_port_is_added_to_others_and_never_twice() {
        for (ports, expected) in [
            (json!([]), json!([{"containerPort": 29500}])),
            (
                json!([{"containerPort": 8080}, {"containerPort": 9090}]),
                json!([{"containerPort": 8080}, {"containerPort": 9090}, {"containerPort": 29500}]),
            ),
            (
                json!([{"containerPort": 29500, "name": "meet", "protocol": "TCP"}]),
                json!([{"containerPort": 29500, "name": "meet", "protocol": "TCP"}]),
            ),
            (
                json!([{"containerPort": 29500, "protocol": "UDP"}]),
                json!([{"containerPort": 29500, "protocol": "UDP"}, {"containerPort": 29500}]),
            ),
        ] {
            let job_set = built(&job(&json!({"trainer": {}})), &torch(&json!({"ports": ports})));
            assert_eq!(job_set.pointer(&container(0)).unwrap()["ports"], expected, "{ports}");
        }
    }

    #[test]
    fn the_address_is_the_first_pod_of_the_training_step() {
        for (name, network, expected) in [
            ("node", json!({}), "tj-node-0-0.tj"),
            ("worker", json!({}), "tj-worker-0-0.tj"),
            ("node", json!({"subdomain": "net"}), "tj-node-0-0.net"),
            ("node", json!({"subdomain": ""}), "tj-node-0-0.tj"),
        ] {
            let step = step(name, Some("trainer"), &json!([{"name": "node"}]));
            let runtime = runtime(&json!({
                "mlPolicy": {"torch": {}},
                "template": {"spec": {"network": network, "replicatedJobs": [step]}},
            }));
            let job_set = built(&job(&json!({"trainer": {}})), &runtime);
            let node = job_set.pointer(&container(0)).unwrap();
            assert_eq!(variable(node, "PET_MASTER_ADDR").unwrap(), expected);
        }
    }

    #[test]
    fn an_injection_target_that_does_not_exist_is_an_error() {
        for (job_name, name) in [("node", "sidecar"), ("other", "node")] {
            let target = json!({"jobName": job_name, "containerNames": [name]});
            let runtime = runtime(&json!({
                "mlPolicy": {"torch": {"envInjection": {"targets": [target]}}},
                "template": {"spec": {"replicatedJobs": [
                    step("node", Some("trainer"), &json!([{"name": "node"}])),
                ]}},
            }));
            let error = build(&job(&json!({})), &runtime).unwrap_err().to_string();
            let expected = format!(
                "envInjection target podSet \"{job_name}\" container \"{name}\" not found in runtime template"
            );
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn a_torchtune_recipe_is_refused_and_nothing_that_looks_like_it() {
        let command = |command: Value| job(&json!({"trainer": {"command": command}}));
        let error = build(&command(json!(["tune", "run"])), &torch(&json!({}))).unwrap_err();
        assert!(error.to_string().contains("spec.trainer.command"), "{error}");
        for other in [json!(["tune", "run", "x"]), json!(["tune"]), json!([])] {
            assert!(build(&command(other), &torch(&json!({}))).is_ok());
        }
    }
}
