//! The children of an unfinished job: which of them to make or change next.
//!
//! A job has one JobSet, made from its runtime as it was when the job was first built: that runtime is
//! frozen in a snapshot ConfigMap of the job's own. Both are created with fixed names, and what is
//! already there under such a name is judged by the UID of its owner. A JobSet that runs is never
//! changed; one that is suspended, or is to be, follows the job in the few fields JobSet lets change.

mod follow;
mod group;
mod origin;
mod settled;
mod step;
mod suspension;

use trainjob_api::{TrainJob, conditions::Reason, time::Timestamp};

use self::{
    follow::follow,
    group::pod_group,
    origin::{Source, digest, read_runtime, source},
    step::{Obstacle, Step},
    suspension::suspend,
};
pub(crate) use self::{settled::is_settled, suspension::stop};
use crate::{
    action::{Action, Waiting},
    build::{self, BuildError, Objects, Runtime, snapshot},
    event::Event,
    facts::{JobSetFacts, ObjectKey},
    mark::{self, Marking},
    now::Now,
    observed::{KnownRuntime, NameConflict, Observed, Reading},
    text::Text,
};

/// Seconds after the creation of a job in which a JobSet of another TrainJob is not worth telling of.
const SETTLED_AFTER: i64 = 10;

/// Seconds after which a JobSet that is being deleted and is still there is worth telling of.
const TELL_AFTER: i64 = 60;

/// Decides what to do next for the children of an unfinished job that is not being deleted.
pub(crate) fn next_step(
    observed: &Observed<'_>,
    manifest: &TrainJob,
    own: Option<&JobSetFacts>,
    now: Now,
) -> Step {
    // Until then the JobSet of a predecessor may be known that is gone already: watches of different kinds
    // are not ordered with each other.
    let settled = observed.job.created_at.plus(SETTLED_AFTER);
    match (own, observed.job_set) {
        (Some(JobSetFacts { terminating_since: Some(since), .. }), _) => {
            terminating(&observed.job.key, *since, now)
        }
        (Some(job_set), _) if observed.job.suspend && !job_set.suspended => {
            // Stopping comes first, and takes one call; the rest can follow while it is suspended.
            Step::act(vec![suspend(job_set, true)])
        }
        (Some(job_set), _) if job_set.suspended => follow(observed, manifest, job_set),
        (Some(_), _) => Step::default(),
        (None, Some(foreign)) if foreign.train_job_uid.is_some() && !now.has_come(settled) => {
            let obstacle = Obstacle { waiting: Waiting::JobSet, told: None };
            Step { obstacle: Some(obstacle), next: Some(settled), ..Step::default() }
        }
        (None, Some(_)) => Step::wait(
            Waiting::JobSet,
            Reason::JobSetConflict,
            format!(
                "JobSet {} exists and does not belong to this TrainJob; delete or rename it, the TrainJob starts when it is gone",
                observed.job.key
            ),
        ),
        (None, None) if observed.readings.needs_existence_check => {
            Step::act(vec![Action::ReadTrainJob])
        }
        (None, None) => create(observed, manifest),
    }
}

/// It is gone in a moment, unless a finalizer keeps it.
fn terminating(key: &ObjectKey, since: Timestamp, now: Now) -> Step {
    let tell_at = since.plus(TELL_AFTER);
    if !now.has_come(tell_at) {
        let obstacle = Obstacle { waiting: Waiting::JobSet, told: None };
        return Step { obstacle: Some(obstacle), next: Some(tell_at), ..Step::default() };
    }
    let message = format!(
        "JobSet {key} has been terminating since {since}; see which of its finalizers keeps it, the TrainJob goes on when it is gone"
    );
    Step::wait(Waiting::JobSet, Reason::JobSetTerminating, message)
}

fn create(observed: &Observed<'_>, manifest: &TrainJob) -> Step {
    let (frozen, live) = match (source(observed, manifest), observed.runtime) {
        (Source::Frozen(runtime), _) => (Some(runtime), None),
        // Most jobs are new and have no snapshot: creating it tells, without reading first.
        (Source::Live(runtime), _) | (Source::Unread, KnownRuntime::There(runtime)) => {
            (None, Some(runtime))
        }
        (Source::Evicted, _) | (Source::Unread, KnownRuntime::Evicted) => {
            return read_runtime(manifest);
        }
        (Source::Unread, KnownRuntime::Absent) => return Step::act(vec![Action::ReadSnapshot]),
        (Source::Missing, _) => return missing(manifest),
        (Source::Unusable(error), _) => {
            return Step::wait(Waiting::Snapshot, Reason::SnapshotConflict, error.to_string());
        }
    };
    let Some(runtime) = frozen.as_deref().or(live) else { return Step::default() };
    match build::build(manifest, runtime) {
        Ok(objects) => make(observed, manifest, live, objects),
        // There may be a snapshot, and then the runtime as it is now does not matter.
        Err(_) if matches!(observed.readings.snapshot, Reading::NotRead) => {
            Step::act(vec![Action::ReadSnapshot])
        }
        Err(error) => unbuildable(live, &error),
    }
}

