//! The rules, in the order in which they win.
//!
//! 1. A TrainJob that somebody else manages is left alone (but for a TTL, by configuration).
//! 2. A finished job stays as it finished. What its deadline stopped is released (its counts stay as
//!    they were then); of any other, a JobSet made after the end is deleted, and the counts of its own
//!    are mirrored. Then its TTL deletes it.
//! 3. The end of its own JobSet finishes an unfinished job; that wins over the deadline.
//! 4. Its deadline fails it: first the condition is stored, then the JobSet is deleted.
//! 5. A job that is being deleted gets nothing new, but its suspension and its status are kept.
//! 6. A runtime of a kind nobody knows fails it.
//! 7. Otherwise it gets its [children](crate::children), and its status says how it is.
//!
//! The order of actions within a plan matters: status goes before effects, so that what must survive a
//! crash is stored before anything follows from it, and the first action that fails ends the pass.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use trainjob_api::{
    TrainJob,
    conditions::{self, Reason},
    time::Timestamp,
};

use crate::{
    action::{Action, DeletionReason, Plan, TtlDeletion, Waiting},
    build::{self, UnsupportedRuntime},
    children,
    event::Event,
    facts::{Finished, JobFacts, JobSetFacts, Outcome, PodGroupFacts, Scheduler, Standing},
    lifecycle::{deadline, hold, release, release_status, status, ttl},
    now::Now,
    observed::{KnownRuntime, Listed, Observed, Reading, Settings},
    running_pods::RunningPods,
};

/// Decides what to do for one TrainJob at `now`, and when to ask again.
///
/// Total and deterministic. Convergent: carrying out the actions and asking again leads, after finitely
/// many rounds, to a plan with nothing to do but [`Action::RecordEvent`], which is for the shell to deduplicate.
#[must_use]
pub fn plan(observed: &Observed<'_>, now: Now) -> Plan {
    if observed.listed == Listed::TheJob {
        return before_all_is_listed(observed, now);
    }
    let job = observed.job;
    let mut plan = if job.managed_elsewhere { foreign(observed, now) } else { own(observed, now) };
    let origin = observed.readings.loop_closed_by.clone();
    plan.actions.extend(origin.map(|origin| Action::RecordEvent(Event::RecreateLoop(origin))));
    plan
}

/// What to do as long as nothing is known but the TrainJob itself: its TTL deletes it, unless its deadline failed it, in which case
/// it has to be released first. The deletion names the version that it is decided on, and takes along what the job owns, so
/// that nothing which is not known yet could speak against it.
fn before_all_is_listed(observed: &Observed<'_>, now: Now) -> Plan {
    let (job, mut plan) = (observed.job, Plan::default());
    match job.finished {
        Some(finished) if finished.outcome == Outcome::DeadlineExceeded => {}
        Some(finished) => apply_ttl(&mut plan, observed, finished, true, now),
        None => {
            let subject = deadline::Subject::of(job, observed.settings.deadline_clock);
            if let deadline::Decision::Wait { due } = deadline::decide(&subject, now) {
                plan.next = Some(due);
            }
        }
    }
    plan
}

/// What to do for a job that is this operator's.
fn own(observed: &Observed<'_>, now: Now) -> Plan {
    let job = observed.job;
    let mut plan = match (job.finished, observed.manifest) {
        (Some(finished), _) => after_the_end(observed, finished, now),
        (None, Some(manifest)) => before_the_end(observed, manifest, now),
        (None, None) => without_manifest(observed, now),
    };
    if let Some(problem) = job.out_of_range {
        plan.actions.push(Action::RecordEvent(Event::FieldOutOfRange(problem)));
    }
    plan
}

/// The JobSet of the job's name, if its controller is this very job.
fn own_job_set<'a>(observed: &Observed<'a>) -> Option<&'a JobSetFacts> {
    observed.job_set.filter(|job_set| job_set.train_job_uid.as_ref() == Some(&observed.job.uid))
}

fn foreign(observed: &Observed<'_>, now: Now) -> Plan {
    let mut plan = Plan::default();
    if let (Some(finished), true) =
        (observed.job.finished, observed.settings.ttl_for_managed_elsewhere)
    {
        apply_ttl(&mut plan, observed, finished, true, now);
    }
    plan
}

