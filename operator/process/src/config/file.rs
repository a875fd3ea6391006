//! The configuration file, as Kubeflow Trainer defines it, plus the sections `lifecycle` and
//! `certificates`.
//!
//! These types say what a file may contain, not what the operator makes of it: a field that is absent
//! or `null` is `None`, and the defaults named here are those that apply then. Every field is checked
//! when a file is read, also one that has no effect in this release.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

use super::{
    gates::Gate,
    value::{
        BindAddress, CertificateName, Concurrency, Count, EndpointName, GoDuration,
        NearestDeadlines, PerSecond, Port, section,
    },
};

/// A whole file.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Configuration {
    /// The version of the format. Required.
    pub api_version: ApiVersion,
    /// What the file is. Required.
    pub kind: Kind,
    /// The admission server.
    #[serde(default, deserialize_with = "section")]
    pub webhook: Option<Webhook>,
    /// Which of several replicas works. Absent: every one of them.
    #[serde(default, deserialize_with = "section")]
    pub leader_election: Option<LeaderElection>,
    /// The metrics server.
    #[serde(default, deserialize_with = "section")]
    pub metrics: Option<Metrics>,
    /// The health server.
    #[serde(default, deserialize_with = "section")]
    pub health: Option<Health>,
    /// How much is done at the same time.
    #[serde(default, deserialize_with = "section")]
    pub controller: Option<Controller>,
    /// Who makes the certificate of the admission server.
    #[serde(default, deserialize_with = "section")]
    pub cert_management: Option<CertManagement>,
    /// The limit of requests to the API server. Absent: no limit.
    #[serde(default, deserialize_with = "section")]
    pub client_connection: Option<ClientConnection>,
    /// The server that Pods report their progress to. No effect in this release.
    #[serde(default, deserialize_with = "section")]
    pub status_server: Option<StatusServer>,
    /// Features that are switched on or off.
    #[serde(default)]
    pub feature_gates: Option<BTreeMap<Gate, bool>>,
    /// TLS of the admission server.
    #[serde(default, deserialize_with = "section")]
    pub tls: Option<Tls>,
    /// The end of a job's life; not part of Trainer's format.
    #[serde(default, deserialize_with = "section")]
    pub lifecycle: Option<Lifecycle>,
    /// More about the certificate of the admission server; not part of Trainer's format.
    #[serde(default, deserialize_with = "section")]
    pub certificates: Option<Certificates>,
}

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum ApiVersion {
    /// The only one there is.
    #[default]
    #[serde(rename = "config.trainer.kubeflow.org/v1alpha1")]
    V1Alpha1,
}

/// What the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Kind {
    /// A configuration of the operator.
    #[default]
    Configuration,
}

/// `webhook`: the admission server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Webhook {
    /// Its port; 9443.
    pub port: Option<Port>,
    /// The host it listens on; `""`, all.
    pub host: Option<String>,
}

/// `leaderElection`: which of several replicas works.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaderElection {
    /// Whether one is elected; false.
    pub leader_elect: Option<bool>,
    /// How long a silent leader is still believed to live; 15 s.
    pub lease_duration: Option<GoDuration>,
    /// How long a leader tries to renew before it gives up; 10 s. Less than `lease_duration`.
    pub renew_deadline: Option<GoDuration>,
    /// How long to wait between two attempts; 2 s. Less than 5/6 of `renew_deadline`.
    pub retry_period: Option<GoDuration>,
    /// What is held; a Lease.
    pub resource_lock: Option<ResourceLock>,
    /// The name of the Lease; `trainer.kubeflow.org`.
    pub resource_name: Option<String>,
    /// The namespace of the Lease; the operator's own.
    pub resource_namespace: Option<String>,
}

/// What a leader holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum ResourceLock {
    /// A Lease; also what `""` means.
    #[default]
    #[serde(rename = "leases", alias = "")]
    Leases,
}

/// `metrics`: the metrics server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metrics {
    /// Where it listens; `:8443`.
    pub bind_address: Option<BindAddress>,
    /// Whether it speaks TLS; true.
    pub secure_serving: Option<bool>,
    /// Who may read.
    #[serde(default, deserialize_with = "section")]
    pub auth: Option<MetricsAuth>,
    /// How many of the jobs that are nearest to their deadline are shown by name; 100. 0: none. Not part of
    /// Trainer's format.
    pub nearest_deadlines: Option<NearestDeadlines>,
}

/// `metrics.auth`: who may read metrics.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MetricsAuth {
    /// Whether readers need a token and the right to GET `/metrics`; false. Needs `secureServing`.
    pub enabled: Option<bool>,
}

/// `health`: the health server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Health {
    /// Where it listens; `:8081`.
    pub health_probe_bind_address: Option<BindAddress>,
    /// The path that says whether the process can do its work; `readyz`.
    pub readiness_endpoint_name: Option<EndpointName>,
    /// The path that says whether the process lives; `healthz`.
    pub liveness_endpoint_name: Option<EndpointName>,
}

