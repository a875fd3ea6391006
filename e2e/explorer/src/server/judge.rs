//! What holds for every request that takes effect.
//!
//! A decision may be made on what is long outdated; it may do no harm all the same. So each request is
//! judged against what is stored when it arrives. Where a rule speaks of time, it is the clock of the
//! operator that decided: that is the one it can be held to.

use std::sync::Arc;

use invariants::Hold;
use trainjob_api::{JobSet, TrainJob, constants::MULTIKUEUE_ORIGIN_LABEL};
use trainjob_core::{
    action::TtlDeletion,
    build::{build, update_suspended},
    lifecycle::deadline::Clock,
    observed::Settings,
};

use super::{Server, requests::Request};
use crate::{
    objects::{StoredJob, StoredJobSet, at, conditions, end, ends, hold, is_ours, uid},
    rule::Rule,
};

impl Server {
    pub(super) fn judge_status(
        &mut self,
        request: &Request,
        before: &Arc<StoredJob>,
        after: &Arc<StoredJob>,
        changed: bool,
    ) {
        let (old, new) = (&before.manifest, &after.manifest);
        self.expect(Rule::BoundedPressure, changed, || "a status write changes nothing".into());
        self.expect(Rule::Identity, is_ours(old), || "a status of somebody else's job".into());
        if end(old).is_some() {
            let same = conditions(old) == conditions(new);
            self.expect(Rule::FinalEnd, same, || format!("an end changes: {:?}", conditions(new)));
            return;
        }
        self.expect(Rule::FinalEnd, ends(new).count() <= 1, || "a job ends twice".into());
        if end(new).is_some_and(|end| end.reason == "DeadlineExceeded") {
            let due = deadline_due(old, self.settings.deadline_clock);
            let decided = request.decided.0;
            self.expect(Rule::NoEarlyDeadline, due.is_some_and(|due| decided >= due), || {
                format!("a deadline fails a job at {decided}, but it is due at {due:?}")
            });
        }
    }

    pub(super) fn judge_waiting(
        &mut self,
        before: &Arc<StoredJob>,
        after: &Arc<StoredJob>,
        changed: bool,
    ) {
        let (old, new) = (&before.manifest, &after.manifest);
        self.expect(Rule::BoundedPressure, changed, || "a status write changes nothing".into());
        self.expect(Rule::Identity, is_ours(old), || "a status of somebody else's job".into());
        let by_deadline = end(old).is_some_and(|end| end.reason == "DeadlineExceeded");
        self.expect(Rule::FinalEnd, by_deadline, || "a job waits for no release".into());
        let others = |job| conditions(job).iter().filter(|condition| condition.type_ != "Waiting");
        let same = others(old).eq(others(new)) && conditions(new).len() <= others(new).count() + 1;
        self.expect(Rule::FinalEnd, same, || format!("an end changes: {:?}", conditions(new)));
    }

    pub(super) fn judge_creation(&mut self, request: &Request, job_set: &JobSet) {
        let job = &request.job;
        let Some(slot) = self.slots.get(request.name) else { return };
        let mut frozen = slot.frozen.iter().filter(|(uid, _)| *uid == job.facts.uid);
        let right = frozen.any(|(_, runtime)| {
            build(&job.manifest, runtime).is_ok_and(|built| built.job_set == *job_set)
        });
        self.expect(Rule::EditsWin, right, || "a JobSet not made from the frozen runtime".into());
    }

    pub(super) fn judge_change(
        &mut self,
        request: &Request,
        before: &StoredJobSet,
        after: &StoredJobSet,
        changed: bool,
    ) {
        self.judge_owner(request, before);
        self.expect(Rule::BoundedPressure, changed, || {
            "a change of a JobSet changes nothing".into()
        });
        let (was, is) = (before.facts.suspended, after.facts.suspended);
        let content = before.object.spec.replicated_jobs != after.object.spec.replicated_jobs;
        self.expect(Rule::EditsWin, was || is || !content, || {
            "a JobSet changes while it runs".into()
        });
        if was && !is && self.alone {
            self.judge_resume(request, after);
        }
    }

    fn judge_resume(&mut self, request: &Request, after: &StoredJobSet) {
        let job = &request.job;
        let Some(slot) = self.slots.get(request.name) else { return };
        let stored = slot.snapshot.as_ref();
        let frozen = stored
            .and_then(|stored| trainjob_core::build::snapshot::read(&job.manifest, stored).ok());
        let wanted = frozen
            .and_then(|runtime| build(&job.manifest, &runtime).ok())
            .map(|objects| objects.job_set);
        let differs = wanted.and_then(|wanted| update_suspended(&after.object, &wanted));
        self.expect(Rule::EditsWin, differs.is_none(), || {
            "a JobSet is resumed as something else than its job asks for".into()
        });
    }

