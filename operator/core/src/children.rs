//! The children of an unfinished job: which of them to make or change next.
//!
//! A job has one JobSet, made from its runtime as it was when the job was first built: that runtime is
//! frozen in a snapshot ConfigMap of the job's own. Both are created with fixed names, and what is
//! already there under such a name is judged by the UID of its owner. A JobSet that runs is never
//! changed; one that is suspended, or is to be, follows the job in the few fields JobSet lets change.

mod settled;

use std::hash::{DefaultHasher, Hash, Hasher};

use trainjob_api::{
    JobSet, TrainJob, conditions::Reason, time::Timestamp, v1alpha1::train_job::TrainJobSpec,
};

use self::settled::can_wait;
pub(crate) use self::settled::is_settled;
use crate::{
    action::{Action, DeletionReason, Waiting},
    build::{self, BuildError, Objects, PodGroup, Runtime, SnapshotError, snapshot},
    event::Event,
    facts::{JobFacts, JobSetFacts, ObjectKey},
    mark::{self, Marking},
    now::Now,
    observed::{KnownRuntime, NameConflict, Observed, Presence, Reading},
};

/// Seconds after the creation of a job in which a JobSet of another TrainJob is not worth telling of.
const SETTLED_AFTER: i64 = 10;

/// Seconds after which a JobSet that is being deleted and is still there is worth telling of.
const TELL_AFTER: i64 = 60;

/// What to do next for a job's children.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) actions: Vec<Action>,
    pub(crate) obstacle: Option<Obstacle>,
    /// See [`Plan::applied_spec_hash`](crate::action::Plan::applied_spec_hash).
    pub(crate) applied_spec_hash: Option<u64>,
    /// When time alone changes the answer.
    pub(crate) next: Option<Timestamp>,
}

/// What keeps a job from its children.
#[derive(Debug)]
pub(crate) struct Obstacle {
    pub(crate) waiting: Waiting,
    /// What users are told of it; `None` where it is gone in a moment.
    pub(crate) told: Option<Told>,
}

/// The reason and message of a `Waiting` condition.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

impl Step {
    fn act(actions: Vec<Action>) -> Self {
        Self { actions, ..Self::default() }
    }

    fn wait(waiting: Waiting, reason: Reason, message: String) -> Self {
        let told = Some(Told { reason, message });
        Self { obstacle: Some(Obstacle { waiting, told }), ..Self::default() }
    }
}

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

/// Where the runtime of a job comes from.
enum Source<'a> {
    /// From its snapshot.
    Frozen(Box<Runtime>),
    /// From the runtime as it is now; it has to be frozen first.
    Live(&'a Runtime),
    /// From the runtime as it is now, which is to be read again first.
    Evicted,
    /// Unknown until the snapshot has been read.
    Unread,
    /// From nowhere: the runtime does not exist.
    Missing,
    /// The ConfigMap under the snapshot's name is of no use.
    Unusable(SnapshotError),
}

fn source<'a>(observed: &Observed<'a>, manifest: &TrainJob) -> Source<'a> {
    match (&observed.readings.snapshot, observed.runtime) {
        (Reading::Found(config_map), _) => match snapshot::read(manifest, config_map) {
            Ok(runtime) => Source::Frozen(Box::new(runtime)),
            Err(error) => Source::Unusable(error),
        },
        (Reading::Absent, KnownRuntime::There(runtime)) => Source::Live(runtime),
        (Reading::Absent, KnownRuntime::Evicted) => Source::Evicted,
        (Reading::Absent, KnownRuntime::Absent) => Source::Missing,
        (Reading::NotRead, _) => Source::Unread,
    }
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
    actions.push(Action::CreateJobSet(Box::new(job_set)));
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

/// What to do for the PodGroup, if anything; or why the job has to wait.
fn pod_group(observed: &Observed<'_>, wanted: PodGroup) -> Result<Option<Action>, Box<Step>> {
    let key = &observed.job.key;
    match *observed.pod_groups.of(wanted.spec.scheduler()) {
        Presence::NotServed => {
            let message = wanted.spec.scheduler().not_served();
            Err(Box::new(Step::wait(Waiting::PodGroup, Reason::PodGroupNotServed, message)))
        }
        Presence::Absent => Ok(Some(Action::CreatePodGroup(Box::new(wanted)))),
        Presence::There(group) if group.train_job_uid.as_ref() != Some(&observed.job.uid) => {
            let message = format!(
                "PodGroup {key} exists and does not belong to this TrainJob; delete or rename it, the TrainJob starts when it is gone"
            );
            Err(Box::new(Step::wait(Waiting::PodGroup, Reason::PodGroupConflict, message)))
        }
        Presence::There(group) if group.terminating => {
            let obstacle = Obstacle { waiting: Waiting::PodGroup, told: None };
            Err(Box::new(Step { obstacle: Some(obstacle), ..Step::default() }))
        }
        Presence::There(group) => {
            let spec = build::pod_group_patch(&group.spec, &wanted.spec);
            Ok(spec.map(|spec| Action::UpdatePodGroup {
                scheduler: wanted.spec.scheduler(),
                uid: group.uid.clone(),
                resource_version: group.resource_version.clone(),
                spec,
            }))
        }
    }
}

