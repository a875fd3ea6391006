//! The configuration file, as Kubeflow Trainer defines it, plus the sections `lifecycle`,
//! `accounting` and `certificates`.
//!
//! This is the one place of a setting: its name, what it means, its bounds and its default. The tables of
//! `docs/configuration.md` and of the chart's README and the schema of the chart's values are generated from these
//! types by `cargo run --bin settingsgen`. Links in descriptions are relative to `docs`.
//!
//! Every field is checked when a file is read, also one that has no effect in this release.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trainjob_api::crd::FieldUpdates;
use trainjob_core::{
    lifecycle::{
        deadline::{Clock, DEFAULT_WARNING},
        hold::DEFAULT_MAXIMUM,
    },
    mark::Mode,
    observed::Propagation,
};

use super::{
    gates::Gate,
    value::{
        BindAddress, CertificateName, Concurrency, Count, EndpointName, GoDuration, Interval,
        PerSecond, Port, Whole, or_default, sections, unless_empty,
    },
};

/// The kind whose entry in `controller.groupKindConcurrency` counts.
pub(super) const TRAIN_JOB: &str = "TrainJob.trainer.kubeflow.org";
/// The most seconds of a limit: those of a TTL, 68 years.
const MOST_SECONDS: u32 = i32::MAX.unsigned_abs();
/// How many TrainJobs are worked on at the same time by default.
pub(super) const CONCURRENCY: Concurrency = Whole::of::<64>();

/// A whole file.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Configuration {
    /// The version of the format. Required.
    pub api_version: ApiVersion,
    /// What the file is. Required.
    pub kind: Kind,
    /// The admission server.
    #[serde(default, deserialize_with = "or_default")]
    pub webhook: Webhook,
    /// Which of several replicas works.
    #[serde(default, deserialize_with = "or_default")]
    pub leader_election: LeaderElection,
    /// The metrics server.
    #[serde(default, deserialize_with = "or_default")]
    pub metrics: Metrics,
    /// The health server.
    #[serde(default, deserialize_with = "or_default")]
    pub health: Health,
    /// How much is done at the same time.
    #[serde(default, deserialize_with = "or_default")]
    pub controller: Controller,
    /// Who makes the certificate of the admission server.
    #[serde(default, deserialize_with = "or_default")]
    pub cert_management: CertManagement,
    /// The limit of requests to the API server. Absent: no limit.
    pub client_connection: Option<ClientConnection>,
    /// The server that Pods report their progress to. No effect in this release.
    pub status_server: Option<StatusServer>,
    /// Features that are switched on or off. `TrainJobStatus` and `AllAlpha` are refused when they are `true`: the
    /// status server is not part of this release.
    #[serde(default, deserialize_with = "or_default")]
    pub feature_gates: BTreeMap<Gate, bool>,
    /// TLS of the admission server.
    #[serde(default, deserialize_with = "or_default")]
    pub tls: Tls,
    /// The end of a job's life; not part of Trainer's format.
    #[serde(default, deserialize_with = "or_default")]
    pub lifecycle: Lifecycle,
    /// Whether Pods are marked so that they are counted; not part of Trainer's format.
    #[serde(default, deserialize_with = "or_default")]
    pub accounting: Accounting,
    /// More about the certificate of the admission server; not part of Trainer's format.
    #[serde(default, deserialize_with = "or_default")]
    pub certificates: Certificates,
}

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The only one there is.
    #[default]
    #[serde(rename = "config.trainer.kubeflow.org/v1alpha1")]
    V1Alpha1,
}

/// What the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
pub enum Kind {
    /// A configuration of the operator.
    #[default]
    Configuration,
}

/// What a leader holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResourceLock {
    /// Nothing is said, as in a file that Go has written: a Lease.
    #[serde(rename = "")]
    Unnamed,
    /// A Lease.
    #[default]
    Leases,
}

