//! What a pass learns from the replies to its actions.

use std::time::Duration;

use super::{call::Reply, memory::JobMemory};
use crate::{
    action::{Action, StatusWrite},
    event::Event,
    lifecycle::hold::News,
};

/// What the reply to an action shows is remembered.
pub(super) fn learn(
    action: &Action,
    uid: &str,
    reply: Reply,
    memory: &mut JobMemory,
    now: Duration,
) {
    let readings = &mut memory.readings;
    match reply {
        Reply::TrainJob(there) => readings.needs_existence_check &= there != uid,
        Reply::ConfigMap(snapshot) => readings.snapshot = *snapshot,
        Reply::JobSet(job_set) => readings.job_set = Some(job_set),
        Reply::Pods(check) => memory.pods_checked(check),
        Reply::Done | Reply::Later | Reply::JobSetOfName(_) => {}
    }
    match action {
        Action::WriteStatus(StatusWrite { jobs_status: Some(_), .. }) => {
            memory.counts_written = Some(now);
        }
        Action::WriteWaiting(_) => memory.text_written = Some(now),
        Action::RecordEvent(Event::Held(_)) => memory.readings.hold = News::Recorded,
        Action::RecordEvent(Event::RecreateLoop(_)) => memory.readings.loop_closed_by = None,
        _ => {}
    }
}
