//! PyTorch: what its elastic launcher, `torchrun`, needs to find the other nodes.
//!
//! | variable | value |
//! |---|---|
//! | `PET_NNODES` | nodes of the trainer's replicated job |
//! | `PET_NPROC_PER_NODE` | `spec.trainer.numProcPerNode`, else `auto` with GPUs, else the CPUs, at least 1 |
//! | `PET_NODE_RANK` | index of the Pod in its Job |
//! | `PET_MASTER_ADDR` | first Pod of the trainer's replicated job, `<job>-node-0-0.<job>` in the usual runtime |
//! | `PET_MASTER_PORT` | 29500 |
//!
//! Container `node` of the trainer's replicated job gets the variables, after the user's own, and port 29500; see
//! [`rendezvous`](crate::build::rendezvous) for when. If its command is that of [`torchtune`], it gets no
//! `PET_MASTER_*`, because the recipe has an argument for that. The containers of
//! `mlPolicy.torch.envInjection` always get all variables.

use k8s_openapi::api::core::v1::EnvVar;
use trainjob_api::{constants::TRAINER_PORT, v1alpha1::runtime::TorchPolicy};

use super::{processes::Processes, torchtune::build as torchtune};
use crate::build::{
    draft::{Draft, per_node},
    error::BuildError,
    rendezvous::{host, index, participant, variable},
    replicated_job::{any_container_mut, ensure_port, nodes, upsert_env},
    resources::{cpus, gpus},
};

/// Writes the table above into the draft.
pub(crate) fn enforce(draft: &mut Draft<'_>, policy: &TorchPolicy) -> Result<(), BuildError> {
    draft.apply_num_nodes();
    let processes = processes(draft)?;
    let shape = [
        variable("PET_NNODES", draft.trainer().map_or(1, nodes).to_string()),
        variable("PET_NPROC_PER_NODE", processes.to_string()),
        index("PET_NODE_RANK"),
    ];
    let master = [
        variable("PET_MASTER_ADDR", host(draft)),
        variable("PET_MASTER_PORT", TRAINER_PORT.to_string()),
    ];

    if let Some((node, trainer)) = participant(draft) {
        upsert_env(node, trainer.env.iter().flatten().chain(&shape));
        ensure_port(node, TRAINER_PORT);
        if torchtune::is_asked_for(trainer) {
            draft.command = Some(torchtune::command(draft, trainer, processes)?);
        } else {
            upsert_env(node, &master);
        }
    }
    inject(draft, policy, &[shape.as_slice(), &master].concat())
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
            let job = draft.replicated_jobs_mut().find(|job| job.name == target.job_name);
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

/// Processes on each node. CPUs count where there are no GPUs.
fn processes(draft: &Draft<'_>) -> Result<Processes, BuildError> {
    let trainer = draft.job.spec.trainer.as_ref();
    if let Some(explicit) = trainer.and_then(|trainer| trainer.num_proc_per_node) {
        return Ok(Processes::Count(explicit.into()));
    }
    if per_node(draft, gpus)? > 0 {
        return Ok(Processes::Auto);
    }
    Ok(Processes::Count(per_node(draft, cpus)?.max(1)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::build::{
        build,
        testing::{built, container, job, replicated_job, runtime, torch, variable},
    };

    /// The container of the trainer's replicated job of a TrainJob on a runtime with these resources.
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
    fn an_injection_target_that_does_not_exist_is_an_error() {
        for (job_name, name) in [("node", "sidecar"), ("other", "node")] {
            let target = json!({"jobName": job_name, "containerNames": [name]});
            let runtime = runtime(&json!({
                "mlPolicy": {"torch": {"envInjection": {"targets": [target]}}},
                "template": {"spec": {"replicatedJobs": [
                    replicated_job("node", Some("trainer"), &json!([{"name": "node"}])),
                ]}},
            }));
            let error = build(&job(&json!({})), &runtime).unwrap_err().to_string();
            let expected = format!(
                "envInjection target podSet \"{job_name}\" container \"{name}\" not found in runtime template"
            );
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
