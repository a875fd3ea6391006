//! MPI: what `mpirun` on the launcher needs to reach the other nodes by ssh.
//!
//! | job | what it gets | value |
//! |---|---|---|
//! | `node` | Pods | `spec.trainer.numNodes`; if the launcher is a node too, one less, but at least 1 |
//! | `node`, `launcher` | volume `mpi-ssh-auth` | Secret `<TrainJob>-mpi-ssh-auth`; mounted at `sshAuthMountPath` |
//! | `launcher` | volume `mpi-hostfile` | ConfigMap `<TrainJob>-mpi-hostfile`; mounted at `/etc/mpi` |
//! | `launcher` | `OMPI_MCA_orte_default_hostfile` | `/etc/mpi/hostfile` |
//! | `launcher` | `OMPI_MCA_orte_keep_fqdn_hostnames` | `true` |
//! | `launcher` | `OMPI_MCA_orte_set_default_slots` | slots |
//! | `launcher` | `OMPI_MCA_plm_rsh_args` | `-o ConnectionAttempts=10` |
//! | `node` | resources and variables of `spec.trainer` | only if the launcher is a node too |
//!
//! *Slots* are the processes of a node: `spec.trainer.numProcPerNode`, else the runtime's; where that
//! is 1, the GPUs. The hostfile has a line for each Pod of `node`, and of `launcher` if that is a node
//! too, in the template's order.
//!
//! The two replicated jobs are known by their names, whichever is labelled as the trainer's replicated job; mounts and
//! variables go to their container `node`. A TrainJob without `spec.trainer` gets all of it as well.
//!
//! The counts are Kubeflow Trainer's even where they surprise: 1 node with the launcher as a node makes
//! two Pods, and the runtime's own `numNodes` goes to the replicated job that is labelled, be it the launcher.
//! Kueue computes a job's quota with Trainer's code, and what runs must be what was counted.

use std::{collections::BTreeMap, fmt::Write};

use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, EnvVar, KeyToPath, SecretVolumeSource, Volume, VolumeMount,
};
use trainjob_api::{constants::NODE, jobset::ReplicatedJob, v1alpha1::runtime::MpiPolicy};

use super::LAUNCHER;
use crate::build::{
    draft::Draft,
    endpoints::addresses,
    error::BuildError,
    objects::SecretClaim,
    objects::SecretContent,
    owner::child_metadata,
    replicated_job::{
        container, container_mut, pod_mut, set_nodes, upsert_env, upsert_mount, upsert_volume,
    },
    resources::gpus,
};

/// The only implementation there is, and what an absent one means.
const OPEN_MPI: &str = "OpenMPI";
/// What an absent `sshAuthMountPath` means.
const DEFAULT_SSH_PATH: &str = "/root/.ssh";

const SSH_VOLUME: &str = "mpi-ssh-auth";
const HOSTFILE_VOLUME: &str = "mpi-hostfile";
const HOSTFILE_DIRECTORY: &str = "/etc/mpi";
const HOSTFILE: &str = "hostfile";
/// What a ConfigMap can hold.
const LONGEST_HOSTFILE: usize = 1 << 20;

