//! Flux: a resource manager that starts among the Pods of the trainer's replicated job and runs the user's command.
//!
//! | volume | source | mounted in `node` at | in `flux-installer` at |
//! |---|---|---|---|
//! | `flux-install` | scratch | `/mnt/flux` | `/mnt/flux` |
//! | `spack-install` | scratch | `/opt/software` | |
//! | `<TrainJob>-flux-entrypoint` | ConfigMap of that name, [`config`] | `/etc/flux-config` | `/etc/flux-config` |
//! | `flux-curve` | Secret `<TrainJob>-flux-curve` | `/curve` | |
//! | `shared-memory` | scratch in memory | `/dev/shm` | |
//!
//! | container | image | command |
//! |---|---|---|
//! | init container `flux-installer` | `FLUX_VIEW_IMAGE` | `/bin/bash /etc/flux-config/init.sh` |
//! | `node` | its own | `/bin/bash /etc/flux-config/entrypoint.sh`, then the user's command, word by word |
//!
//! | setting | default | where it goes |
//! |---|---|---|
//! | `FLUX_VIEW_IMAGE` | `ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy` | image |
//! | `FLUX_NETWORK_DEVICE` | `eth0` | `broker.toml` |
//! | `FLUX_QUEUE_POLICY` | `fcfs` | `broker.toml` |
//!
//! A setting is a variable of the TrainJob, else of the runtime's container `node`.
//!
//! Names and paths are Kubeflow Trainer's. What differs: a TrainJob needs neither `spec.trainer` nor
//! `numNodes`; the words of the command stay apart; arguments are found as with every other framework,
//! the TrainJob's else the runtime's; `/dev/shm` may be written to; keys are random; the container's exit
//! status is that of the command; the trainer's replicated job need not be called `node`.

use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, Container, EmptyDirVolumeSource, EnvVar, SecretVolumeSource,
    Volume, VolumeMount,
};
use trainjob_api::{constants::NODE, v1alpha1::runtime::FluxPolicy};

use super::{INSTALLER, config::Instance};
use crate::build::{
    draft::Draft,
    error::BuildError,
    objects::SecretClaim,
    objects::SecretContent,
    owner::child_metadata,
    replicated_job::{
        container, container_mut, pod_mut, upsert_init_container, upsert_mount, upsert_volume,
    },
};

const BASH: &str = "/bin/bash";
const INSTALL_VOLUME: &str = "flux-install";
const INSTALL_PATH: &str = "/mnt/flux";
const SOFTWARE_VOLUME: &str = "spack-install";
const SOFTWARE_PATH: &str = "/opt/software";
const CONFIG_PATH: &str = "/etc/flux-config";
const CURVE_VOLUME: &str = "flux-curve";
const CURVE_PATH: &str = "/curve";
const MEMORY_VOLUME: &str = "shared-memory";
const MEMORY_PATH: &str = "/dev/shm";

/// Writes the tables above into the draft. Without a replicated job for the trainer there is nothing to write.
pub(crate) fn enforce(draft: &mut Draft<'_>, policy: &FluxPolicy) -> Result<(), BuildError> {
    draft.apply_num_nodes();
    let Some(replicated_job) = draft.trainer() else { return Ok(()) };
    let settings = Settings::of(draft, container(replicated_job, NODE))?;
    let command = command(draft, container(replicated_job, NODE));
    let instance = Instance::of(draft, replicated_job, policy)?;
    let entry_point = ConfigMap {
        metadata: child_metadata(draft.job, "-flux-entrypoint"),
        data: Some(instance.files(&settings.device, &settings.queue_policy)),
        immutable: Some(true),
        ..ConfigMap::default()
    };
    let curve = SecretClaim {
        metadata: child_metadata(draft.job, "-flux-curve"),
        content: SecretContent::CurveKeys,
    };

    let config = entry_point.metadata.name.clone().unwrap_or_default();
    if let Some(replicated_job) = draft.trainer_mut() {
        if let Some(pod) = pod_mut(replicated_job) {
            for volume in volumes(&config, curve.metadata.name.clone()) {
                upsert_volume(pod, volume);
            }
            upsert_init_container(pod, installer(settings.image, &config));
        }
        if let Some(node) = container_mut(replicated_job, NODE) {
            for mount in [
                mount(INSTALL_VOLUME, INSTALL_PATH, false),
                mount(SOFTWARE_VOLUME, SOFTWARE_PATH, false),
                mount(&config, CONFIG_PATH, true),
                mount(CURVE_VOLUME, CURVE_PATH, true),
                mount(MEMORY_VOLUME, MEMORY_PATH, false),
            ] {
                upsert_mount(node, mount);
            }
        }
    }
    draft.entry_point = Some([script("entrypoint.sh"), command].concat());
    draft.config_maps.push(entry_point);
    draft.secrets.push(curve);
    Ok(())
}

