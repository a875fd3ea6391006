//! A suspended JobSet, which follows its job in the few fields JobSet lets change.

use trainjob_api::{TrainJob, conditions::Reason};

use super::{
    group::pod_group,
    origin::{Source, digest, read_runtime, source},
    settled::can_wait,
    step::Step,
    suspension::suspend,
};
use crate::{
    action::{Action, DeletionReason, Waiting},
    build::{self, BuildError, JobSetUpdate, snapshot},
    event::Event,
    facts::JobSetFacts,
    mark,
    observed::Observed,
    text::Text,
};

/// Brings a suspended JobSet to what the job and its runtime say now, and resumes it if asked to.
pub(super) fn follow(observed: &Observed<'_>, manifest: &TrainJob, job_set: &JobSetFacts) -> Step {
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
    let read = observed.readings.job_set.as_ref().filter(|read| read.uid == job_set.uid);
    let (Some(runtime), Some(read)) = (frozen.as_deref().or(live), read) else {
        return Step::act(vec![Action::ReadJobSet]);
    };
    let snapshot = live.map(|runtime| snapshot::render(manifest, runtime)).transpose();
    let built = snapshot.and_then(|snapshot| Ok((snapshot, build::build(manifest, runtime)?)));
    let is_live = live.is_some();
    // Each may be large, and is needed no longer.
    drop(frozen);
    match built {
        Ok((snapshot, mut objects)) => {
            let Ok(current) = &read.text.read() else {
                return Step::act(vec![Action::ReadJobSet]);
            };
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
            if let Some(update) = build::update_suspended(current, &objects.job_set) {
                match change(job_set, &update) {
                    Ok(action) => actions.push(action),
                    Err(error) => return unbuildable(&error),
                }
            }
            let kept = difference.map(Event::ChangeNotApplied);
            actions.extend(kept.map(Action::RecordEvent));
            Step { actions, applied_spec_hash: Some(digest), ..Step::default() }
        }
        // The runtime as it is now is not what it was made from: that is lost here, too.
        Err(_) if is_live => Step::act(resume.into_iter().collect()),
        Err(error) => unbuildable(&error),
    }
}

fn unbuildable(error: &BuildError) -> Step {
    Step::wait(Waiting::Snapshot, Reason::BuildFailed, error.to_string())
}

fn change(job_set: &JobSetFacts, update: &JobSetUpdate) -> Result<Action, BuildError> {
    let patch = update.patch().and_then(|patch| Text::of(&patch));
    Ok(Action::UpdateJobSet {
        uid: job_set.uid.clone(),
        resource_version: update.current.metadata.resource_version.clone().unwrap_or_default(),
        patch: patch.map_err(|error| BuildError::unwritable(&error))?,
    })
}