fn before_the_end(observed: &Observed<'_>, manifest: &TrainJob, now: Now) -> Plan {
    let job = observed.job;
    let own = own_job_set(observed);
    let mut conditions = status::stored_conditions(manifest).to_vec();
    status::mirror_suspension(&mut conditions, job.suspend, now.stamp());

    let gone = observed.readings.ended.as_deref();
    if let Some(end) = own.map_or(gone, |own| own.ended.as_deref()) {
        status::finish_with_job_set(&mut conditions, end);
        let mut actions = write(job, manifest, own, conditions);
        let failed = own.filter(|_| !end.completed);
        actions.extend(failed.map(|own| Action::RecordOutOfMemory { job_set: own.uid.clone() }));
        return Plan { actions, ..Plan::default() };
    }
    let subject = deadline::Subject::of(job, observed.settings.deadline_clock);
    let (warning, next) = match deadline::decide(&subject, now) {
        deadline::Decision::Exceeded { due } => {
            let why = deadline::Explanation::of(&subject, due);
            return exceed(observed, manifest, conditions, why, now);
        }
        deadline::Decision::Wait { due } => tell_of_deadline(observed, &subject, due, now),
        deadline::Decision::Never => (None, None),
    };
    if job.terminating {
        let mut actions = write(job, manifest, own, conditions);
        // Somebody's finalizer may keep it for long.
        actions.extend(children::stop(job, own));
        return Plan { actions, next, ..Plan::default() };
    }
    if let Err(unsupported) = build::runtime_key(manifest) {
        return refuse(job, manifest, conditions, &unsupported, now);
    }

    let step = children::next_step(observed, manifest, own, now);
    let next = next.into_iter().chain(step.next).min();
    let obstacle = step.obstacle.as_ref();
    let why = obstacle.and_then(|obstacle| obstacle.told.as_ref());
    // While something is still to be read or made, it is not known yet whether the job waits.
    let runtime_came = observed.runtime != KnownRuntime::Absent && waits_for_runtime(&conditions);
    if step.actions.is_empty() || runtime_came {
        let why = why.map(|told| (told.reason, &*told.message));
        status::mirror_waiting(&mut conditions, why, now.stamp());
    }
    let news = why.filter(|_| {
        conditions::find(&conditions, conditions::WAITING)
            != conditions::find(status::stored_conditions(manifest), conditions::WAITING)
    });
    let mut actions = write(job, manifest, own, conditions);
    actions.extend(step.actions);
    actions
        .extend(news.map(|told| Action::RecordEvent(Event::CreationFailed(told.message.clone()))));
    actions.extend(warning.map(Action::RecordEvent));
    let waiting = step.obstacle.map(|obstacle| obstacle.waiting);
    Plan { actions, next, waiting, applied_spec_hash: step.applied_spec_hash }
}

/// While the manifest of an unfinished job is not known: what its facts alone call for, or that it is read.
fn without_manifest(observed: &Observed<'_>, now: Now) -> Plan {
    let (job, own) = (observed.job, own_job_set(observed));
    let subject = deadline::Subject::of(job, observed.settings.deadline_clock);
    let read = || Plan { actions: vec![Action::ReadTrainJob], ..Plan::default() };
    let (warning, next) = match deadline::decide(&subject, now) {
        deadline::Decision::Exceeded { .. } => return read(),
        deadline::Decision::Wait { due } => tell_of_deadline(observed, &subject, due, now),
        deadline::Decision::Never => (None, None),
    };
    if !children::is_settled(observed, own) {
        return Plan { next, ..read() };
    }
    let counts = status::write(job, &[], None, status::counts(job, own));
    let counts = counts.map(Action::WriteStatus);
    let actions = counts.into_iter().chain(warning.map(Action::RecordEvent)).collect();
    Plan { actions, next, ..Plan::default() }
}

/// D8: what users are told of a deadline that comes, and when to ask again.
fn tell_of_deadline(
    observed: &Observed<'_>,
    subject: &deadline::Subject,
    due: Timestamp,
    now: Now,
) -> (Option<Event>, Option<Timestamp>) {
    match subject.warning_at(due, observed.settings.deadline_warning) {
        Some(warning_at) if now.has_come(warning_at) => {
            (Some(Event::DeadlineApproaching(deadline::Explanation::of(subject, due))), Some(due))
        }
        Some(warning_at) => (None, Some(warning_at)),
        None => (None, Some(due)),
    }
}

