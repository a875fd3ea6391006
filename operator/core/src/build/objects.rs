//! What a TrainJob becomes.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use trainjob_api::JobSet;

use crate::scheduler::PodGroupSpec;

/// The objects of a TrainJob, its snapshot aside, in the order in which they are made: what Pods need to
/// start is there before them.
///
/// All have fixed names, are in the TrainJob's namespace and carry its owner reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Objects {
    /// What its Pods trust each other by. Created once, never read, never changed.
    pub secrets: Vec<SecretClaim>,
    /// What its Pods read: hosts, scripts. Created once and not changed.
    pub config_maps: Vec<ConfigMap>,
    /// Tells the scheduler which Pods start together.
    pub pod_group: Option<PodGroup>,
    /// What runs.
    pub job_set: JobSet,
}

/// A `PodGroup` that is to exist.
#[derive(Debug, Clone, PartialEq)]
pub struct PodGroup {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What it asks for.
    pub spec: PodGroupSpec,
}

/// A Secret that is to exist. What is in it is random, so it is for the shell to make up.
#[derive(Debug, Clone, PartialEq)]
pub struct SecretClaim {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What is in it.
    pub content: SecretContent,
}

/// What is in a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretContent {
    /// A key pair for SSH: `ssh-privatekey` (ECDSA P-521, SEC1 PEM) and `ssh-publickey` (`OpenSSH`).
    SshKeys,
    /// A key pair for `ZeroMQ`'s CURVE: `curve.cert`.
    CurveKeys,
}
