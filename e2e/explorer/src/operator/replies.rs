//! What a reply shows goes into the cache at once.

use trainjob_core::{
    Action,
    observed::{Reading, RunningPods},
};

use super::{Operator, cache::Source};
use crate::server::requests::{Call, Reply, Request};

impl Operator {
    pub(super) fn take_in(&mut self, request: &Request, reply: &Reply) {
        let (key, uid) = (&request.job.facts.key, &request.job.facts.uid);
        match reply {
            Reply::Done => {}
            Reply::Job(Some(job)) => {
                self.saw(job);
                if matches!(request.call, Call::Act(Action::ReadTrainJob)) && job.facts.uid == *uid
                {
                    self.cache.read(key, uid, |readings| readings.in_doubt = false);
                }
                self.cache.put_job(job, Source::Reply { lists: request.lists.0 });
            }
            Reply::Job(None) => self.cache.forget_job(key, uid),
            Reply::JobSet(Some(job_set))
                if matches!(request.call, Call::Act(Action::ReadJobSet)) =>
            {
                let read = Some(job_set.object.clone());
                self.cache.read(key, uid, |readings| readings.job_set = read);
            }
            Reply::JobSet(Some(job_set)) => {
                self.cache.put_job_set(key, job_set, Source::Reply { lists: request.lists.1 });
            }
            Reply::JobSet(None) => {
                if let Call::Act(Action::DeleteJobSet { uid, .. }) = &request.call {
                    self.cache.forget_job_set(key, uid);
                }
            }
            Reply::Snapshot(snapshot) => {
                self.cache.read(key, uid, |readings| readings.snapshot.clone_from(snapshot));
            }
            Reply::Pods(count) => {
                let pods = match count {
                    0 => Reading::Absent,
                    count => Reading::Found(RunningPods(*count)),
                };
                self.cache.read(key, uid, |readings| readings.pods = pods);
            }
        }
    }
}

/// Whether a reply shows a JobSet that is not the job's own.
pub(super) fn is_foreign(request: &Request, reply: &Reply) -> bool {
    let Reply::JobSet(Some(job_set)) = reply else { return false };
    job_set.facts.train_job_uid.as_ref() != Some(&request.job.facts.uid)
}
