//! One decision: what it is made on, and what holds for every one, however old that is.

use std::{collections::BTreeSet, sync::Arc};

use trainjob_core::{
    Action, Now, Observed, Plan,
    action::DeletionReason,
    build::Runtime,
    facts::Outcome,
    observed::{PodGroups, Reading, Readings, Settings},
    plan,
};

use crate::{
    objects::{StoredJob, StoredJobSet, is_ours},
    server::Server,
    violation::Rule,
};

/// What is known of one job, at one moment.
#[derive(Debug, Clone)]
pub struct View {
    /// The job.
    pub job: Arc<StoredJob>,
    /// The JobSet of its name.
    pub job_set: Option<Arc<StoredJobSet>>,
    /// The runtime it names.
    pub runtime: Option<Arc<Runtime>>,
    /// What was read directly.
    pub readings: Readings,
}

impl View {
    /// What the core plans at `now`.
    #[must_use]
    pub fn plan(&self, settings: &Settings, now: Now) -> Plan {
        plan(&self.observed(settings), now)
    }

    /// What the core is shown of it.
    #[must_use]
    pub fn observed<'a>(&'a self, settings: &'a Settings) -> Observed<'a> {
        let job = &self.job.facts;
        Observed {
            job,
            manifest: job.finished.is_none().then_some(&self.job.manifest),
            job_set: self.job_set.as_ref().map(|job_set| &job_set.facts),
            runtime: self.runtime.as_deref(),
            pod_groups: PodGroups::default(),
            readings: &self.readings,
            settings,
        }
    }

    /// The JobSet, if it is the job's own.
    #[must_use]
    pub fn own(&self) -> Option<&StoredJobSet> {
        let own = |job_set: &&Arc<StoredJobSet>| {
            job_set.facts.train_job_uid.as_ref() == Some(&self.job.facts.uid)
        };
        self.job_set.as_ref().filter(own).map(AsRef::as_ref)
    }
}

/// Judges a plan by the view it is made on and by what its process has ever seen to have ended.
pub(super) fn judge(server: &mut Server, view: &View, plan: &Plan, ended: &BTreeSet<String>) {
    let job = &view.job.facts;
    let mut end_is_stored = job.finished.is_some();
    let over = end_is_stored || ended.contains(&job.uid) || job.terminating;
    for action in &plan.actions {
        match action {
            Action::CreateSnapshot(_)
            | Action::CreateJobSet(_)
            | Action::UpdateJobSet(_)
            | Action::SuspendJobSet { suspend: false, .. } => {
                server.expect(Rule::NoResurrection, !over, || {
                    format!("something is made or resumed for {}, which is over", job.uid)
                });
            }
            Action::WriteStatus(write) => {
                end_is_stored |= write.deadline_due.is_some();
                let ended = view.own().is_some_and(|own| own.facts.ended.is_some());
                if write.deadline_due.is_some() && ended {
                    server.end_was_known(&job.uid);
                }
            }
            Action::DeleteJobSet { reason, .. } => {
                let never_ran = view.own().is_some_and(|own| own.facts.never_ran);
                let rebuilt = matches!(reason, DeletionReason::Rebuild { .. });
                let to_be_remade = rebuilt && never_ran && !over;
                server.expect(Rule::DurableBeforeDestroy, end_is_stored || to_be_remade, || {
                    format!("the JobSet of {} goes before its end is stored", job.uid)
                });
            }
            Action::DeleteTrainJob(_) => judge_release(server, view),
            _ => {}
        }
    }
    let only_ttl = matches!(plan.actions.first(), None | Some(Action::DeleteTrainJob(_)));
    server.expect(Rule::Identity, only_ttl || is_ours(&view.job.manifest), || {
        "somebody else's job is touched".into()
    });
}

/// Nothing is done because of the time while that is not known.
pub(super) fn judge_time(server: &mut Server, view: &View, plan: &Plan, now: Now) {
    if now.reached().is_some() {
        return;
    }
    let uid = &view.job.facts.uid;
    for action in &plan.actions {
        match action {
            Action::WriteStatus(write) => {
                server.expect(Rule::NoEarlyDeadline, write.deadline_due.is_none(), || {
                    format!("a deadline fails {uid} at a time that is not known")
                });
            }
            Action::DeleteTrainJob(_) => server.expect(Rule::NoEarlyDelete, false, || {
                format!("a TTL deletes {uid} at a time that is not known")
            }),
            _ => {}
        }
    }
}

/// A job that its deadline failed is the only record of that until it is released.
fn judge_release(server: &mut Server, view: &View) {
    let finished = view.job.facts.finished;
    let by_deadline = finished.is_some_and(|end| end.outcome == Outcome::DeadlineExceeded);
    let released = view.own().is_none() && view.readings.pods == Reading::Absent;
    let held = by_deadline && !released && !view.job.facts.managed_elsewhere;
    server.expect(Rule::NoEarlyDelete, !held, || "a TTL deletes an unreleased job".into());
}