/// What would run without Flux, as far as the template and the TrainJob tell.
fn command(draft: &Draft<'_>, node: Option<&Container>) -> Vec<String> {
    let trainer = draft.job.spec.trainer.as_ref();
    let command =
        trainer.and_then(|t| t.command.as_ref()).or(node.and_then(|n| n.command.as_ref()));
    let args = trainer.and_then(|t| t.args.as_ref()).or(node.and_then(|n| n.args.as_ref()));
    command.into_iter().chain(args).flatten().cloned().collect()
}

fn script(name: &str) -> Vec<String> {
    vec![BASH.into(), format!("{CONFIG_PATH}/{name}")]
}

/// What can be set by variables.
struct Settings {
    image: String,
    device: String,
    queue_policy: String,
}

impl Settings {
    fn of(draft: &Draft<'_>, node: Option<&Container>) -> Result<Self, BuildError> {
        let of_job = draft.job.spec.trainer.as_ref().and_then(|trainer| trainer.env.as_deref());
        let of_runtime = node.and_then(|node| node.env.as_deref());
        let sources = [
            ("spec.trainer.env", of_job.unwrap_or_default()),
            ("env of the runtime's container node", of_runtime.unwrap_or_default()),
        ];
        let setting = |name, default| setting(&sources, name, default);
        Ok(Self {
            image: setting(
                "FLUX_VIEW_IMAGE",
                "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy",
            )?,
            device: setting("FLUX_NETWORK_DEVICE", "eth0")?,
            queue_policy: setting("FLUX_QUEUE_POLICY", "fcfs")?,
        })
    }
}

