//! Seeded defects: wrong operators, to see that the explorer finds out.
//!
//! None of them is in the product. Each changes what the core is shown or what it answers, or, where
//! [`operator`](crate::operator) asks for it, what the shell does.

use std::{collections::BTreeMap, sync::Arc};

use trainjob_api::time::Timestamp;
use trainjob_core::{
    Action, Now, Plan,
    action::{StatusWrite, TtlDeletion, Urgency},
    facts::{Finished, JobSetFacts, Outcome},
    lifecycle::deadline::Clock,
    observed::{Reading, Settings},
    take_over::Comparison,
};

use crate::{
    objects::{StoredJob, StoredJobSet, conditions},
    view::View,
};

/// A way to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// The JobSet is deleted before the deadline's condition is stored.
    DeletionBeforeStatus,
    /// A TTL deletes without naming the version it was decided on.
    TtlWithoutVersion,
    /// A TTL deletes a second early.
    TtlEarly,
    /// A finished job gets a JobSet again.
    CreationAfterTheEnd,
    /// A job that its deadline failed is resumed.
    ResumeAfterDeadline,
    /// A JobSet is deleted by its name alone.
    DeletionByName,
    /// A JobSet of the right name is taken for the job's own.
    ForeignAdopted,
    /// After a restart nobody remembers what a deadline stopped.
    ReleaseForgotten,
    /// A status is written although nothing differs.
    StatusUnchanged,
    /// The deadline does not look whether the JobSet has ended.
    CompletionIgnored,
    /// A failed deletion of a JobSet counts as done.
    DeletionErrorSwallowed,
    /// The timer of a deleted job acts on the next one of its name.
    OldTimer,
    /// Under `LastResume` a deadline fires while the job is suspended.
    FiresWhileSuspended,
    /// What fails is tried again at once.
    NoBackoff,
    /// The terminal condition is written over.
    EndRewritten,
    /// A job that its deadline failed is deleted before it is released.
    UnreleasedDeleted,
    /// Deadlines are not noticed.
    DeadlineIgnored,
    /// TTLs are not noticed.
    TtlIgnored,
    /// Holds are not noticed.
    HoldIgnored,
    /// A hold does not end by itself.
    HoldWithoutEnd,
    /// The suspension of a running job is not passed on.
    SuspensionIgnored,
    /// The most likely time is acted on where no time is known.
    LikelyTimeActedOn,
    /// What is suspended is never compared with its job before it is resumed.
    EditNotFollowed,
    /// What was suspended at a take-over is resumed as it is.
    ResumedUncompared,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::DeletionBeforeStatus,
        Self::TtlWithoutVersion,
        Self::TtlEarly,
        Self::CreationAfterTheEnd,
        Self::ResumeAfterDeadline,
        Self::DeletionByName,
        Self::ForeignAdopted,
        Self::ReleaseForgotten,
        Self::StatusUnchanged,
        Self::CompletionIgnored,
        Self::DeletionErrorSwallowed,
        Self::OldTimer,
        Self::FiresWhileSuspended,
        Self::NoBackoff,
        Self::EndRewritten,
        Self::UnreleasedDeleted,
        Self::DeadlineIgnored,
        Self::TtlIgnored,
        Self::HoldIgnored,
        Self::HoldWithoutEnd,
        Self::SuspensionIgnored,
        Self::LikelyTimeActedOn,
        Self::EditNotFollowed,
        Self::ResumedUncompared,
    ];
}

/// What a wrong operator remembers: when the TTL of a job of this name was due.
#[derive(Debug, Default)]
pub struct Memory(BTreeMap<String, (String, Timestamp)>);

/// What is decided: what the core plans, unless there is a defect.
pub fn decide(
    defect: Option<Defect>,
    memory: &mut Memory,
    process: u32,
    view: &View,
    settings: &Settings,
    now: Now,
) -> Plan {
    let Some(defect) = defect else { return view.plan(settings, now) };
    let (shown, settings, seen) = show(defect, view, *settings, now);
    let mut plan = shown.plan(&settings, seen);
    spoil(defect, &mut plan, process, view);
    if defect == Defect::OldTimer {
        old_timer(memory, view, &mut plan, now);
    }
    plan
}

/// What the core is shown.
fn show(
    defect: Defect,
    view: &View,
    mut settings: Settings,
    mut now: Now,
) -> (View, Settings, Now) {
    let mut shown = view.clone();
    match defect {
        Defect::TtlEarly if view.job.facts.finished.is_some() => now = later(now),
        Defect::LikelyTimeActedOn => now = Now::at(now.stamp()),
        Defect::CreationAfterTheEnd => edit_job(&mut shown, |job| job.facts.finished = None),
        Defect::ForeignAdopted => {
            let uid = view.job.facts.uid.clone();
            edit_job_set(&mut shown, |facts| facts.train_job_uid = Some(uid));
        }
        Defect::CompletionIgnored => {
            let due = view.job.facts.deadline.is_some();
            edit_job_set(&mut shown, |facts| facts.ended = facts.ended.take().filter(|_| !due));
        }
        Defect::FiresWhileSuspended => settings.deadline_clock = Clock::Creation,
        Defect::EditNotFollowed => shown.comparison = Comparison::OnResume,
        Defect::UnreleasedDeleted => shown.readings.pods = Reading::Absent,
        Defect::DeadlineIgnored => edit_job(&mut shown, |job| job.facts.deadline = None),
        Defect::TtlIgnored => edit_job(&mut shown, |job| job.facts.ttl = None),
        Defect::HoldIgnored => edit_job(&mut shown, |job| job.facts.hold = None),
        Defect::HoldWithoutEnd => {
            edit_job(&mut shown, |job| {
                job.facts.ttl = job.facts.ttl.filter(|_| job.facts.hold.is_none());
            });
        }
        _ => {}
    }
    if defect == Defect::UnreleasedDeleted && view.job.facts.finished.is_some() {
        shown.job_set = None;
    }
    (shown, settings, now)
}

