//! The operator's requests, and what the API server does with them.

use std::{error::Error, sync::Arc};

use invariants::Millis;
use json_patch::Patch;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use trainjob_api::{JobSet, time::Timestamp};
use trainjob_core::{
    action::{Action, StatusWrite, TtlDeletion, WaitingWrite},
    build::{Runtime, snapshot},
    observed::Reading,
    running_pods::{Cause, PodCheck, RunningPod, RunningPods},
    text::Text,
};

use super::Server;
use crate::objects::{StoredJob, StoredJobSet, change_waiting};

/// A request on its way.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which operator process sent it.
    pub process: u32,
    /// The name that it is about.
    pub name: usize,
    /// The job that it is for, as the operator knew it.
    pub job: Arc<StoredJob>,
    /// The earliest time that the operator took for possible when it decided on this.
    pub decided: Timestamp,
    /// What it asks for.
    pub call: Call,
    /// How many lists of TrainJobs, and of JobSets, its process had seen when it was sent.
    pub lists: (u64, u64),
    /// Where it stands in the history.
    pub entry: usize,
}

/// What a request asks for.
#[derive(Debug, Clone)]
pub enum Call {
    /// What the plan says.
    Act(Action),
    /// The ConfigMap whose name is taken.
    LookAtSnapshot,
    /// The JobSet whose name is taken.
    LookAtJobSet,
}

/// Why a request has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// What is stored is not what it names.
    Conflict,
    /// There is an object of that name.
    Exists,
    /// There is no object of that name.
    NotFound,
    /// Not now: after so many milliseconds.
    Throttled(Millis),
    /// Not allowed.
    Denied,
    /// An error of the server, or of the way there or back: perhaps it did have its effect.
    Unknown,
}

/// What a request is answered with.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Nothing that matters.
    Done,
    /// The TrainJob; `None` when it is gone.
    Job(Option<Arc<StoredJob>>),
    /// The JobSet; `None` when it is gone.
    JobSet(Option<Arc<StoredJobSet>>),
    /// The runtime that all jobs name.
    Runtime(Arc<Runtime>),
    /// The ConfigMap under the snapshot's name.
    Snapshot(Box<Reading<ConfigMap>>),
    /// These Pods run.
    Pods(PodCheck),
}

/// The answer to a request.
pub type Answer = Result<Reply, Refusal>;

impl Server {
    /// Lets a request take effect.
    ///
    /// # Errors
    ///
    /// When it is refused.
    pub fn serve(&mut self, request: &Request) -> Answer {
        let answer = self.answer(request);
        self.record_answer(request, &answer);
        answer
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let Call::Act(action) = &request.call else { return self.look(request) };
        match action {
            Action::WriteStatus(write) => self.write_status(request, write),
            Action::WriteWaiting(write) => self.write_waiting(request, write),
            Action::CreateSnapshot(config_map) => self.create_snapshot(request, config_map),
            Action::CreateJobSet { job_set, .. } => {
                let job_set = job_set.read().map_err(|_| Refusal::Denied)?;
                self.make_job_set(request, &job_set)
            }
            Action::UpdateJobSet { uid, resource_version, patch } => {
                let before = self.job_set(request)?;
                precondition(&before.object.metadata, uid, Some(resource_version))?;
                let patched = patched(&before.object, patch).map_err(|_| Refusal::Denied)?;
                self.admit_update(request, &patched)?;
                self.change_job_set(request, uid, Some(resource_version), |stored| {
                    *stored = patched;
                })
            }
            Action::SuspendJobSet { uid, resource_version, suspend } => {
                self.change_job_set(request, uid, Some(resource_version), |stored| {
                    stored.spec.suspend = Some(*suspend);
                })
            }
            Action::DeleteJobSet { uid, reason } => {
                self.remove_job_set(request, uid, reason.resource_version())
            }
            Action::DeleteTrainJob(deletion) => self.remove_job(request, deletion),
            Action::ProbeSecret { .. }
            | Action::CreateSecret(_)
            | Action::CreateConfigMap(_)
            | Action::DeleteConfigMap { .. }
            | Action::CreatePodGroup(_)
            | Action::UpdatePodGroup { .. }
            | Action::DeletePodGroup { .. } => unreachable!("no runtime here asks for {action:?}"),
            Action::ReadTrainJob
            | Action::ReadRuntime(_)
            | Action::ReadSnapshot
            | Action::ReadJobSet
            | Action::CheckPods { .. }
            | Action::RecordEvent(_)
            | Action::RecordOutOfMemory { .. } => self.look(request),
        }
    }