/// The first of the sources that has the variable decides; an empty value asks for the default.
fn setting(
    sources: &[(&'static str, &[EnvVar])],
    name: &'static str,
    default: &str,
) -> Result<String, BuildError> {
    let found = sources.iter().find_map(|(field, variables)| {
        Some((*field, variables.iter().rfind(|variable| variable.name == name)?))
    });
    match found {
        Some((field, variable)) if variable.value_from.is_some() => {
            Err(BuildError::FluxSetting { field, name })
        }
        Some((_, variable)) => {
            let value = variable.value.as_deref().filter(|value| !value.is_empty());
            Ok(value.unwrap_or(default).into())
        }
        None => Ok(default.into()),
    }
}

fn volumes(config: &str, curve: Option<String>) -> [Volume; 5] {
    let scratch = |name: &str, medium: Option<&str>| Volume {
        name: name.into(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: medium.map(Into::into),
            ..EmptyDirVolumeSource::default()
        }),
        ..Volume::default()
    };
    [
        scratch(SOFTWARE_VOLUME, None),
        scratch(INSTALL_VOLUME, None),
        Volume {
            name: config.into(),
            config_map: Some(ConfigMapVolumeSource {
                name: config.into(),
                default_mode: Some(0o755),
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        },
        scratch(MEMORY_VOLUME, Some("Memory")),
        Volume {
            name: CURVE_VOLUME.into(),
            secret: Some(SecretVolumeSource {
                secret_name: curve,
                default_mode: Some(0o400),
                ..SecretVolumeSource::default()
            }),
            ..Volume::default()
        },
    ]
}

fn installer(image: String, config: &str) -> Container {
    Container {
        name: INSTALLER.into(),
        image: Some(image),
        command: Some(script("init.sh")),
        volume_mounts: Some(vec![
            mount(INSTALL_VOLUME, INSTALL_PATH, false),
            mount(config, CONFIG_PATH, true),
        ]),
        ..Container::default()
    }
}

fn mount(volume: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: volume.into(),
        mount_path: path.into(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::build::{
        Objects, Runtime, build,
        testing::{container, job, pod, replicated_job, runtime},
    };

    /// A runtime whose container `node` has these fields.
    fn flux(fields: &Value) -> Runtime {
        let mut node = json!({"name": "node"});
        node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        runtime(&json!({
            "mlPolicy": {"flux": {}},
            "template": {"spec": {"replicatedJobs": [replicated_job("node", Some("trainer"), &json!([node]))]}},
        }))
    }

    fn objects(spec: &Value, node: &Value) -> Objects {
        build(&job(spec), &flux(node)).unwrap()
    }

    fn node(objects: &Objects) -> Value {
        let job_set = serde_json::to_value(&objects.job_set).unwrap();
        job_set.pointer(&container(0)).unwrap().clone()
    }

    #[test]
    fn the_words_of_the_command_stay_apart() {
        let of_runtime = json!({"command": ["run"], "args": ["-v"]});
        for (spec, node_fields, expected) in [
            (json!({}), json!({}), json!([])),
            (json!({}), of_runtime.clone(), json!(["run", "-v"])),
            (json!({"trainer": {}}), of_runtime.clone(), json!(["run", "-v"])),
            (
                json!({"trainer": {"args": ["a b", ""]}}),
                of_runtime.clone(),
                json!(["run", "a b", ""]),
            ),
            (
                json!({"trainer": {"command": ["sh", "-c", "echo  $X"], "args": []}}),
                of_runtime.clone(),
                json!(["sh", "-c", "echo  $X"]),
            ),
            (json!({"trainer": {"command": ["mine"]}}), of_runtime, json!(["mine", "-v"])),
        ] {
            let node = node(&objects(&spec, &node_fields));
            let words = node["command"].as_array().unwrap();
            assert_eq!(words[..2], ["/bin/bash", "/etc/flux-config/entrypoint.sh"], "{spec}");
            assert_eq!(words[2..], *expected.as_array().unwrap(), "{spec}");
            assert_eq!(node["args"], Value::Null, "{spec}");
        }
    }

    #[test]
    fn the_nodes_are_the_job_s_else_the_runtime_s_else_one() {
        for (of_job, of_runtime, pods, hosts) in [
            (json!({"trainer": {"numNodes": 2}}), json!(4), 2, "tj-node-0-[0-1]\n"),
            (json!({"trainer": {}}), json!(4), 4, "tj-node-0-[0-3]\n"),
            (json!({}), json!(4), 4, "tj-node-0-[0-3]\n"),
            (json!({}), json!(null), 1, "tj-node-0-[0]\n"),
            // No Pod, and nothing to read the list; but no list that Flux could not read either.
            (json!({"trainer": {"numNodes": 0}}), json!(4), 0, "tj-node-0-[0]\n"),
        ] {
            let mut runtime = flux(&json!({}));
            runtime.spec.ml_policy.as_mut().unwrap().num_nodes =
                serde_json::from_value(of_runtime).unwrap();
            let objects = build(&job(&of_job), &runtime).unwrap();
            let replicated_jobs = objects.job_set.spec.replicated_jobs.as_ref().unwrap();
            assert_eq!(
                replicated_jobs[0].template.spec.as_ref().unwrap().parallelism,
                Some(pods),
                "{of_job}"
            );
            assert_eq!(
                objects.config_maps[0].data.as_ref().unwrap()["hostlist"],
                hosts,
                "{of_job}"
            );
        }
    }

    #[test]
    fn a_setting_is_the_job_s_else_the_runtime_s_else_the_default() {
        let env = |value: Option<&str>| {
            json!(
                value
                    .map(|value| json!({"name": "FLUX_VIEW_IMAGE", "value": value}))
                    .into_iter()
                    .collect::<Vec<_>>()
            )
        };
        let default = "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy";
        for (of_job, of_runtime, expected) in [
            (None, None, default),
            (None, Some("b"), "b"),
            (Some("a"), Some("b"), "a"),
            (Some(""), Some("b"), default),
        ] {
            let spec = json!({"trainer": {"env": env(of_job)}});
            let objects = objects(&spec, &json!({"env": env(of_runtime)}));
            let job_set = serde_json::to_value(&objects.job_set).unwrap();
            let image = format!("{}/spec/initContainers/0/image", pod(0));
            assert_eq!(job_set.pointer(&image).unwrap(), expected);
        }
    }

    #[test]
    fn a_setting_that_is_not_known_yet_is_an_error_unless_it_is_overridden() {
        let from = json!([{"name": "FLUX_QUEUE_POLICY", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]);
        let plain = json!([{"name": "FLUX_QUEUE_POLICY", "value": "easy"}]);
        let of_job = job(&json!({"trainer": {"env": from}}));
        let error = build(&of_job, &flux(&json!({}))).unwrap_err().to_string();
        assert!(error.starts_with("spec.trainer.env: FLUX_QUEUE_POLICY"), "{error}");
        let error = build(&job(&json!({})), &flux(&json!({"env": from}))).unwrap_err().to_string();
        assert!(error.contains("the runtime's container node: FLUX_QUEUE_POLICY"), "{error}");
        assert!(
            build(&job(&json!({"trainer": {"env": plain}})), &flux(&json!({"env": from}))).is_ok()
        );
    }

    #[test]
    fn shared_memory_may_be_written_to_and_secrets_may_not() {
        let node = node(&objects(&json!({}), &json!({})));
        let mounts = node["volumeMounts"].as_array().unwrap();
        for (path, read_only) in [("/dev/shm", Value::Null), ("/curve", json!(true))] {
            let mount = mounts.iter().find(|mount| mount["mountPath"] == path).unwrap();
            assert_eq!(mount["readOnly"], read_only, "{path}");
        }
    }

    #[test]
    fn template_without_a_trainer_replicated_job_is_left_alone() {
        let runtime =
            runtime(&json!({"mlPolicy": {"flux": {}}, "template": {"spec": {"replicatedJobs": [
                replicated_job("node", None, &json!([{"name": "node"}])),
            ]}}}));
        let objects = build(&job(&json!({})), &runtime).unwrap();
        assert!(objects.config_maps.is_empty() && objects.secrets.is_empty());
        assert_eq!(node(&objects), json!({"name": "node"}));
    }
}