/// A second later.
const fn later(now: Now) -> Now {
    match now {
        Now::Known { earliest, likely } => Now::Known { earliest: earliest.plus(1), likely },
        Now::Held { .. } => now,
    }
}

fn edit_job(view: &mut View, edit: impl FnOnce(&mut StoredJob)) {
    let StoredJob { manifest, facts, runtime } = &*view.job;
    let (manifest, facts, runtime) = (manifest.clone(), facts.clone(), runtime.clone());
    let mut job = StoredJob { manifest, facts, runtime };
    edit(&mut job);
    view.job = Arc::new(job);
}

fn edit_job_set(view: &mut View, edit: impl FnOnce(&mut JobSetFacts)) {
    if let Some(job_set) = &view.job_set {
        let StoredJobSet { object, facts } = &**job_set;
        let (object, mut facts) = (object.clone(), facts.clone());
        edit(&mut facts);
        view.job_set = Some(Arc::new(StoredJobSet { object, facts }));
    }
}

/// What becomes of the core's answer.
fn spoil(defect: Defect, plan: &mut Plan, process: u32, view: &View) {
    let job = &view.job.facts;
    match defect {
        Defect::DeletionBeforeStatus => {
            plan.actions.sort_by_key(|action| !matches!(action, Action::DeleteJobSet { .. }));
        }
        Defect::TtlWithoutVersion => {
            for action in &mut plan.actions {
                if let Action::DeleteTrainJob(deletion) = action {
                    deletion.resource_version.clear();
                }
            }
        }
        Defect::DeletionByName => {
            for action in &mut plan.actions {
                if let Action::DeleteJobSet { uid, .. } = action {
                    uid.clear();
                }
            }
        }
        Defect::ResumeAfterDeadline => {
            let failed = job.finished.is_some_and(by_deadline);
            let resume = view.own().filter(|own| failed && own.facts.suspended);
            plan.actions.extend(resume.map(|own| Action::SuspendJobSet {
                uid: own.facts.uid.clone(),
                resource_version: own.facts.resource_version.clone(),
                suspend: false,
            }));
        }
        Defect::ReleaseForgotten if process > 0 && job.finished.is_some() => {
            plan.actions.retain(|action| !matches!(action, Action::DeleteJobSet { .. }));
        }
        Defect::StatusUnchanged if job.finished.is_some() && plan.actions.is_empty() => {
            plan.actions.push(Action::WriteStatus(rewrite(view, |_| {})));
        }
        Defect::EndRewritten if job.finished.is_some() && plan.actions.is_empty() => {
            let reason = "Again";
            let end = conditions(&view.job.manifest).iter().any(|end| end.reason == reason);
            let again = (!end).then(|| rewrite(view, |condition| condition.reason = reason.into()));
            plan.actions.extend(again.map(Action::WriteStatus));
        }
        Defect::ResumedUncompared if view.comparison == Comparison::Due && process > 0 => {
            let compares = plan.actions.iter().any(|it| matches!(it, Action::ReadJobSet));
            let own = view.own().filter(|own| compares && own.facts.suspended && !job.suspend);
            if let Some(own) = own {
                plan.actions = vec![Action::SuspendJobSet {
                    uid: own.facts.uid.clone(),
                    resource_version: own.facts.resource_version.clone(),
                    suspend: false,
                }];
            }
        }
        Defect::SuspensionIgnored => {
            let stop = |action: &Action| matches!(action, Action::SuspendJobSet { suspend, .. } if *suspend);
            plan.actions.retain(|action| !stop(action));
        }
        _ => {}
    }
}

fn by_deadline(end: Finished) -> bool {
    end.outcome == Outcome::DeadlineExceeded
}

fn rewrite(
    view: &View,
    edit: impl Fn(&mut k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition),
) -> StatusWrite {
    let mut stored = conditions(&view.job.manifest).to_vec();
    stored.iter_mut().for_each(edit);
    StatusWrite {
        uid: view.job.facts.uid.clone(),
        resource_version: view.job.facts.resource_version.clone(),
        conditions: Some(stored),
        jobs_status: None,
        urgency: Urgency::AtOnce,
        deadline_due: None,
    }
}

/// The TTL that was noted for a name deletes whatever has the name when it is due.
fn old_timer(memory: &mut Memory, view: &View, plan: &mut Plan, now: Now) {
    let job = &view.job.facts;
    if let (Some(end), Some(ttl)) = (job.finished, job.ttl) {
        let due = end.at.plus(i64::from(ttl));
        memory.0.insert(job.key.name.to_string(), (job.uid.clone(), due));
    }
    let Some((uid, due)) = memory.0.get(&*job.key.name) else { return };
    if *uid != job.uid && now.has_come(*due) {
        plan.actions = vec![Action::DeleteTrainJob(TtlDeletion {
            uid: job.uid.clone(),
            resource_version: job.resource_version.clone(),
            propagation: trainjob_core::observed::Propagation::Foreground,
            outcome: Outcome::Complete,
            due: *due,
        })];
    }
}