    fn look(&self, request: &Request) -> Answer {
        let slot = self.slots.get(request.name).ok_or(Refusal::NotFound)?;
        match &request.call {
            Call::LookAtSnapshot | Call::Act(Action::ReadSnapshot) => {
                let found = slot.snapshot.clone().map_or(Reading::Absent, Reading::Found);
                Ok(Reply::Snapshot(Box::new(found)))
            }
            Call::LookAtJobSet | Call::Act(Action::ReadJobSet) => {
                let found = slot.job_set.clone().ok_or(Refusal::NotFound)?;
                Ok(Reply::JobSet(Some(found)))
            }
            Call::Act(Action::ReadTrainJob) => {
                let found = slot.job.clone().ok_or(Refusal::NotFound)?;
                Ok(Reply::Job(Some(found)))
            }
            Call::Act(Action::ReadRuntime(_)) => {
                Ok(Reply::Runtime(self.runtime.clone().ok_or(Refusal::NotFound)?))
            }
            Call::Act(Action::CheckPods { except_job_set, name_them }) => {
                let mut counted =
                    slot.pods.iter().filter(|uid| except_job_set.as_ref() != Some(*uid));
                let running = counted.next().map(|uid| running(uid, *name_them));
                Ok(Reply::Pods(PodCheck { running, stray: None }))
            }
            Call::Act(_) => Ok(Reply::Done),
        }
    }

    fn write_status(&mut self, request: &Request, write: &StatusWrite) -> Answer {
        let before = self.job(request)?;
        precondition(&before.manifest.metadata, &write.uid, Some(&write.resource_version))?;
        let changed = self.edit_job(request.name, |job| {
            let status = job.status.get_or_insert_default();
            if let Some(conditions) = &write.conditions {
                status.conditions = Some(conditions.clone());
            }
            if let Some(counts) = &write.jobs_status {
                status.jobs_status = Some(counts.clone()).filter(|counts| !counts.is_empty());
            }
        });
        let after = self.job(request)?;
        self.judge_status(request, &before, &after, changed);
        Ok(Reply::Job(Some(after)))
    }

    fn write_waiting(&mut self, request: &Request, write: &WaitingWrite) -> Answer {
        let before = self.job(request)?;
        precondition(&before.manifest.metadata, &write.uid, Some(&write.resource_version))?;
        let changed = self.edit_job(request.name, |job| {
            let conditions = job.status.get_or_insert_default().conditions.get_or_insert_default();
            change_waiting(conditions, &write.change);
        });
        let after = self.job(request)?;
        self.judge_waiting(&before, &after, changed);
        Ok(Reply::Job(Some(after)))
    }

    fn create_snapshot(&mut self, request: &Request, config_map: &ConfigMap) -> Answer {
        let slot = self.slots.get_mut(request.name).ok_or(Refusal::NotFound)?;
        if slot.snapshot.is_some() {
            return Err(Refusal::Exists);
        }
        if let Ok(runtime) = snapshot::read(&request.job.manifest, config_map) {
            slot.frozen.push((request.job.facts.uid.clone(), runtime));
        }
        self.set_snapshot(request.name, Some(config_map.clone()));
        Ok(Reply::Done)
    }

