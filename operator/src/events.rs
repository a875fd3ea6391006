//! The events of TrainJobs, as the [engine](trainjob_engine::events) sends them.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::{Api, Client, api::ListParams};
use trainjob_api::{
    constants::JOBSET_UID_LABEL,
    v1alpha1::{API_VERSION, TRAIN_JOB_KIND},
};
use trainjob_core::{event, facts::JobFacts, out_of_memory};
use trainjob_engine::{
    answer::within,
    events::{Event, EventRecorder},
};

/// Pods that have ended badly, and how many of one JobSet are looked at: what an answer may weigh has a limit.
const FAILED: &str = "status.phase=Failed";
const LOOK_AT: u32 = 100;
/// How long that may take, because other events wait behind it.
const LOOK_FOR: Duration = Duration::from_secs(4);

/// Tells the users of TrainJobs what happened.
#[derive(Clone)]
pub struct Events {
    /// Where they are handed in.
    pub recorder: EventRecorder,
    /// What asks for the Pods of a job that failed.
    pub client: Client,
}

impl Events {
    /// Hands in an event about a job. Never waits.
    pub fn record(&self, job: &JobFacts, event: &event::Event) {
        self.recorder.record(about(job, event));
    }

    /// Hands in the question whether a container of a job's failed JobSet was out of memory. Its Pods may be gone when
    /// they are asked for; then nobody knows. Never waits.
    pub fn record_out_of_memory(&self, job: &JobFacts, job_set: &str) {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &job.key.namespace);
        let (job, labels) = (job.clone(), format!("{JOBSET_UID_LABEL}={job_set}"));
        let namespace = job.key.namespace.to_string();
        let question = Box::pin(async move {
            let params = ListParams::default().labels(&labels).fields(FAILED).limit(LOOK_AT);
            match within(LOOK_FOR, api.list(&params)).await {
                Ok(pods) => Some(about(&job, &out_of_memory::find(&pods.items)?)),
                Err(error) => {
                    tracing::debug!(job = %job.key, uid = job.uid, %error, "failed Pods not read");
                    None
                }
            }
        });
        self.recorder.record_late(&namespace, question);
    }
}

fn about(job: &JobFacts, event: &event::Event) -> Event {
    let regarding = ObjectReference {
        api_version: Some(API_VERSION.into()),
        kind: Some(TRAIN_JOB_KIND.into()),
        namespace: Some(job.key.namespace.to_string()),
        name: Some(job.key.name.to_string()),
        uid: Some(job.uid.clone()),
        resource_version: Some(job.resource_version.clone()),
        ..ObjectReference::default()
    };
    Event {
        regarding,
        severity: event.severity(),
        reason: event.reason(),
        action: event.action(),
        note: event.note(),
    }
}
