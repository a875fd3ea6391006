//! The PodGroup of a job.

use trainjob_api::conditions::Reason;

use super::step::{Obstacle, Step};
use crate::{
    action::{Action, Waiting},
    build::{self, PodGroup},
    observed::{Observed, Presence},
};

/// What to do for the PodGroup, if anything; or why the job has to wait.
pub(super) fn pod_group(
    observed: &Observed<'_>,
    wanted: PodGroup,
) -> Result<Option<Action>, Box<Step>> {
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