/// Makes the objects of a job that has no JobSet, in their order.
fn make(
    observed: &Observed<'_>,
    manifest: &TrainJob,
    live: Option<&Runtime>,
    objects: Objects,
) -> Step {
    if let Some(taken) = &observed.readings.name_conflict {
        return free(taken);
    }
    // Whether a Secret that is there is the job's own is told by its snapshot.
    let unread = matches!(observed.readings.snapshot, Reading::NotRead);
    if !objects.secrets.is_empty() && unread {
        return Step::act(vec![Action::ReadSnapshot]);
    }
    let mut actions = Vec::new();
    if let Some(runtime) = live {
        let witness = objects.config_maps.first().and_then(|it| it.metadata.name.clone());
        let probes = objects.secrets.iter().cloned().map(Box::new);
        actions.extend(probes.map(|claim| Action::ProbeSecret { claim, witness: witness.clone() }));
        match snapshot::render(manifest, runtime) {
            Ok(snapshot) => actions.push(Action::CreateSnapshot(Box::new(snapshot))),
            Err(error) => return unbuildable(Some(runtime), &error),
        }
    }
    actions.extend(objects.secrets.into_iter().map(Box::new).map(Action::CreateSecret));
    let config_maps = objects.config_maps.into_iter().map(Box::new);
    actions.extend(config_maps.map(Action::CreateConfigMap));
    if let Some(group) = objects.pod_group {
        match pod_group(observed, group) {
            Ok(action) => actions.extend(action),
            // There may be a snapshot, and then the runtime as it is now does not matter.
            Err(_) if unread => return Step::act(vec![Action::ReadSnapshot]),
            Err(step) => return *step,
        }
    }
    let mut job_set = objects.job_set;
    let (name, uid) = (&observed.job.key.name, &observed.job.uid);
    let marking = mark::mark_new(&mut job_set, observed.accounting, name, uid);
    match Text::of(&job_set) {
        Ok(job_set) => actions.push(Action::CreateJobSet { job_set, marking }),
        Err(error) => return unbuildable(live, &BuildError::unwritable(&error)),
    }
    if marking == Marking::Skipped {
        actions.push(Action::RecordEvent(Event::AccountingSkipped));
    }
    Step { actions, applied_spec_hash: Some(digest(manifest)), ..Step::default() }
}

/// Frees the name of a child. Only a ConfigMap of the job's own is deleted, and no Pod needs it: there is no JobSet.
fn free(taken: &NameConflict) -> Step {
    let message = match taken {
        NameConflict::Outdated { name, uid, resource_version } => {
            return Step::act(vec![Action::DeleteConfigMap {
                name: name.clone(),
                uid: uid.clone(),
                resource_version: resource_version.clone(),
            }]);
        }
        NameConflict::Terminating { name } => {
            format!("ConfigMap {name} is outdated and being deleted; see which finalizer keeps it")
        }
        NameConflict::Foreign { kind, name } => format!(
            "{kind} {name} exists and is not known to belong to this TrainJob; delete or rename it"
        ),
    };
    let message = format!("{message}, the TrainJob goes on when it is gone");
    Step::wait(Waiting::Name, Reason::NameConflict, message)
}

fn unbuildable(live: Option<&Runtime>, error: &BuildError) -> Step {
    let waiting = match live {
        Some(runtime) => Waiting::Runtime(runtime.key.clone()),
        None => Waiting::Snapshot,
    };
    Step::wait(waiting, Reason::BuildFailed, error.to_string())
}

fn missing(manifest: &TrainJob) -> Step {
    match build::runtime_key(manifest) {
        Ok(key) => {
            let message = format!(
                "{key} does not exist; create it or correct spec.runtimeRef of a new TrainJob"
            );
            Step::wait(Waiting::Runtime(key), Reason::RuntimeNotFound, message)
        }
        // An unknown kind has failed the job before it came here.
        Err(_) => Step::default(),
    }
}