/// Writes the table above into the draft.
pub(crate) fn enforce(draft: &mut Draft<'_>, policy: &MpiPolicy) -> Result<(), BuildError> {
    let implementation = policy.mpi_implementation.as_deref().unwrap_or(OPEN_MPI);
    if implementation != OPEN_MPI {
        return Err(BuildError::MpiImplementation(implementation.into()));
    }
    apply_num_nodes(draft);

    let slots = slots(draft, policy)?;
    let hostfile = ConfigMap {
        metadata: child_metadata(draft.job, "-mpi-hostfile"),
        data: Some(BTreeMap::from([(HOSTFILE.into(), hostfile(draft, slots)?)])),
        immutable: Some(true),
        ..ConfigMap::default()
    };
    let ssh_keys = SecretClaim {
        metadata: child_metadata(draft.job, "-mpi-ssh-auth"),
        content: SecretContent::SshKeys,
    };

    let path = policy.ssh_auth_mount_path.as_deref().filter(|path| !path.is_empty());
    let ssh = (ssh_volume(ssh_keys.metadata.name.clone()), path.unwrap_or(DEFAULT_SSH_PATH));
    let hosts = (hostfile_volume(&hostfile), HOSTFILE_DIRECTORY);
    for replicated_job in draft.replicated_jobs_mut() {
        if replicated_job.name == NODE || replicated_job.name == LAUNCHER {
            give(replicated_job, &ssh);
        }
        if replicated_job.name == LAUNCHER {
            give(replicated_job, &hosts);
            if let Some(node) = container_mut(replicated_job, NODE) {
                upsert_env(node, &variables(slots));
            }
        }
    }
    draft.config_maps.push(hostfile);
    draft.secrets.push(ssh_keys);
    Ok(())
}

/// Gives the job `node` the nodes that the TrainJob asks for, if it asks.
fn apply_num_nodes(draft: &mut Draft<'_>) {
    let wanted = draft.job.spec.trainer.as_ref().and_then(|trainer| trainer.num_nodes);
    let launcher_is_node = draft.launcher_is_node;
    let node = draft.replicated_jobs_mut().find(|replicated_job| replicated_job.name == NODE);
    if let (Some(wanted), Some(node)) = (wanted, node) {
        let besides = if launcher_is_node { wanted.saturating_sub(1).max(1) } else { wanted };
        set_nodes(node, besides);
    }
}

/// Processes on each node.
///
/// The GPUs are those that the nodes get, the TrainJob's resources over the runtime's. (Kubeflow Trainer
/// looks at the TrainJob's alone as soon as it has some, and at those of the launcher if it comes first.)
fn slots(draft: &Draft<'_>, policy: &MpiPolicy) -> Result<i64, BuildError> {
    if let Some(of_job) = draft.job.spec.trainer.as_ref().and_then(|t| t.num_proc_per_node) {
        return Ok(of_job.into());
    }
    let of_runtime = policy.num_proc_per_node.unwrap_or(1);
    if of_runtime != 1 {
        return Ok(of_runtime.into());
    }
    let mut replicated_jobs = draft.spec.replicated_jobs.iter().flatten();
    let node = replicated_jobs
        .find(|replicated_job| replicated_job.name == NODE)
        .or_else(|| draft.trainer());
    let resources =
        node.and_then(|replicated_job| container(replicated_job, NODE)?.resources.as_ref());
    Ok(resources.map_or(Ok(1), gpus)?.max(1))
}

fn hostfile(draft: &Draft<'_>, slots: i64) -> Result<String, BuildError> {
    let is_host = |replicated_job: &&ReplicatedJob| {
        replicated_job.name == NODE || (draft.launcher_is_node && replicated_job.name == LAUNCHER)
    };
    let mut hostfile = String::new();
    for replicated_job in draft.spec.replicated_jobs.iter().flatten().filter(is_host) {
        for address in addresses(draft, replicated_job) {
            // Writing to a String cannot fail.
            let _ = writeln!(hostfile, "{address} slots={slots}");
            if hostfile.len() > LONGEST_HOSTFILE {
                return Err(BuildError::TooManyHosts);
            }
        }
    }
    Ok(hostfile)
}

/// Adds the volume to the job's Pods, and mounts it in their container `node`.
fn give(replicated_job: &mut ReplicatedJob, (volume, path): &(Volume, &str)) {
    if let Some(pod) = pod_mut(replicated_job) {
        upsert_volume(pod, volume.clone());
    }
    if let Some(node) = container_mut(replicated_job, NODE) {
        let mount = VolumeMount {
            name: volume.name.clone(),
            mount_path: (*path).into(),
            ..VolumeMount::default()
        };
        upsert_mount(node, mount);
    }
}