/// D3: the condition is stored before anything is deleted, so that no crash loses the goal.
fn exceed(
    observed: &Observed<'_>,
    manifest: &TrainJob,
    mut conditions: Vec<Condition>,
    why: deadline::Explanation,
    now: Now,
) -> Plan {
    let own = own_job_set(observed);
    // Clients know the first sentence.
    let message = format!("{}. {why}", conditions::MESSAGE_DEADLINE_EXCEEDED);
    status::fail(&mut conditions, (Reason::DeadlineExceeded, &message), now.stamp());
    let mut actions = write(observed.job, manifest, own, conditions);
    if let Some(Action::WriteStatus(write)) = actions.first_mut() {
        write.deadline_due = Some(why.due);
    }
    // Told before the deletion, which may fail and be repeated by passes that know nothing of this one.
    actions.push(Action::RecordEvent(Event::DeadlineExceeded(why)));
    let still_there = own.filter(|job_set| job_set.terminating_since.is_none());
    actions.extend(still_there.map(delete));
    Plan { actions, ..Plan::default() }
}

fn refuse(
    job: &JobFacts,
    manifest: &TrainJob,
    mut conditions: Vec<Condition>,
    unsupported: &UnsupportedRuntime,
    now: Now,
) -> Plan {
    let message = unsupported.to_string();
    status::fail(&mut conditions, (Reason::TrainingRuntimeNotSupported, &message), now.stamp());
    let mut actions = write(job, manifest, None, conditions);
    actions.push(Action::RecordEvent(Event::CreationFailed(message)));
    Plan { actions, ..Plan::default() }
}

fn after_the_end(observed: &Observed<'_>, finished: Finished, now: Now) -> Plan {
    let own = own_job_set(observed);
    let mut plan = Plan::default();
    let mut released = true;
    if finished.outcome == Outcome::DeadlineExceeded {
        released = release(&mut plan, observed, finished, own, now);
    } else if let Some(job_set) = own.filter(|job_set| job_set.may_run_after_the_end(observed.job))
    {
        // It must not run again.
        let delete = job_set.terminating_since.is_none().then(|| delete(job_set));
        plan.actions.extend(delete);
    } else if let Some(job_set) = own {
        let write = status::write(observed.job, &[], None, &job_set.jobs_status);
        plan.actions.extend(write.map(Action::WriteStatus));
    }
    // A gang that is over holds no place in any queue.
    let of_job = |group: &&PodGroupFacts| group.train_job_uid.as_ref() == Some(&observed.job.uid);
    let groups = Scheduler::ALL.into_iter().filter_map(|it| observed.pod_groups.of(it).there());
    let over = groups.filter(of_job).filter(|group| !group.terminating);
    plan.actions.extend(over.map(|group| Action::DeletePodGroup {
        scheduler: group.spec.scheduler(),
        uid: group.uid.clone(),
    }));
    apply_ttl(&mut plan, observed, finished, released, now);
    plan
}

/// Adds what the release of a job that its deadline failed takes; tells whether it is released.
fn release(
    plan: &mut Plan,
    observed: &Observed<'_>,
    finished: Finished,
    own: Option<&JobSetFacts>,
    now: Now,
) -> bool {
    let readings = observed.readings;
    let stray = readings.stray_pod.clone().map(Event::StrayPod);
    plan.actions.extend(stray.map(Action::RecordEvent));
    match (release::decide(&release_subject(own, &readings.pods), now), own) {
        (release::Decision::DeleteJobSet, Some(job_set)) => {
            plan.actions.push(delete(job_set));
        }
        (release::Decision::DeleteJobSet, None) => {}
        (release::Decision::Terminating { check_at }, _) => plan.next = Some(check_at),
        (release::Decision::CheckPods, _) => {
            let foreign = observed.job_set.filter(|_| own.is_none());
            let except_job_set = foreign.map(|job_set| job_set.uid.clone());
            let name_them = release_status::is_said(finished, now.stamp());
            plan.actions.push(Action::CheckPods { except_job_set, name_them });
        }
        (release::Decision::PodsRunning, _) => {
            if let Reading::Found(running) = &readings.pods
                && !running.named.is_empty()
            {
                let event = Event::ReleaseDelayed(running.to_string());
                tell_and_say(plan, observed, Reason::PodsRunning, event, now.stamp());
            }
            plan.waiting = Some(Waiting::Release);
        }
        (release::Decision::Blocked, _) => {
            let (reason, event) = (Reason::JobSetTerminating, Event::ReleaseBlocked);
            tell_and_say(plan, observed, reason, event, now.stamp());
            plan.waiting = Some(Waiting::Finalizer);
        }
        (release::Decision::Released, _) => {
            let write = release_status::write(observed.job, None, now.stamp());
            plan.actions.extend(write.map(Action::WriteWaiting));
            return true;
        }
    }
    false
}

