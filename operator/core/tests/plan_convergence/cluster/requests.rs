//! The requests of the operator, and what holds for each that takes effect.

use json_patch::Patch;
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
};
use trainjob_api::{JobSet, TrainJob};
use trainjob_core::{
    action::{StatusWrite, TtlDeletion, WaitingChange, WaitingWrite},
    facts::controlling_train_job,
    text::Text,
};

use super::{
    Cluster, Fault, Refusal, at, brief, conditions, created_at, deadline_due, is_ours, is_terminal,
    terminal, ttl_due, uid,
};

/// Requests of the operator, on behalf of `by`, the job as it knows it.
impl Cluster {
    /// Takes the fault that is due: the effect is told apart from the reply.
    fn arrives(&mut self) -> Result<bool, Refusal> {
        match self.fault.take() {
            None => Ok(true),
            Some(Fault::Lost) => Err(Refusal::Broken),
            Some(Fault::ReplyLost) => Ok(false),
        }
    }

    pub(crate) fn write_status(&mut self, write: &StatusWrite) -> Result<TrainJob, Refusal> {
        let replies = self.arrives()?;
        let job = self.job.as_ref().ok_or(Refusal::NotFound)?;
        precondition(&job.metadata, &write.uid, Some(&write.resource_version))?;
        assert!(is_ours(job), "a status write for a job that somebody else manages");
        let before = job.clone();
        self.edit_job(|job| {
            let status = job.status.get_or_insert_default();
            if let Some(conditions) = &write.conditions {
                status.conditions = Some(conditions.clone());
            }
            if let Some(counts) = &write.jobs_status {
                status.jobs_status = Some(counts.clone()).filter(|counts| !counts.is_empty());
            }
        });
        let after = self.job.clone().ok_or(Refusal::NotFound)?;
        assert!(before != after, "a status write that changes nothing");
        self.judge_end(&before, &after);
        replied(replies, after)
    }

    pub(crate) fn write_waiting(&mut self, write: &WaitingWrite) -> Result<TrainJob, Refusal> {
        let replies = self.arrives()?;
        let job = self.job.as_ref().ok_or(Refusal::NotFound)?;
        precondition(&job.metadata, &write.uid, Some(&write.resource_version))?;
        let before = job.clone();
        self.edit_job(|job| {
            let status = job.status.get_or_insert_default();
            let list = status.conditions.get_or_insert_default();
            match &write.change {
                WaitingChange::Add(condition) => list.insert(0, condition.clone()),
                WaitingChange::Update { index, reason, message, .. } => {
                    let condition = list.get_mut(*index).expect("a condition in its place");
                    condition.reason = reason.as_str().into();
                    condition.message.clone_from(message);
                }
                WaitingChange::Remove { index } => {
                    list.remove(*index);
                }
            }
        });
        let after = self.job.clone().ok_or(Refusal::NotFound)?;
        assert!(before != after, "a status write that changes nothing");
        let others = |job| {
            let others = conditions(job).iter().filter(|condition| condition.type_ != "Waiting");
            others.cloned().collect::<Vec<_>>()
        };
        assert_eq!(others(&before), others(&after), "only one condition changes");
        let waits = conditions(&after).iter().filter(|condition| condition.type_ == "Waiting");
        assert!(waits.count() <= 1, "one condition of a type: {}", brief(&after));
        replied(replies, after)
    }

    /// The end of a job is final, and its deadline ends it in time.
    fn judge_end(&self, before: &TrainJob, after: &TrainJob) {
        if terminal(before).is_some() {
            assert_eq!(conditions(before), conditions(after), "an end is final");
            return;
        }
        let ends = |condition: &&Condition| is_terminal(condition);
        assert!(
            conditions(after).iter().filter(ends).count() <= 1,
            "a job ends once: {}",
            brief(&after)
        );
        let waits = conditions(after).iter().any(|condition| condition.type_ == "Waiting");
        assert!(!waits || terminal(after).is_none(), "waits after its end: {}", brief(after));
        if terminal(after).is_some_and(|end| end.reason == "DeadlineExceeded") {
            let due = deadline_due(before, self.settings.deadline_clock);
            assert!(
                due.is_some_and(|due| i128::from(self.now.0) >= due),
                "early: {}",
                brief(&before)
            );
        }
    }

    pub(crate) fn create_snapshot(&mut self, config_map: &ConfigMap) -> Result<(), Refusal> {
        let replies = self.arrives()?;
        if self.snapshot.is_some() {
            return Err(Refusal::Exists);
        }
        self.snapshot = Some(config_map.clone());
        self.version += 1;
        replied(replies, ())
    }