sections! {
    /// `webhook`: the admission server.
    pub struct Webhook {
        /// Port that admission is served on.
        pub port: Port = Whole::of::<9_443>(),
        /// Address that admission is served on: an IP address or `localhost`; `""`: every interface.
        pub host: String = String::new(),
    }

    /// `leaderElection`: which of several replicas works.
    pub struct LeaderElection {
        /// Whether [one of several replicas](configuration.md#several-replicas-of-the-operator) of the operator is
        /// elected to act.
        pub leader_elect: bool = false,
        /// How long others wait for a leader that they do not hear of.
        pub lease_duration: GoDuration = GoDuration::seconds(15),
        /// How long a leader goes on without having renewed; less than `leaseDuration`.
        pub renew_deadline: GoDuration = GoDuration::seconds(10),
        /// How long a leader waits before it renews; less than 5/6 of `renewDeadline`.
        pub retry_period: GoDuration = GoDuration::seconds(2),
        /// What a leader holds; there is nothing else.
        pub resource_lock: ResourceLock = ResourceLock::Leases,
        /// Name of the Lease. The default is Kubeflow Trainer's, so that both never act at the same time.
        #[serde(deserialize_with = "unless_empty")]
        pub resource_name: String = "trainer.kubeflow.org".to_owned(),
        /// Namespace of the Lease; `""`: the operator's own.
        pub resource_namespace: String = String::new(),
    }

    /// `metrics`: the metrics server.
    pub struct Metrics {
        /// Address that [metrics](metrics.md) are served on, at `/metrics`; `"0"`: nowhere.
        #[serde(deserialize_with = "unless_empty")]
        pub bind_address: BindAddress = BindAddress::everywhere(8_443),
        /// Whether metrics are served over TLS; see [who may read metrics](configuration.md#who-may-read-metrics).
        pub secure_serving: bool = true,
        /// Who may read metrics.
        pub auth: MetricsAuth = MetricsAuth::default(),
        /// How many of the jobs that are nearest to their deadline are shown by name. Not in Trainer's format.
        pub nearest_deadlines: Whole<0, 1_000> = Whole::of::<100>(),
        /// How many namespaces of jobs the [metrics about jobs](metrics.md#by-namespace) tell apart, by the label `job_namespace`; those
        /// beyond it are counted under `_other`. 0: there is no such label. Not in Trainer's format.
        pub job_namespaces: Whole<0, 1_000> = Whole::of::<0>(),
    }

    /// `metrics.auth`: who may read metrics.
    pub struct MetricsAuth {
        /// Whether only those may read metrics who may `get` the URL `/metrics`; needs `secureServing`. Not set, it is whether
        /// `secureServing` is true.
        pub enabled: Option<bool> = None,
    }

    /// `health`: the health server.
    pub struct Health {
        /// Address that health is served on; `"0"`: nowhere.
        #[serde(deserialize_with = "unless_empty")]
        pub health_probe_bind_address: BindAddress = BindAddress::everywhere(8_081),
        /// Path that says whether the process can do its work.
        #[serde(deserialize_with = "unless_empty")]
        pub readiness_endpoint_name: EndpointName = EndpointName("readyz".to_owned()),
        /// Path that says whether the process lives.
        #[serde(deserialize_with = "unless_empty")]
        pub liveness_endpoint_name: EndpointName = EndpointName("healthz".to_owned()),
    }

    /// `controller`: how much is done at the same time.
    pub struct Controller {
        /// How many objects of a kind are worked on at the same time, and so how many requests are under way. Fewer than 3
        /// count as 3. Only the entry of TrainJobs has an effect: nothing is done for the other kinds alone.
        pub group_kind_concurrency: BTreeMap<String, Concurrency> =
            BTreeMap::from([(TRAIN_JOB.to_owned(), CONCURRENCY)]),
        /// How many MiB of manifests of unfinished TrainJobs and of runtimes are kept in memory. One that does not fit is read
        /// again when it is needed. Namespaces share the room. Not in Trainer's format.
        pub manifest_memory_mebibytes: Whole<1, 1_024> = Whole::of::<16>(),
    }

    /// `certManagement`: the certificate of the servers.
    pub struct CertManagement {
        /// Whether the admission server makes its certificate itself, from an authority that its replicas share in a
        /// Secret, and writes the CA bundle into the webhook configurations; otherwise it reads files.
        pub enable: bool = true,
        /// Service that a certificate of its own is for, in the namespace of the process.
        #[serde(deserialize_with = "unless_empty")]
        pub webhook_service_name: String = "kubeflow-trainer-controller-manager".to_owned(),
        /// Secret of the authority, in the namespace of the process.
        #[serde(deserialize_with = "unless_empty")]
        pub webhook_secret_name: String = "kubeflow-trainer-webhook-cert".to_owned(),
    }

    /// `clientConnection`: the limit of requests to the API server.
    pub struct ClientConnection {
        /// Limit of the operator's requests to the API server, a second; 0: no limit. Without the section there is
        /// none either: the number of jobs worked on bounds the load, and the API server's own priority and fairness
        /// governs. Trainer's 50 and 100 get a warning: they make the operator slow for no need.
        pub qps: PerSecond = PerSecond::of::<50>(),
        /// How many requests may be sent at once after a pause; 0 is the same as 1.
        pub burst: Count = Whole::of::<100>(),
    }

    /// `statusServer`: the server that Pods report their progress to.
    pub struct StatusServer {
        /// Port of the server that Pods report their progress to.
        pub port: Port = Whole::of::<10_443>(),
        /// Limit of its requests to the API server, a second.
        pub qps: PerSecond = PerSecond::of::<5>(),
        /// How many requests it may send at once after a pause.
        pub burst: Count = Whole::of::<10>(),
    }

    /// `certificates`: more about the certificate of the admission server.
    pub struct Certificates {
        /// Directory with `tls.crt` and `tls.key`, where they are read from files.
        pub directory: PathBuf = "/tmp/k8s-webhook-server/serving-certs".into(),
        /// How often these files are looked at. A change is taken into use without a restart.
        // A change is to be noticed within ten seconds.
        pub poll_interval: Interval<50, 10_000> = Interval::of::<5_000>(),
        /// Further DNS names and IP addresses that its own certificate is for, beside those of the Service.
        pub names: Vec<CertificateName> = Vec::new(),
        /// How long its own certificate authority is valid.
        pub authority_lifetime: GoDuration = GoDuration::days(3_650),
        /// How long its own serving certificate is valid.
        pub lifetime: GoDuration = GoDuration::days(365),
        /// How long before its end either is renewed; at most half of either lifetime.
        pub renew_before: GoDuration = GoDuration::days(90),
        /// How long a new authority stands in the webhook configurations before it signs; less than `renewBefore`.
        pub bundle_lead: GoDuration = GoDuration::seconds(300),
    }

    /// `tls`: TLS of the admission server.
    pub struct Tls {
        /// Lowest version: `1.2` or `1.3`; `1.0` and `1.1` get a warning and mean `1.2`.
        pub min_version: String = "1.2".to_owned(),
        /// Cipher suites of TLS 1.2 that are spoken, by their IANA names; none: all that are good. Those of 1.3 always
        /// are.
        pub cipher_suites: Vec<String> = Vec::new(),
        /// Protocols above TLS, in order of preference. Trainer speaks `http/1.1` alone unless told otherwise.
        pub next_protos: Vec<String> = ["h2", "http/1.1"].map(str::to_owned).into(),
    }

    /// `lifecycle`: the end of a job's life.
    pub struct Lifecycle {
        /// What `activeDeadlineSeconds` is counted from: the job's creation, or its last resume as in Kubeflow Trainer
        /// 2.3 ([D2](semantics.md#3-activedeadlineseconds)).
        pub deadline_clock: Clock = Clock::Creation,
        /// How long before a deadline of over an hour the event `DeadlineApproaching` comes, in seconds
        /// ([D8](semantics.md#3-activedeadlineseconds)); 0: it does not come.
        pub deadline_warning_seconds: Count = Whole::of::<{ DEFAULT_WARNING }>(),
        /// Whether TTL and deadline may be changed later. Admission enforces it; the operator acts on what is stored.
        /// In neither mode does an update that merely lacks a field remove it ([A11](semantics.md#10-admission)).
        pub field_updates: FieldUpdates = FieldUpdates::Immutable,
        /// How dependents go when a TTL deletes a job.
        pub deletion_propagation: Propagation = Propagation::Foreground,
        /// Whether the TTL also applies to finished jobs whose `managedBy` names somebody else.
        pub ttl_for_managed_elsewhere: bool = false,
        /// How far a hold (annotation `lifecycle.trainjob.dev/hold-until`) may reach beyond the end of the TTL, in seconds
        /// ([T11](semantics.md#2-ttlsecondsafterfinished)); 0: holds have no effect. The default is 30 days.
        pub maximum_hold_seconds: Count = Whole::of::<{ DEFAULT_MAXIMUM }>(),
        /// TTL that admission gives to jobs created without one, in seconds; that of a namespace goes first
        /// ([A15](semantics.md#10-admission)).
        #[serde(rename = "defaultTTLSecondsAfterFinished")]
        pub default_ttl_seconds_after_finished: Option<Count> = None,
        /// Longest TTL that admission admits, in seconds; a job without one gets it, unless there is a default. A
        /// namespace may have a lower one ([A15](semantics.md#10-admission)).
        #[serde(rename = "maximumTTLSecondsAfterFinished")]
        pub maximum_ttl_seconds_after_finished: Option<Count> = None,
        /// Longest deadline that admission admits, in seconds; a job without one gets it, unless its namespace has a
        /// default. A namespace may have a lower one ([A15](semantics.md#10-admission)).
        pub maximum_active_deadline_seconds: Option<Whole<1, MOST_SECONDS>> = None,
        /// How long deadlines and TTLs pause when the API server's clock has jumped by more than 60 seconds, in seconds
        /// ([5](semantics.md#5-time)); 0: they do not. Somebody can look meanwhile whether the clock is right.
        pub clock_jump_pause_seconds: Count = Whole::of::<600>(),
        /// The limit of Normal events.
        pub events: Events = Events::default(),
    }

    /// `accounting`: whether Pods are marked so that they are counted.
    pub struct Accounting {
        /// What the Pods of new JobSets are [marked](accounting.md#2-marking) with so that `trainjob-accounting` counts
        /// them: with nothing, with labels, or with labels and a finalizer that holds them until they are counted.
        pub mode: Mode = Mode::Off,
        /// Name of the Lease of `trainjob-accounting`. Nothing is marked unless it changes.
        pub lease_name: String = "trainjob-accounting".to_owned(),
        /// Namespace of that Lease; `""`: the operator's own.
        pub lease_namespace: String = String::new(),
    }

    /// `lifecycle.events`: the limit of Normal events. If either is 0, none are written.
    pub struct Events {
        /// Limit of Normal events, a second; 0: none are written.
        pub normal_per_second: PerSecond = PerSecond::of::<5>(),
        /// How many Normal events may be written at once after a pause; 0: none are written.
        pub normal_burst: Count = Whole::of::<50>(),
    }
}
