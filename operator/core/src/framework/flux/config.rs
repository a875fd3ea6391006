//! The files of a Flux instance: two scripts, the same for every TrainJob, and what they read.
//!
//! | file | what it says |
//! |---|---|
//! | `init.sh` | how Flux gets into the Pod |
//! | `entrypoint.sh` | how a Pod becomes a broker, and the first one runs the command |
//! | `hostlist` | `<TrainJob>-<replicated job>-0-[0-<n-1>]` |
//! | `broker.toml` | where the brokers find each other and what they schedule |
//! | `settings.sh` | what the scripts need of the TrainJob: hosts, resources, `flux run`'s options |
//!
//! With N nodes of T tasks and G GPUs each, `flux run` gets `-N <N> -n <T*N>`, and for each task its share
//! of the GPUs, `-g <G/T>`. With fewer GPUs than tasks there are no shares: the tasks of a node see all
//! of its GPUs. (Kubeflow Trainer asks for all GPUs of a node for each task, which no node has.)

use std::collections::BTreeMap;

use serde_json::Value;
use trainjob_api::{constants::NODE, jobset::ReplicatedJob, v1alpha1::runtime::FluxPolicy};

use crate::build::{
    draft::Draft,
    endpoints::{host_prefix, subdomain},
    error::BuildError,
    replicated_job::{container, nodes},
    resources::gpus,
};

/// A Flux instance.
#[derive(Debug)]
pub(super) struct Instance {
    /// Its hosts, but for the number.
    host_prefix: String,
    /// Where their names are known.
    subdomain: String,
    /// How many there are. None is one, for the sake of the texts, which nothing will read then.
    nodes: i64,
    /// Tasks on each.
    tasks: i64,
    /// GPUs on each.
    gpus: i64,
}

impl Instance {
    /// The instance that the Pods of the replicated job make.
    ///
    /// The GPUs are those that the container gets, the TrainJob's resources over the runtime's.
    pub(super) fn of(
        draft: &Draft<'_>,
        replicated_job: &ReplicatedJob,
        policy: &FluxPolicy,
    ) -> Result<Self, BuildError> {
        let of_job = draft.job.spec.trainer.as_ref().and_then(|trainer| trainer.num_proc_per_node);
        let resources = container(replicated_job, NODE).and_then(|node| node.resources.as_ref());
        Ok(Self {
            host_prefix: host_prefix(draft, replicated_job, 0),
            subdomain: subdomain(draft).into(),
            nodes: nodes(replicated_job).max(1).into(),
            tasks: of_job.or(policy.num_proc_per_node).unwrap_or(1).max(1).into(),
            gpus: resources.map_or(Ok(0), gpus)?,
        })
    }

    /// Its files, by name.
    pub(super) fn files(&self, device: &str, queue_policy: &str) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("init.sh".into(), include_str!("init.sh").into()),
            ("entrypoint.sh".into(), include_str!("entrypoint.sh").into()),
            ("hostlist".into(), format!("{}\n", self.hosts())),
            ("broker.toml".into(), self.broker(device, queue_policy)),
            ("settings.sh".into(), self.settings()),
        ])
    }

    fn hosts(&self) -> String {
        format!("{}[{}]", self.host_prefix, range(self.nodes))
    }

    fn broker(&self, device: &str, queue_policy: &str) -> String {
        let bind = quoted(format!("tcp://{device}:%p"));
        let connect = quoted(format!("tcp://%h.{}:%p", self.subdomain));
        let hosts = quoted(self.hosts());
        let queue_policy = quoted(queue_policy.into());
        format!(
            r#"[access]
allow-guest-user = true
allow-root-owner = true

[resource]
path = "/mnt/flux/config/etc/flux/system/R"

[bootstrap]
curve_cert = "/mnt/flux/config/etc/curve/curve.cert"
default_port = 8050
default_bind = {bind}
default_connect = {connect}
hosts = [{{ host = {hosts} }}]

[archive]
dbpath = "/mnt/flux/config/var/lib/flux/job-archive.sqlite"
period = "1m"
busytimeout = "50s"

[sched-fluxion-qmanager]
queue-policy = {queue_policy}
"#
        )
    }

    fn settings(&self) -> String {
        let hosts = word(&self.hosts());
        let lead = format!("{}0", self.host_prefix);
        let lead_address = word(&format!("{lead}.{}", self.subdomain));
        let lead = word(&lead);
        let run_flags = self.run_flags();
        let resources = self.resources();
        format!(
            "hosts={hosts}\nlead={lead}\nlead_address={lead_address}\n\
             run_flags=({run_flags})\nresources=({resources})\n"
        )
    }

    fn run_flags(&self) -> String {
        let size = format!("-N {} -n {}", self.nodes, self.tasks * self.nodes);
        match (self.gpus, self.gpus / self.tasks) {
            (0, _) => size,
            // Flux hides all GPUs from a job that has none of its own.
            (_, 0) => format!("{size} -o gpu-affinity=off"),
            (_, share) => format!("{size} -g {share}"),
        }
    }

    fn resources(&self) -> String {
        let cores = format!("--cores={}", range(self.tasks));
        match self.gpus {
            0 => cores,
            gpus => format!("{cores} --gpu={}", range(gpus)),
        }
    }
}

