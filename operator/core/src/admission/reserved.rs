//! Variables that a framework sets and a TrainJob therefore must not.

use k8s_openapi::api::core::v1::EnvVar;
use trainjob_api::TrainJob;

use super::field::FieldError;

/// What is wrong with the trainer's variables if these are the framework's.
pub(crate) fn check(job: &TrainJob, reserved: &[&str]) -> Option<FieldError> {
    let env = variables(job);
    let names = env.iter().map(|variable| variable.name.as_str());
    let mut taken: Vec<_> = names.filter(|name| reserved.contains(name)).collect();
    if taken.is_empty() {
        return None;
    }
    taken.sort_unstable();
    taken.dedup();
    let detail =
        format!("must not have reserved envs, invalid envs configured: [{}]", taken.join(" "));
    Some(FieldError::invalid("spec.trainer.env", env, detail))
}

/// The trainer's variables.
pub(crate) fn variables(job: &TrainJob) -> &[EnvVar] {
    job.spec.trainer.as_ref().and_then(|trainer| trainer.env.as_deref()).unwrap_or_default()
}