    pub(super) fn judge_removal(
        &mut self,
        request: &Request,
        before: &StoredJobSet,
        named: &str,
        version: Option<&str>,
    ) {
        self.expect(Rule::Identity, !named.is_empty(), || "a JobSet is deleted by its name".into());
        self.judge_owner(request, before);
        if version.is_some() {
            // To be made anew, which loses nothing while nothing has run.
            self.expect(Rule::DurableBeforeDestroy, before.facts.never_ran, || {
                "a JobSet that has run goes before its job's end".into()
            });
            return;
        }
        let Some(slot) = self.slots.get(request.name) else { return };
        let Some(job) = slot.job.clone().filter(|job| job.facts.uid == request.job.facts.uid)
        else {
            return;
        };
        let Some(end) = end(&job.manifest) else {
            self.broke(Rule::DurableBeforeDestroy, || "a JobSet goes before its job's end".into());
            return;
        };
        let late = before.facts.created_at > at(end);
        self.expect(Rule::Identity, late || end.reason == "DeadlineExceeded", || {
            format!("a JobSet that may stay is deleted, job ended {}", end.reason)
        });
    }

    fn judge_owner(&mut self, request: &Request, job_set: &StoredJobSet) {
        let own = job_set.facts.train_job_uid.as_ref() == Some(&request.job.facts.uid);
        self.expect(Rule::Identity, own, || "a JobSet that is not the job's is changed".into());
    }

    pub(super) fn judge_deletion(
        &mut self,
        request: &Request,
        job: &StoredJob,
        deletion: &TtlDeletion,
    ) {
        let named = !deletion.uid.is_empty() && !deletion.resource_version.is_empty();
        self.expect(Rule::EditsWin, named, || "a TTL deletes a job without a precondition".into());
        let due = ttl_due(&job.manifest, self.settings);
        let decided = request.decided.0;
        self.expect(Rule::NoEarlyDelete, due.is_some_and(|due| decided >= due), || {
            format!("a TTL deletes {} at {decided}, but it is due at {due:?}", job.facts.uid)
        });
        // What a changed hold made due was not due before the change.
        let changed = self.changed_holds.contains(&job.facts.uid);
        let lateness =
            Some(deletion.due.0) == due || changed && due.is_some_and(|due| deletion.due.0 > due);
        self.expect(Rule::NoEarlyDelete, lateness, || "lateness is measured wrongly".into());
    }

    /// A decision that was made on a state in which the job's own JobSet had ended.
    pub(crate) fn end_was_known(&mut self, job: &str) {
        self.broke(Rule::NoEarlyDeadline, || format!("{job}: its JobSet had ended, as was known"));
    }
}

/// When the deadline of an unfinished job is due.
#[must_use]
pub fn deadline_due(job: &TrainJob, clock: Clock) -> Option<i64> {
    let seconds = job.spec.active_deadline_seconds.filter(|seconds| *seconds > 0)?;
    let created = job.metadata.creation_timestamp.as_ref()?;
    let suspended = conditions(job).iter().find(|condition| condition.type_ == "Suspended");
    let start = match (clock, job.spec.suspend == Some(true), suspended) {
        (Clock::Creation, ..) | (Clock::LastResume, false, None) => created.into(),
        (Clock::LastResume, false, Some(since)) if since.status == "False" => at(since),
        (Clock::LastResume, ..) => return None,
    };
    start.0.checked_add(seconds)
}

/// When the TTL of a job is due, if it has one that applies to it: when it has passed and no hold keeps the job.
#[must_use]
pub fn ttl_due(job: &TrainJob, settings: Settings) -> Option<i64> {
    let exempt = !(is_ours(job) || settings.ttl_for_managed_elsewhere)
        || job.metadata.deletion_timestamp.is_some()
        || job.metadata.labels.iter().flatten().any(|(name, _)| name == MULTIKUEUE_ORIGIN_LABEL);
    let seconds = job.spec.ttl_seconds_after_finished.filter(|seconds| *seconds >= 0)?;
    let passed = at(end(job)?).0 + i64::from(seconds);
    let latest = passed + i64::from(settings.maximum_hold);
    let hold_ends = hold(job).map_or(passed, |hold| match hold {
        Hold::Until(until) => until.0.min(latest),
        Hold::Unreadable => latest,
    });
    (!exempt).then(|| passed.max(hold_ends))
}

/// Whether a Pod of a JobSet of this UID may run: those of strangers do not count.
#[must_use]
pub fn stranger(job_set: Option<&StoredJobSet>, job_uid: &str) -> Option<String> {
    let job_set = job_set?;
    let own = job_set.facts.train_job_uid.as_deref() == Some(job_uid);
    (!own).then(|| uid(&job_set.object.metadata).to_owned())
}