/// The first `count` numbers, as Flux writes them.
fn range(count: i64) -> String {
    if count == 1 { "0".into() } else { format!("0-{}", count - 1) }
}

/// A string of TOML, which are those of JSON.
fn quoted(text: String) -> String {
    Value::String(text).to_string()
}

/// A word of the shell.
fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn instance(nodes: i64, tasks: i64, gpus: i64) -> Instance {
        Instance { host_prefix: String::new(), subdomain: String::new(), nodes, tasks, gpus }
    }

    #[test]
    fn every_task_gets_its_share_of_the_gpus_of_its_node() {
        for (nodes, tasks, gpus, flags, resources) in [
            (1, 1, 0, "-N 1 -n 1", "--cores=0"),
            (4, 1, 0, "-N 4 -n 4", "--cores=0"),
            (4, 2, 0, "-N 4 -n 8", "--cores=0-1"),
            (1, 1, 1, "-N 1 -n 1 -g 1", "--cores=0 --gpu=0"),
            (4, 1, 8, "-N 4 -n 4 -g 8", "--cores=0 --gpu=0-7"),
            (4, 8, 8, "-N 4 -n 32 -g 1", "--cores=0-7 --gpu=0-7"),
            (4, 2, 8, "-N 4 -n 8 -g 4", "--cores=0-1 --gpu=0-7"),
            (1, 3, 8, "-N 1 -n 3 -g 2", "--cores=0-2 --gpu=0-7"),
            (1, 4, 2, "-N 1 -n 4 -o gpu-affinity=off", "--cores=0-3 --gpu=0-1"),
        ] {
            let instance = instance(nodes, tasks, gpus);
            assert_eq!(instance.run_flags(), flags, "{instance:?}");
            assert_eq!(instance.resources(), resources, "{instance:?}");
        }
    }

    #[test]
    fn a_text_stays_one_string_and_one_word() {
        let hostile = "a'b\"c\nd\\";
        assert_eq!(quoted(hostile.into()), r#""a'b\"c\nd\\""#);
        assert_eq!(word(hostile), "'a'\\''b\"c\nd\\'");
    }

    #[test]
    fn scripts_start_with_the_name_of_their_shell() {
        let files = instance(1, 1, 0).files("eth0", "fcfs");
        for name in ["init.sh", "entrypoint.sh"] {
            assert!(files[name].starts_with("#!/bin/bash\n"), "{name}");
        }
    }

    #[test]
    fn no_name_ends_in_a_domain_that_is_only_assumed() {
        let files = Instance { subdomain: "net".into(), ..instance(2, 1, 0) }.files("eth0", "fcfs");
        assert!(files["broker.toml"].contains("default_connect = \"tcp://%h.net:%p\""));
        assert!(files.values().all(|text| !text.contains("cluster.local")));
    }
}