    fn make_job_set(&mut self, request: &Request, job_set: &JobSet) -> Answer {
        let slot = self.slots.get(request.name).ok_or(Refusal::NotFound)?;
        if slot.job_set.is_some() {
            return Err(Refusal::Exists);
        }
        self.judge_creation(request, job_set);
        self.create_job_set(request.name, job_set.clone());
        Ok(self.reply_job_set(request))
    }

    /// JobSet's webhook: what runs, and is to run on, keeps its content.
    fn admit_update(&self, request: &Request, job_set: &JobSet) -> Result<(), Refusal> {
        let before = self.job_set(request)?;
        let suspended = before.facts.suspended || job_set.spec.suspend == Some(true);
        let same = before.object.spec.replicated_jobs == job_set.spec.replicated_jobs;
        if suspended || same { Ok(()) } else { Err(Refusal::Denied) }
    }

    fn change_job_set(
        &mut self,
        request: &Request,
        uid: &str,
        version: Option<&str>,
        change: impl FnOnce(&mut JobSet),
    ) -> Answer {
        let before = self.job_set(request)?;
        precondition(&before.object.metadata, uid, version)?;
        let changed = self.edit_job_set(request.name, change);
        let after = self.job_set(request)?;
        self.judge_change(request, &before, &after, changed);
        Ok(Reply::JobSet(Some(after)))
    }

    fn remove_job_set(&mut self, request: &Request, uid: &str, version: Option<&str>) -> Answer {
        let before = self.job_set(request)?;
        precondition(&before.object.metadata, uid, version)?;
        self.judge_removal(request, &before, uid, version);
        self.delete_job_set(request.name);
        Ok(self.reply_job_set(request))
    }

    fn remove_job(&mut self, request: &Request, deletion: &TtlDeletion) -> Answer {
        let before = self.job(request)?;
        let version = &deletion.resource_version;
        precondition(&before.manifest.metadata, &deletion.uid, Some(version))?;
        self.judge_deletion(request, &before, deletion);
        self.delete_job(request.name, deletion.propagation);
        Ok(Reply::Job(self.job(request).ok()))
    }

    fn job(&self, request: &Request) -> Result<Arc<StoredJob>, Refusal> {
        let slot = self.slots.get(request.name);
        slot.and_then(|slot| slot.job.clone()).ok_or(Refusal::NotFound)
    }

    fn job_set(&self, request: &Request) -> Result<Arc<StoredJobSet>, Refusal> {
        let slot = self.slots.get(request.name);
        slot.and_then(|slot| slot.job_set.clone()).ok_or(Refusal::NotFound)
    }

    fn reply_job_set(&self, request: &Request) -> Reply {
        Reply::JobSet(self.job_set(request).ok())
    }
}

fn patched(job_set: &JobSet, patch: &Text<Patch>) -> Result<JobSet, Box<dyn Error>> {
    let mut patched = serde_json::to_value(job_set)?;
    json_patch::patch(&mut patched, &patch.read()?)?;
    Ok(serde_json::from_value(patched)?)
}

fn running(job_set: &str, name_them: bool) -> RunningPods {
    let named = name_them.then(|| RunningPod {
        name: format!("pod-of-{job_set}"),
        node: None,
        since: Timestamp(0),
        cause: Cause::NotDeleted,
    });
    RunningPods { named: named.into_iter().collect(), more: true }
}

/// An empty precondition is none, as for the API server.
fn precondition(metadata: &ObjectMeta, uid: &str, version: Option<&str>) -> Result<(), Refusal> {
    let fits = |wanted: &str, stored: Option<&str>| wanted.is_empty() || stored == Some(wanted);
    let version = version.unwrap_or_default();
    let same =
        fits(uid, metadata.uid.as_deref()) && fits(version, metadata.resource_version.as_deref());
    if same { Ok(()) } else { Err(Refusal::Conflict) }
}
