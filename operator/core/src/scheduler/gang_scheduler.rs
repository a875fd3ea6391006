//! What there is to know of a scheduler that places gangs. Each file beside this one implements it.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Serialize, de::DeserializeOwned};
use trainjob_api::{JobSet, podgroup, v1alpha1::runtime::PodGroupPolicy};

use crate::build::gang::Gang;

/// A scheduler that places gangs, by the spec of its `PodGroup`.
pub trait GangScheduler:
    podgroup::Spec + Serialize + DeserializeOwned + Clone + Debug + Default + PartialEq + Send + 'static
{
    /// What readiness, metrics and logs call its kind. Every scheduler's is named `PodGroup`.
    const NAME: &'static str;
    /// What a user installs to have it.
    const INSTALL: &'static str;
    /// The field of `spec.podGroupPolicy` by which a runtime asks for it.
    const POLICY: &'static str;

    /// The settings in that field.
    type Policy;

    /// Its settings, if a runtime asks for it.
    fn policy(policies: &PodGroupPolicy) -> Option<&Self::Policy>;

    /// Makes a Pod a member of the `PodGroup` of this name.
    fn join(pod: &mut ObjectMeta, group: &str);

    /// What its `PodGroup` asks for: the gang of this JobSet, with these settings.
    fn spec(gang: Gang, policy: &Self::Policy, job_set: &JobSet) -> Self;
}
