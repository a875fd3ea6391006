//! The raw client: the calls that the operator makes, and nothing else. It decides nothing, watches
//! nothing, and does not even parse what it is answered.

use anyhow::Result;
use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use kube::core::Request;
use kube::{Client, Resource};
use trainjob_api::TrainJob;

use super::calls::Micros;
use super::jobs::Stored;

/// Deletes a TrainJob as its TTL does: this very version of it, in the foreground. Returns when the
/// request was sent.
pub(super) async fn delete(client: &Client, namespace: &str, job: &Stored) -> Result<Micros> {
    let preconditions =
        Preconditions { uid: Some(job.uid.clone()), resource_version: Some(job.version.clone()) };
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    };
    let request = Request::new(TrainJob::url_path(&(), Some(namespace)));
    let request = request.delete(&job.name, &params)?;
    let sent = Micros::now();
    client.request_text(request).await?;
    Ok(sent)
}