    pub(crate) fn create_job_set(
        &mut self,
        by: &TrainJob,
        job_set: &JobSet,
    ) -> Result<JobSet, Refusal> {
        let replies = self.arrives()?;
        if self.job_set.is_some() {
            return Err(Refusal::Exists);
        }
        let frozen = self.frozen_for(by).expect("the runtime is frozen before the JobSet is made");
        let built = trainjob_core::build::build(by, &frozen).map(|objects| objects.job_set);
        assert!(
            built.as_ref() == Ok(job_set),
            "not made from the frozen runtime: {}",
            brief(job_set)
        );
        self.add_job_set(job_set.clone());
        replied(replies, self.job_set.clone().ok_or(Refusal::NotFound)?)
    }

    pub(crate) fn update_job_set(
        &mut self,
        by: &TrainJob,
        (uid, version): (&str, &str),
        patch: &Text<Patch>,
    ) -> Result<JobSet, Refusal> {
        self.change_job_set(by, uid, Some(version), |stored| {
            let mut changed = serde_json::to_value(&*stored).unwrap();
            json_patch::patch(&mut changed, &patch.read().unwrap()).unwrap();
            let changed = serde_json::from_value(changed).unwrap();
            assert!(*stored != changed, "an update that changes nothing");
            *stored = changed;
        })
    }

    pub(crate) fn suspend_job_set(
        &mut self,
        by: &TrainJob,
        uid: &str,
        version: &str,
        suspend: bool,
    ) -> Result<JobSet, Refusal> {
        self.change_job_set(by, uid, Some(version), |stored| {
            assert_ne!(stored.spec.suspend.unwrap_or(false), suspend, "changes nothing");
            stored.spec.suspend = Some(suspend);
        })
    }

    pub(crate) fn delete_job_set(
        &mut self,
        by: &TrainJob,
        of: &str,
        version: Option<&str>,
    ) -> Result<JobSet, Refusal> {
        let of_job = self.job.as_ref().filter(|job| job.metadata.uid == by.metadata.uid);
        let job_set = self.job_set.as_ref().filter(|job_set| uid(&job_set.metadata) == of);
        if let (Some(job), Some(job_set), None) = (of_job, job_set, version) {
            let end = terminal(job).expect("the end is stored before anything is deleted");
            let late = created_at(job_set) > at(end);
            assert!(end.reason == "DeadlineExceeded" || late, "a JobSet that may stay: {end:?}");
        }
        let now = self.now;
        self.change_job_set(by, of, version, |stored| {
            stored.metadata.deletion_timestamp.get_or_insert_with(|| now.into());
        })
    }

    fn change_job_set(
        &mut self,
        by: &TrainJob,
        uid: &str,
        version: Option<&str>,
        change: impl FnOnce(&mut JobSet),
    ) -> Result<JobSet, Refusal> {
        let replies = self.arrives()?;
        let before = self.job_set.clone().ok_or(Refusal::NotFound)?;
        precondition(&before.metadata, uid, version)?;
        let owner = controlling_train_job(&before.metadata).map(|owner| &owner.uid);
        assert_eq!(
            owner,
            by.metadata.uid.as_ref(),
            "a JobSet that is not the job's: {}",
            brief(&before)
        );
        self.edit_job_set(change);
        let after = self.job_set.clone().ok_or(Refusal::NotFound)?;
        let resumed = before.spec.suspend == Some(true) && after.spec.suspend != Some(true);
        if let (true, Some(frozen)) = (resumed, self.frozen_for(by))
            && let Ok(wanted) = trainjob_core::build::build(by, &frozen)
        {
            let differs = trainjob_core::build::update_suspended(&after, &wanted.job_set);
            assert!(
                differs.is_none(),
                "resumed as something else than asked for: {}",
                brief(&after)
            );
        }
        replied(replies, after)
    }

    pub(crate) fn delete_train_job(
        &mut self,
        deletion: &TtlDeletion,
    ) -> Result<Option<TrainJob>, Refusal> {
        let replies = self.arrives()?;
        let job = self.job.as_ref().ok_or(Refusal::NotFound)?;
        precondition(&job.metadata, &deletion.uid, Some(&deletion.resource_version))?;
        let due = ttl_due(job, self.settings).expect("a job that its TTL does not apply to");
        assert!(i128::from(self.now.0) >= due, "deleted early: {}", brief(job));
        assert_eq!(i128::from(deletion.due.0), due, "lateness is measured from the stored values");
        self.delete_job(deletion.propagation);
        replied(replies, self.job.clone())
    }
}

fn replied<T>(replies: bool, reply: T) -> Result<T, Refusal> {
    if replies { Ok(reply) } else { Err(Refusal::Broken) }
}

fn precondition(metadata: &ObjectMeta, uid: &str, version: Option<&str>) -> Result<(), Refusal> {
    let stored = (metadata.uid.as_deref(), metadata.resource_version.as_deref());
    let fits = stored.0 == Some(uid) && version.is_none_or(|version| stored.1 == Some(version));
    if fits { Ok(()) } else { Err(Refusal::Conflict) }
}