/// The key pair, under the names that ssh looks for.
fn ssh_volume(secret_name: Option<String>) -> Volume {
    let items = vec![
        file("ssh-privatekey", "id_rsa", 0o640),
        file("ssh-publickey", "id_rsa.pub", 0o644),
        file("ssh-publickey", "authorized_keys", 0o644),
    ];
    Volume {
        name: SSH_VOLUME.into(),
        secret: Some(SecretVolumeSource {
            secret_name,
            default_mode: Some(0o400),
            items: Some(items),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn hostfile_volume(config_map: &ConfigMap) -> Volume {
    Volume {
        name: HOSTFILE_VOLUME.into(),
        config_map: Some(ConfigMapVolumeSource {
            name: config_map.metadata.name.clone().unwrap_or_default(),
            items: Some(vec![file(HOSTFILE, HOSTFILE, 0o444)]),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn file(key: &str, path: &str, mode: i32) -> KeyToPath {
    KeyToPath { key: key.into(), path: path.into(), mode: Some(mode) }
}

fn variables(slots: i64) -> [EnvVar; 4] {
    let variable = |name: &str, value: String| EnvVar {
        name: name.into(),
        value: Some(value),
        ..EnvVar::default()
    };
    [
        variable("OMPI_MCA_orte_default_hostfile", format!("{HOSTFILE_DIRECTORY}/{HOSTFILE}")),
        variable("OMPI_MCA_orte_keep_fqdn_hostnames", "true".into()),
        variable("OMPI_MCA_orte_set_default_slots", slots.to_string()),
        variable("OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10".into()),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_api::TrainJob;

    use crate::build::{
        BuildError, Objects, Runtime, build,
        testing::{job, replicated_job, runtime},
    };

    /// A runtime with a job `node`, of which `node` is the container, and a labelled `launcher`.
    fn mpi(policy: &Value, node: &Value) -> Runtime {
        let mut container = json!({"name": "node"});
        container.as_object_mut().unwrap().extend(node.as_object().unwrap().clone());
        runtime(&json!({"mlPolicy": {"mpi": policy}, "template": {"spec": {"replicatedJobs": [
            replicated_job("node", None, &json!([container])),
            replicated_job("launcher", Some("trainer"), &json!([{"name": "node"}])),
        ]}}}))
    }

    fn objects(trainer: &Value, policy: &Value, node: &Value) -> Objects {
        build(&job(&json!({"trainer": trainer})), &mpi(policy, node)).unwrap()
    }

    fn hostfile(objects: &Objects) -> &str {
        &objects.config_maps[0].data.as_ref().unwrap()["hostfile"]
    }

    fn pods(objects: &Objects, index: usize) -> i32 {
        let replicated_jobs = objects.job_set.spec.replicated_jobs.as_ref().unwrap();
        replicated_jobs[index].template.spec.as_ref().unwrap().parallelism.unwrap()
    }

    #[test]
    fn the_launcher_is_one_of_the_nodes_but_never_the_only_one() {
        for (nodes, launcher_is_node, expected) in [
            (json!(1), true, 1),
            (json!(2), true, 1),
            (json!(3), true, 2),
            (json!(0), true, 1),
            (json!(0), false, 0),
            (json!(1), false, 1),
            (json!(4), false, 4),
            (json!(null), true, 1),
            (json!(null), false, 1),
        ] {
            let policy = json!({"runLauncherAsNode": launcher_is_node});
            let objects = objects(&json!({"numNodes": nodes}), &policy, &json!({}));
            assert_eq!((pods(&objects, 0), pods(&objects, 1)), (expected, 1), "{nodes} {policy}");
        }
    }

    #[test]
    fn num_nodes_of_the_runtime_goes_to_the_labelled_replicated_job() {
        let spec = |node, launcher| {
            runtime(
                &json!({"mlPolicy": {"numNodes": 3, "mpi": {}}, "template": {"spec": {"replicatedJobs": [
                    replicated_job("node", node, &json!([{"name": "node"}])),
                    replicated_job("launcher", launcher, &json!([{"name": "node"}])),
                ]}}}),
            )
        };
        for (runtime, expected) in
            [(spec(Some("trainer"), None), (3, 1)), (spec(None, Some("trainer")), (1, 3))]
        {
            let objects = build(&job(&json!({})), &runtime).unwrap();
            assert_eq!((pods(&objects, 0), pods(&objects, 1)), expected);
        }
    }

    #[test]
    fn the_slots_of_a_node_are_its_processes_or_its_gpus() {
        let gpus = |count: i32| json!({"resources": {"limits": {"nvidia.com/gpu": count}}});
        let memory = json!({"limits": {"memory": "8Gi"}});
        for (trainer, policy, node, expected) in [
            (json!({}), json!({}), json!({}), 1),
            (json!({}), json!({"numProcPerNode": 2}), json!({}), 2),
            (json!({}), json!({"numProcPerNode": 2}), gpus(4), 2),
            (json!({}), json!({"numProcPerNode": 1}), gpus(4), 4),
            (json!({}), json!({}), gpus(4), 4),
            (json!({"numProcPerNode": 3}), json!({}), gpus(4), 3),
            // What counts is what the nodes get. Memory alone takes no GPU away; GPUs of the TrainJob
            // reach the workers only if the launcher is one of them.
            (json!({"resourcesPerNode": memory}), json!({}), gpus(4), 4),
            (json!({"resourcesPerNode": gpus(8)["resources"]}), json!({}), gpus(4), 4),
            (
                json!({"resourcesPerNode": gpus(8)["resources"]}),
                json!({"runLauncherAsNode": true}),
                gpus(4),
                8,
            ),
        ] {
            let objects = objects(&trainer, &policy, &node);
            let line = format!("tj-node-0-0.tj slots={expected}\n");
            assert!(hostfile(&objects).starts_with(&line), "{trainer} on {policy} with {node}");
        }
    }

    #[test]
    fn an_absent_field_is_the_schema_s_default() {
        let objects = objects(&json!({}), &json!({}), &json!({}));
        let job_set = serde_json::to_value(&objects.job_set).unwrap();
        for index in 0..2 {
            let container = job_set.pointer(&crate::build::testing::container(index)).unwrap();
            assert_eq!(container["volumeMounts"][0]["mountPath"], "/root/.ssh");
        }
        assert_eq!(hostfile(&objects), "tj-node-0-0.tj slots=1\n");
    }

    #[test]
    fn an_implementation_that_is_not_known_is_an_error() {
        for name in ["", "Intel", "MPICH", "openmpi"] {
            let runtime = mpi(&json!({"mpiImplementation": name}), &json!({}));
            let error = build(&job(&json!({})), &runtime).unwrap_err();
            assert_eq!(error, BuildError::MpiImplementation(name.into()));
            assert!(error.to_string().contains("write OpenMPI"), "{error}");
        }
    }

    #[test]
    fn what_the_runtime_mounts_at_the_same_place_gives_way() {
        let mount = json!({"volumeMounts": [{"name": "mine", "mountPath": "/root/.ssh"}, {"name": "a", "mountPath": "/a"}]});
        let objects = objects(&json!({}), &json!({}), &mount);
        let job_set = serde_json::to_value(&objects.job_set).unwrap();
        let container = job_set.pointer(&crate::build::testing::container(0)).unwrap();
        let expected = json!([{"name": "mpi-ssh-auth", "mountPath": "/root/.ssh"}, {"name": "a", "mountPath": "/a"}]);
        assert_eq!(container["volumeMounts"], expected);
    }

    #[test]
    fn more_hosts_than_fit_are_an_error_and_not_a_lot_of_memory() {
        let trainer = json!({"numNodes": i32::MAX});
        let job: TrainJob = job(&json!({"trainer": trainer}));
        let error = build(&job, &mpi(&json!({}), &json!({}))).unwrap_err();
        assert_eq!(error, BuildError::TooManyHosts);
        assert!(error.to_string().contains("spec.trainer.numNodes"), "{error}");
    }
}