/// Tells why the job is not released, and makes its status say so. The event goes first, because it cannot fail.
fn tell_and_say(
    plan: &mut Plan,
    observed: &Observed<'_>,
    reason: Reason,
    event: Event,
    now: Timestamp,
) {
    let write = release_status::write(observed.job, Some((reason, &event.note())), now);
    plan.actions.push(Action::RecordEvent(event));
    plan.actions.extend(write.map(Action::WriteWaiting));
}

/// Adds the deletion of a finished job, alone but for events (its version is about to be decided on, so nothing else
/// may change the job in the same pass), or the instant at which it is due.
fn apply_ttl(
    plan: &mut Plan,
    observed: &Observed<'_>,
    finished: Finished,
    released: bool,
    now: Now,
) {
    let job = observed.job;
    match ttl::decide(&ttl_subject(job, released, *observed.settings), now) {
        ttl::Decision::Keep => {}
        ttl::Decision::Wait { due } => plan.next = plan.next.into_iter().chain([due]).min(),
        ttl::Decision::Held { since, hold } => {
            plan.next = plan.next.into_iter().chain([hold.until]).min();
            let is_news = hold::is_recorded(observed.readings.hold, since, now);
            plan.actions.extend(is_news.then_some(Action::RecordEvent(Event::Held(hold))));
        }
        ttl::Decision::Delete { due } => {
            // It was not possible before the edit that made it due.
            let edited = observed.readings.hold == hold::News::Edited;
            let due = if edited { due.max(now.stamp()) } else { due };
            let deletion = TtlDeletion {
                uid: job.uid.clone(),
                resource_version: job.resource_version.clone(),
                propagation: observed.settings.deletion_propagation,
                outcome: finished.outcome,
                due,
            };
            let ttl = job.ttl.unwrap_or_default();
            let expired = Event::TtlExpired { finished_at: finished.at, ttl };
            plan.actions.retain(|action| matches!(action, Action::RecordEvent(_)));
            let deletion = [Action::DeleteTrainJob(deletion), Action::RecordEvent(expired)];
            plan.actions.splice(..0, deletion);
        }
    }
}

/// What a job that its deadline failed is for the rule of release, with its own JobSet.
pub(crate) fn release_subject(
    own: Option<&JobSetFacts>,
    pods: &Reading<RunningPods>,
) -> release::Subject {
    let job_set =
        own.map(|job_set| release::JobSet { terminating_since: job_set.terminating_since });
    release::Subject { job_set, pods: release::Pods::from(pods) }
}

/// What a job is for the rule of its TTL. `released` is whether nothing of a job that its deadline failed is left.
#[must_use]
pub fn ttl_subject(job: impl Into<Standing>, released: bool, settings: Settings) -> ttl::Subject {
    let job = job.into();
    let exemption = if job.managed_elsewhere && !settings.ttl_for_managed_elsewhere {
        Some(ttl::Exemption::ManagedElsewhere)
    } else if job.remote_copy {
        Some(ttl::Exemption::RemoteCopy)
    } else if job.terminating {
        Some(ttl::Exemption::Terminating)
    } else {
        (!released).then_some(ttl::Exemption::AwaitingRelease)
    };
    let finished_at = job.finished.map(|finished| finished.at);
    let maximum_hold = settings.maximum_hold;
    ttl::Subject { finished_at, ttl: job.ttl, hold: job.hold, maximum_hold, exemption }
}

/// The end of the job calls for it, whatever is in the JobSet.
fn delete(job_set: &JobSetFacts) -> Action {
    Action::DeleteJobSet { uid: job_set.uid.clone(), reason: DeletionReason::JobEnded }
}

fn waits_for_runtime(conditions: &[Condition]) -> bool {
    conditions::find(conditions, conditions::WAITING)
        .is_some_and(|waiting| waiting.reason == Reason::RuntimeNotFound.as_str())
}

/// The status write that is needed, if any, as the start of a list of actions.
fn write(
    job: &JobFacts,
    manifest: &TrainJob,
    own: Option<&JobSetFacts>,
    conditions: Vec<Condition>,
) -> Vec<Action> {
    let counts = status::counts(job, own);
    let write = status::write(job, status::stored_conditions(manifest), Some(conditions), counts);
    write.map(Action::WriteStatus).into_iter().collect()
}