fn unbuildable(live: Option<&Runtime>, error: &BuildError) -> Step {
    let waiting = match live {
        Some(runtime) => Waiting::Runtime(runtime.key.clone()),
        None => Waiting::Snapshot,
    };
    Step::wait(waiting, Reason::BuildFailed, error.to_string())
}

fn read_runtime(manifest: &TrainJob) -> Step {
    // An unknown kind has failed the job before it came here.
    let key = build::runtime_key(manifest).ok();
    Step::act(key.map(Action::ReadRuntime).into_iter().collect())
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

/// Brings a suspended JobSet to what the job and its runtime say now, and resumes it if asked to.
fn follow(observed: &Observed<'_>, manifest: &TrainJob, job_set: &JobSetFacts) -> Step {
    if can_wait(observed, job_set) {
        return Step::default();
    }
    let resume = (!observed.job.suspend).then(|| suspend(job_set, false));
    let digest = digest(manifest);
    if observed.readings.applied_spec_hash == Some(digest) {
        return Step::act(resume.into_iter().collect());
    }
    let (frozen, live) = match source(observed, manifest) {
        Source::Frozen(runtime) => (Some(runtime), None),
        Source::Live(runtime) => (None, Some(runtime)),
        Source::Unread => return Step::act(vec![Action::ReadSnapshot, Action::ReadJobSet]),
        Source::Evicted => return read_runtime(manifest),
        // What it was made from is lost, which is no reason to keep it from running.
        Source::Missing | Source::Unusable(_) => return Step::act(resume.into_iter().collect()),
    };
    // Somebody may have put another in its place, which the watch has yet to show.
    let is_it = |read: &&JobSet| read.metadata.uid.as_ref() == Some(&job_set.uid);
    let current = observed.readings.job_set.as_ref().filter(is_it);
    let (Some(runtime), Some(current)) = (frozen.as_deref().or(live), current) else {
        return Step::act(vec![Action::ReadJobSet]);
    };
    let snapshot = live.map(|runtime| snapshot::render(manifest, runtime)).transpose();
    match snapshot.and_then(|snapshot| Ok((snapshot, build::build(manifest, runtime)?))) {
        Ok((snapshot, mut objects)) => {
            let (name, uid) = (&observed.job.key.name, &observed.job.uid);
            mark::keep_mark(&mut objects.job_set, current, name, uid);
            let mut actions: Vec<_> =
                snapshot.map(|it| Action::CreateSnapshot(Box::new(it))).into_iter().collect();
            let difference = build::fixed_difference(current, &objects.job_set);
            let unmark = mark::is_remade(observed.accounting.mode, current, job_set.never_ran);
            if difference.is_some() && job_set.never_ran || unmark {
                // It is made anew when it is gone.
                actions.push(Action::DeleteJobSet {
                    uid: job_set.uid.clone(),
                    reason: DeletionReason::Rebuild {
                        resource_version: job_set.resource_version.clone(),
                    },
                });
                return Step::act(actions);
            }
            if let Some(group) = objects.pod_group {
                match pod_group(observed, group) {
                    Ok(action) => actions.extend(action),
                    Err(step) => return *step,
                }
            }
            let update = build::update_suspended(current, &objects.job_set);
            actions.extend(update.map(|update| Action::UpdateJobSet(Box::new(update))));
            let kept = difference.map(Event::ChangeNotApplied);
            actions.extend(kept.map(Action::RecordEvent));
            Step { actions, applied_spec_hash: Some(digest), ..Step::default() }
        }
        // The runtime as it is now is not what it was made from: that is lost here, too.
        Err(_) if live.is_some() => Step::act(resume.into_iter().collect()),
        Err(error) => Step::wait(Waiting::Snapshot, Reason::BuildFailed, error.to_string()),
    }
}

/// The suspension of a JobSet that runs on though its job is suspended.
pub(crate) fn stop(job: &JobFacts, own: Option<&JobSetFacts>) -> Option<Action> {
    own.filter(|own| settled::must_stop(job, own)).map(|own| suspend(own, true))
}

fn suspend(job_set: &JobSetFacts, suspend: bool) -> Action {
    Action::SuspendJobSet {
        uid: job_set.uid.clone(),
        resource_version: job_set.resource_version.clone(),
        suspend,
    }
}

/// A digest of everything in a job that its JobSet is made from, suspension aside.
///
/// It is kept in memory only, so that nothing depends on it being the same in another release.
fn digest(manifest: &TrainJob) -> u64 {
    let TrainJobSpec {
        runtime_ref,
        initializer,
        trainer,
        runtime_patches,
        managed_by,
        suspend: _,
        active_deadline_seconds: _,
        ttl_seconds_after_finished: _,
    } = &manifest.spec;
    let inputs = (runtime_ref, initializer, trainer, runtime_patches, managed_by);
    let mut hasher = DefaultHasher::new();
    // Inputs that cannot be written as JSON were never read from it; equal digests are then right.
    serde_json::to_string(&inputs).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
