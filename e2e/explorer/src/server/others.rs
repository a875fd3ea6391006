//! What others do: users, JobSet's controller, the garbage collector, kubelets.

use trainjob_api::jobset::{JobSetStatus, ReplicatedJobStatus};
use trainjob_core::build::{Objects, build, snapshot};

use super::{Server, waits_for_dependents};
use crate::objects::{
    FOREGROUND, KEPT, StoredJobSet, condition, end, owner, remove_finalizer, runtime, set_hold, uid,
};

/// Whether a JobSet may have Pods.
fn runs(job_set: &StoredJobSet) -> bool {
    let facts = &job_set.facts;
    !facts.suspended && facts.terminating_since.is_none() && facts.ended.is_none()
}

impl Server {
    /// A user gives a job this hold, or none.
    pub fn edit_hold(&mut self, name: usize, text: Option<&str>) {
        let job = self.slots.get(name).and_then(|slot| slot.job.as_ref());
        let finished = job.filter(|job| end(&job.manifest).is_some());
        self.changed_holds.extend(finished.map(|job| job.facts.uid.clone()));
        self.edit_job(name, |job| set_hold(job, text));
    }

    /// JobSet's controller starts the Pods of a JobSet that is to run.
    pub fn start_pods(&mut self, name: usize) -> bool {
        let Some(slot) = self.slots.get_mut(name) else { return false };
        let Some(job_set) = slot.job_set.as_ref().filter(|job_set| runs(job_set)) else {
            return false;
        };
        let of = job_set.facts.uid.clone();
        if slot.pods.contains(&of) {
            return false;
        }
        slot.pods.push(of.clone());
        self.record_pod(name, &of, true);
        true
    }

    /// The Pods end whose JobSet does not run any more.
    pub fn end_pods(&mut self, name: usize) -> bool {
        let Some(slot) = self.slots.get_mut(name) else { return false };
        let running = slot.job_set.as_ref().filter(|job_set| runs(job_set));
        let running = running.map(|job_set| job_set.facts.uid.clone());
        let (stay, ended): (Vec<_>, Vec<_>) =
            slot.pods.drain(..).partition(|pod| Some(pod) == running.as_ref());
        slot.pods = stay;
        for of in &ended {
            self.record_pod(name, of, false);
        }
        !ended.is_empty()
    }

    /// JobSet's controller says that a JobSet has ended.
    pub fn end_job_set(&mut self, name: usize, completed: bool) -> bool {
        let now = self.second();
        let (kind, reason) =
            if completed { ("Completed", "AllJobsCompleted") } else { ("Failed", "FailedJobs") };
        let runs = |slot: &super::Slot| slot.job_set.as_ref().is_some_and(|job_set| runs(job_set));
        self.slots.get(name).is_some_and(runs)
            && self.edit_job_set(name, |job_set| {
                let JobSetStatus { conditions, .. } = job_set.status.get_or_insert_default();
                conditions.push(condition(kind, reason, now));
            })
    }

    /// JobSet's controller counts.
    pub fn count(&mut self, name: usize, active: i32) -> bool {
        self.edit_job_set(name, |job_set| {
            let status = job_set.status.get_or_insert_default();
            let counts = ReplicatedJobStatus { name: "node".into(), active, ..Default::default() };
            status.replicated_jobs_status = vec![counts];
        })
    }

    /// The garbage collector looks at everything of a name. It may not know of the Pods yet.
    pub fn collect(&mut self, name: usize, knows_pods: bool) -> bool {
        let before = self.revision;
        self.collect_children(name);
        self.finish_job_set(name, knows_pods);
        self.finish_job(name);
        self.revision != before
    }

    fn collect_children(&mut self, name: usize) {
        let Some(slot) = self.slots.get(name) else { return };
        let job = slot.job.as_ref().filter(|job| waits_for_dependents(&job.manifest.metadata));
        let job = job.map(|job| job.facts.uid.clone());
        let owned = |uid: Option<&String>| job.is_some() && uid == job.as_ref();
        let snapshot = slot.snapshot.as_ref().is_some_and(|config_map| {
            let metadata = &config_map.metadata;
            let by = trainjob_core::facts::controlling_train_job(metadata);
            self.is_orphan(metadata) || owned(by.map(|by| &by.uid))
        });
        let job_set = slot.job_set.as_ref().is_some_and(|job_set| {
            self.is_orphan(&job_set.object.metadata) || owned(job_set.facts.train_job_uid.as_ref())
        });
        if snapshot {
            self.set_snapshot(name, None);
        }
        if job_set {
            self.delete_job_set(name);
        }
    }

    fn finish_job_set(&mut self, name: usize, knows_pods: bool) {
        let Some(slot) = self.slots.get(name) else { return };
        let Some(job_set) = &slot.job_set else { return };
        let held = knows_pods && slot.pods.contains(&job_set.facts.uid);
        if waits_for_dependents(&job_set.object.metadata) && !held {
            self.edit_job_set(name, |job_set| remove_finalizer(&mut job_set.metadata, FOREGROUND));
        }
    }

    fn finish_job(&mut self, name: usize) {
        let Some(slot) = self.slots.get(name) else { return };
        let Some(job) = &slot.job else { return };
        let held = slot.job_set_of(&job.facts.uid).is_some();
        if waits_for_dependents(&job.manifest.metadata) && !held {
            self.edit_job(name, |job| remove_finalizer(&mut job.metadata, FOREGROUND));
        }
    }

    /// Somebody's finalizers go.
    pub fn release_kept(&mut self, name: usize) {
        self.edit_job(name, |job| remove_finalizer(&mut job.metadata, KEPT));
        self.edit_job_set(name, |job_set| remove_finalizer(&mut job_set.metadata, KEPT));
    }

    /// Somebody else makes a JobSet of a job's name: a stranger, or a predecessor of the job.
    pub fn make_foreign_job_set(&mut self, name: usize, predecessor: bool) {
        let Some(slot) = self.slots.get(name) else { return };
        let (Some(job), Some(runtime)) = (slot.job.clone(), runtime(0)) else { return };
        let Ok(Objects { mut job_set, .. }) = build(&job.manifest, &runtime) else { return };
        let name_of_job = &job.facts.key.name;
        let by = owner(name_of_job, &format!("predecessor-of-{name_of_job}"));
        job_set.metadata.owner_references = predecessor.then(|| vec![by]);
        self.create_job_set(name, job_set);
    }

    /// Somebody else takes the name of a job's snapshot.
    pub fn make_foreign_snapshot(&mut self, name: usize) {
        let Some(slot) = self.slots.get(name).filter(|slot| slot.snapshot.is_none()) else {
            return;
        };
        let (Some(job), Some(runtime)) = (slot.job.clone(), runtime(1)) else { return };
        if let Ok(mut config_map) = snapshot::render(&job.manifest, &runtime) {
            config_map.metadata.owner_references = None;
            self.set_snapshot(name, Some(config_map));
        }
    }

    /// Somebody deletes a JobSet.
    pub fn delete_job_set_by_hand(&mut self, name: usize, kept: bool) {
        if kept {
            self.edit_job_set(name, |job_set| {
                crate::objects::add_finalizer(&mut job_set.metadata, KEPT);
            });
        }
        self.delete_job_set(name);
    }

    /// The UID of a stored job.
    #[must_use]
    pub fn job_uid(&self, name: usize) -> Option<&str> {
        Some(uid(&self.slots.get(name)?.job.as_ref()?.manifest.metadata))
    }
}
