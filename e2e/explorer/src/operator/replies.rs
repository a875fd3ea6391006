//! What a reply shows goes into the cache at once, and to the pass that waits for it.

use std::time::Duration;

use trainjob_core::{
    action::Action,
    observed::ReadJobSet,
    pass::{self, Class, Failure},
};
use trainjob_engine::versions::Source;

use super::process::Operator;
use crate::server::requests::{Call, Refusal, Reply, Request};

impl Operator {
    /// Takes in the watched objects that a reply shows.
    pub(super) fn take_in(&mut self, request: &Request, reply: &Reply) {
        let (key, uid) = (&request.job.facts.key, &request.job.facts.uid);
        match reply {
            Reply::Job(Some(job)) => {
                self.saw(job);
                self.cache.put_job(job, Source::Reply { lists: request.lists.0 });
            }
            Reply::Job(None) => self.cache.forget_job(key, uid),
            Reply::JobSet(Some(job_set)) if !is_document(&request.call) => {
                self.cache.put_job_set(key, job_set, Source::Reply { lists: request.lists.1 });
            }
            Reply::JobSet(None) => {
                if let Call::Act(Action::DeleteJobSet { uid, .. }) = &request.call {
                    self.cache.forget_job_set(key, uid);
                }
            }
            Reply::Runtime(runtime) => self.cache.runtime_read(runtime),
            Reply::JobSet(Some(_)) | Reply::Done | Reply::Snapshot(_) | Reply::Pods(_) => {}
        }
    }
}

/// Whether the complete JobSet is asked for, which is as old as it is.
const fn is_document(call: &Call) -> bool {
    matches!(call, Call::Act(Action::ReadJobSet))
}

/// What a reply shows to the pass.
pub(super) fn shown(call: &Call, reply: Reply) -> pass::Reply {
    match reply {
        Reply::Job(Some(job)) if matches!(call, Call::Act(Action::ReadTrainJob)) => {
            pass::Reply::TrainJob(job.facts.uid.clone())
        }
        Reply::JobSet(Some(job_set)) if is_document(call) => {
            ReadJobSet::of(&job_set.object).map_or(pass::Reply::Done, pass::Reply::JobSet)
        }
        Reply::JobSet(job_set) if matches!(call, Call::LookAtJobSet) => {
            pass::Reply::JobSetOfName(job_set.map(|job_set| Box::new(job_set.facts.clone())))
        }
        Reply::Snapshot(found) => pass::Reply::ConfigMap(found),
        Reply::Pods(check) => pass::Reply::Pods(check),
        Reply::Job(_) | Reply::JobSet(_) | Reply::Runtime(_) | Reply::Done => pass::Reply::Done,
    }
}

/// What a refusal means to the pass.
pub(super) fn failure(refusal: Refusal) -> Failure {
    let class = match refusal {
        Refusal::Conflict => Class::Conflict,
        Refusal::Exists => Class::Exists,
        Refusal::NotFound => Class::Gone,
        Refusal::Throttled(wait) => {
            Class::Throttled(Duration::from_millis(u64::try_from(wait).unwrap_or(0)))
        }
        Refusal::Denied => Class::Denied,
        Refusal::Unknown => Class::Transient,
    };
    Failure { class, reached: refusal != Refusal::Unknown }
}