/// `controller`: how much is done at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Controller {
    /// How many objects of a kind are worked on at the same time, by `Kind.group`; 64. Only
    /// `TrainJob.trainer.kubeflow.org` has an effect: nothing is done for the other kinds alone.
    pub group_kind_concurrency: Option<BTreeMap<String, Concurrency>>,
}

/// `certManagement`: the certificate of the servers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CertManagement {
    /// Whether the admission server makes and renews it itself; true. If not, it is read from files.
    pub enable: Option<bool>,
    /// The Service it is for; `kubeflow-trainer-controller-manager`.
    pub webhook_service_name: Option<String>,
    /// The Secret it is kept in; `kubeflow-trainer-webhook-cert`.
    pub webhook_secret_name: Option<String>,
}

/// `clientConnection`: the limit of requests to the API server.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientConnection {
    /// Requests a second; 50. 0: no limit.
    pub qps: Option<PerSecond>,
    /// Requests that may be sent at once after a pause; 100. 0 is the same as 1.
    pub burst: Option<Count>,
}

/// `statusServer`: the server that Pods report their progress to.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StatusServer {
    /// Its port; 10443.
    pub port: Option<Port>,
    /// Requests a second to the API server; 5.
    pub qps: Option<PerSecond>,
    /// Requests that may be sent at once after a pause; 10.
    pub burst: Option<Count>,
}

/// `certificates`: more about the certificate of the admission server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Certificates {
    /// The directory with `tls.crt` and `tls.key`, if they are read from files;
    /// `/tmp/k8s-webhook-server/serving-certs`.
    pub directory: Option<PathBuf>,
    /// How often they are looked at; 5 s. From 50 ms to 10 s.
    pub poll_interval: Option<GoDuration>,
    /// Further names, or IP addresses, that a certificate of its own is for.
    pub names: Option<Vec<CertificateName>>,
    /// How long a certificate authority of its own is valid; 10 years.
    pub authority_lifetime: Option<GoDuration>,
    /// How long a certificate of its own is valid; 1 year.
    pub lifetime: Option<GoDuration>,
    /// How long before its end either is renewed; 90 days. At most half of either lifetime.
    pub renew_before: Option<GoDuration>,
    /// How long a new authority stands in the webhook registrations before it signs; 5 minutes. Less
    /// than `renew_before`.
    pub bundle_lead: Option<GoDuration>,
}

/// `tls`: TLS of the admission server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tls {
    /// The lowest version: `1.0`, `1.1`, `1.2` or `1.3`. Any other is warned of and ignored.
    pub min_version: Option<String>,
    /// Names of cipher suites, as IANA lists them.
    pub cipher_suites: Option<Vec<String>>,
    /// Protocols above TLS, in order of preference; `["h2", "http/1.1"]`.
    pub next_protos: Option<Vec<String>>,
}

/// `lifecycle`: the end of a job's life.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lifecycle {
    /// What `activeDeadlineSeconds` is counted from; `Creation`.
    pub deadline_clock: Option<DeadlineClock>,
    /// Whether TTL and deadline may be changed later; `Immutable`.
    pub field_updates: Option<FieldUpdates>,
    /// How the dependents of a job go when its TTL deletes it; `Foreground`.
    pub deletion_propagation: Option<DeletionPropagation>,
    /// Whether the TTL also applies to finished jobs that somebody else manages; false.
    pub ttl_for_managed_elsewhere: Option<bool>,
    /// The TTL of jobs that are created without one, in seconds; none.
    #[serde(rename = "defaultTTLSecondsAfterFinished")]
    pub default_ttl_seconds_after_finished: Option<Count>,
    /// The limit of Normal events.
    #[serde(default, deserialize_with = "section")]
    pub events: Option<Events>,
}

/// What a deadline is counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum DeadlineClock {
    /// The creation of the job, as KEP-2899 has it.
    #[default]
    Creation,
    /// The job's last resume, as Kubeflow Trainer 2.3 has it.
    LastResume,
}

/// Whether TTL and deadline may be changed after a job's creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum FieldUpdates {
    /// They may not, as KEP-2899 has it.
    #[default]
    Immutable,
    /// They may, as KEP-592 has it.
    Mutable,
}

/// How the dependents of a deleted job go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum DeletionPropagation {
    /// The job stays visible until they are gone.
    #[default]
    Foreground,
    /// The job goes first.
    Background,
}

/// `lifecycle.events`: the limit of Normal events. If either is 0, none are written.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Events {
    /// Events a second; 5.
    pub normal_per_second: Option<PerSecond>,
    /// Events that may be written at once after a pause; 50.
    pub normal_burst: Option<Count>,
}
