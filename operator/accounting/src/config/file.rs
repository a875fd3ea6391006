//! The configuration file of `trainjob-accounting`.
//!
//! This is the one place of a setting: its name, what it means, its bounds and its default. The table of
//! `docs/accounting.md` is compared with these types by a test.

use schemars::JsonSchema;
use serde::Deserialize;
use trainjob_accounting_core::settings::GPU_RESOURCES;
use trainjob_process::{
    config::{
        file::{Health, MetricsAuth},
        value::{BindAddress, Concurrency, Count, GoDuration, Interval, Whole, or_default},
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
    /// How Pods are counted.
    #[serde(default, deserialize_with = "or_default")]
    pub accounting: Accounting,
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
    /// A configuration of the accounting program.
    #[default]
    AccountingConfiguration,
}

sections! {
    /// `leaderElection`: which of several replicas works.
    pub struct LeaderElection {
        /// Whether one of several replicas is elected to act. The operator marks no Pod for a program that holds no Lease.
        pub leader_elect: bool = true,
        /// How long others wait for a leader that they do not hear of.
        pub lease_duration: GoDuration = GoDuration::seconds(15),
        /// How long a leader goes on without having renewed; less than `leaseDuration`.
        pub renew_deadline: GoDuration = GoDuration::seconds(10),
        /// How long a leader waits before it renews; less than 5/6 of `renewDeadline`.
        pub retry_period: GoDuration = GoDuration::seconds(2),
        /// Name of the Lease.
        pub resource_name: String = "trainjob-accounting".to_owned(),
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
        /// Whether metrics tell namespaces apart; otherwise all are `_all`.
        pub by_namespace: bool = true,
        /// How many namespaces have a name in the metrics; the others are `_other`.
        pub max_namespaces: Count = Whole::of::<1_000>(),
    }

    /// `accounting`: how Pods are counted.
    pub struct Accounting {
        /// How long a Pod that has ended and that nobody waits for may wait for others, to be stored with them (AG9).
        pub batch_period: Interval<1_000, 60_000> = Interval::of::<5_000>(),
        /// How long a Pod that somebody waits for is held at most, if its record cannot be written (AH2), from 10s to 24h;
        /// 0: for ever.
        pub hold_limit: GoDuration = GoDuration::seconds(300),
        /// The exact names of the resources that are GPUs.
        pub gpu_resources: Vec<String> = GPU_RESOURCES.map(str::to_owned).into(),
        /// Labels of the TrainJob that its record gets, at most 16.
        pub copy_labels: Vec<String> = Vec::new(),
        /// Whether messages of failures are kept. They may have secrets in them, and live longer here.
        pub failure_messages: bool = true,
        /// How many requests are under way at the same time. Fewer than 3 count as 3.
        pub concurrency: Concurrency = Whole::of::<64>(),
    }
}
