//! The configuration file of `trainjob-retention`.
//!
//! This is the one place of a setting: its name, what it means, its bounds and its default. The table of
//! `docs/retention.md` (9) is compared with these types by a test.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trainjob_process::{
    config::{
        file::{Health, MetricsAuth},
        value::{BindAddress, Concurrency, Count, GoDuration, PerSecond, Whole, or_default},
    },
    sections,
};

/// A whole file.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Configuration {
    /// The version of the format. Required.
    pub api_version: ApiVersion,
    /// What the file is. Required.
    pub kind: Kind,
    /// Which of several replicas works.
    #[serde(default, deserialize_with = "or_default")]
    pub leader_election: LeaderElection,
    /// The metrics server.
    #[serde(default, deserialize_with = "or_default")]
    pub metrics: Metrics,
    /// The health server.
    #[serde(default, deserialize_with = "or_default")]
    pub health: Health,
    /// What is deleted, and how fast.
    #[serde(default, deserialize_with = "or_default")]
    pub retention: Retention,
}

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The only one there is.
    #[default]
    #[serde(rename = "config.lifecycle.trainjob.dev/v1alpha1")]
    V1Alpha1,
}

/// What the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
pub enum Kind {
    /// A configuration of the retention engine.
    #[default]
    RetentionConfiguration,
}

/// A kind of object that policies may be about. Policies for any other kind do nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    /// The API group; `""` is the core group, of which only Pod can be a target.
    pub api_group: String,
    /// The kind, such as Job.
    pub kind: String,
    /// Its plural name in the API, such as jobs.
    pub resource: String,
    /// Whether rules may delete the Pods of its objects before the objects.
    #[serde(default)]
    pub pods: bool,
    /// Whether rules may delete the controller owner of its objects.
    #[serde(default)]
    pub owner_delete: bool,
}

sections! {
    /// `leaderElection`: which of several replicas works.
    pub struct LeaderElection {
        /// Whether one of several replicas is elected to act. Without an election whoever runs acts.
        pub leader_elect: bool = false,
        /// How long others wait for a leader that they do not hear of.
        pub lease_duration: GoDuration = GoDuration::seconds(15),
        /// How long a leader goes on without having renewed; less than `leaseDuration`.
        pub renew_deadline: GoDuration = GoDuration::seconds(10),
        /// How long a leader waits before it renews; less than 5/6 of `renewDeadline`.
        pub retry_period: GoDuration = GoDuration::seconds(2),
        /// Name of the Lease.
        pub resource_name: String = "trainjob-retention".to_owned(),
        /// Namespace of the Lease; `""`: that of the process.
        pub resource_namespace: String = String::new(),
    }

    /// `metrics`: the metrics server.
    pub struct Metrics {
        /// Address that metrics are served on, at `/metrics`; `"0"`: nowhere.
        pub bind_address: BindAddress = BindAddress::everywhere(8_443),
        /// Whether metrics are served over TLS.
        pub secure_serving: bool = true,
        /// Who may read metrics.
        pub auth: MetricsAuth = MetricsAuth::default(),
    }

    /// `retention`: what is deleted, and how fast.
    pub struct Retention {
        /// The kinds that policies may be about, each as `{apiGroup, kind, resource, pods, ownerDelete}`.
        pub targets: Vec<Target> = Vec::new(),
        /// How many objects are deleted a second at most, by all policies together; 0: no limit.
        pub deletes_per_second: PerSecond = PerSecond::of::<50>(),
        /// How many requests are under way at the same time. Fewer than 3 count as 3.
        pub concurrency: Concurrency = Whole::of::<32>(),
        /// Namespaces that a policy of the cluster has to name, beside those of Kubernetes and of the engine (R37).
        pub excluded_namespaces: Vec<String> = Vec::new(),
        /// How long nothing is deleted after the API server's clock has jumped by more than 60 seconds, in seconds (R46).
        pub clock_jump_pause_seconds: Count = Whole::of::<60>(),
    }
}
