//! What one process knows of one record, and what it does about it: the shell around [`plan`].
//!
//! A [`Keeper`] takes news of Pods and answers to its requests, and says which requests come next. It does no I/O and reads
//! no clock: the program drives it over the network; the tests of the algorithm drive the same one with lost replies,
//! crashes and a second process that believes that it leads, too.
//!
//! Of requests about the record one is under way at a time. What follows from a failure is in [`answer`](crate::answer).

mod call;
mod let_go;
mod pods;
mod releases;
mod tries;

use std::time::Duration;

use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecordStatus;

pub use self::call::{Answer, Call, Calls, Fence, Store};
use self::{
    let_go::LetGo,
    pods::{Forget, Pods},
    tries::Tries,
};
use crate::{
    answer::{Failure, ForRecord, for_record},
    clock::Now,
    holding::Valve,
    job::Job,
    plan::{Action, Context, Evidence, JobRead, Record, plan, unwatched},
    pod::Pod,
    settings::Settings,
    tracked::Tracked,
};

/// What one process knows of one record.
#[derive(Debug, Default)]
pub struct Keeper {
    pods: Pods,
    record: Record,
    /// Which version of the record that is; `None`: none is known.
    fence: Option<Fence>,
    /// What has to be asked for before anything else is done about the record.
    due: Due,
    /// Whether the record has the long name.
    long_name: bool,
    /// Whether a request about the record is under way.
    is_busy: bool,
    job_read: JobRead,
    tries: Tries,
    /// UID of the record that was there, as long as none was read after it seemed to go, and whether one had gone before.
    vanished: Option<(String, bool)>,
    let_go: LetGo,
}

/// What has to be asked for first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Due {
    /// The record: it is not known whether there is one.
    #[default]
    Read,
    /// Its Pods.
    List,
    /// Its Pods, once more: the list that is under way may be older than what is to be compared with it.
    ListAgain,
    /// Nothing.
    Nothing,
}

/// News.
impl Keeper {
    /// The watch shows a version of a Pod.
    pub fn saw(&mut self, version: u64, pod: Pod, now: Now) {
        self.may_show_let_go(&pod);
        self.pods.watched(version, pod, now);
    }

    /// The watch shows that a Pod went.
    pub fn went(&mut self, uid: &str, now: Now) {
        self.pods.went(uid, now);
    }

    /// A Pod has left the watch and may still be there, because somebody took our labels (AG10). Its release tells.
    pub fn lost_labels(&mut self, uid: &str, now: Now) {
        self.pods.lost_labels(uid, now);
    }

    /// A Pod left while another process acts, which counts it.
    pub fn forget(&mut self, uid: &str) {
        self.pods.forget(uid);
    }

    /// The watch began anew and may have missed deletions: what is known is compared with a list. One that is under way
    /// may show Pods that went before the watch began, of which nothing will come.
    pub const fn recheck(&mut self) {
        self.due = match self.due {
            Due::Read => Due::Read,
            _ if self.pods.is_listing() => Due::ListAgain,
            Due::Nothing | Due::List | Due::ListAgain => Due::List,
        };
    }

    /// The record went, as its watch shows.
    pub fn record_went(&mut self, uid: &str) {
        if self.fence.as_ref().is_some_and(|fence| fence.uid == uid) {
            self.lost_record();
        }
    }
}

/// What is known.
impl Keeper {
    /// Whether there is nothing left to do about this record, as long as no Pod of it comes.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let is_ending = self.record.valve == Valve::Ending;
        let has_record = self.record.status.is_some();
        let needs_record = self.record.recreated || !self.let_go.is_empty();
        let told = match self.due {
            Due::Read => false,
            Due::List | Due::ListAgain | Due::Nothing if has_record => {
                self.record.is_final() && self.let_go.is_empty()
            }
            Due::List | Due::ListAgain | Due::Nothing => is_ending || !needs_record,
        };
        told && self.pods.is_empty() && !self.is_busy
    }

    /// Whether no Pod of it is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// The Pods.
    pub fn pods(&self) -> impl Iterator<Item = &Tracked> {
        self.pods.iter()
    }

    /// The Pod of this UID, if it is known.
    #[must_use]
    pub fn pod(&self, uid: &str) -> Option<&Tracked> {
        self.pods.get(uid)
    }

    /// The newest known version of the record's status.
    #[must_use]
    pub fn status(&self) -> Option<&TrainJobRecordStatus> {
        self.record.status.as_deref()
    }

    /// Which version that is.
    #[must_use]
    pub const fn fence(&self) -> Option<&Fence> {
        self.fence.as_ref()
    }

    /// Whether the record cannot be written (AH2).
    #[must_use]
    pub const fn is_unwritable(&self) -> bool {
        self.record.valve.is_running()
    }

    /// Whether no record can be made any more, because the namespace terminates.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.record.valve == Valve::Ending
    }
}

/// What to do.
impl Keeper {
    /// What is to be sent now. Each call has to be [answered](Self::answered), however it ends.
    pub fn next(&mut self, job: &Job, settings: &Settings, now: Now) -> Calls {
        self.settle();
        self.pods.time_passes(now);
        self.record.let_go = self.let_go.count();
        let context = Context { job, job_read: self.job_read, settings, now };
        let plan = plan(&self.record, self.pods.iter(), &context);
        let is_idle = !plan.writes() && !self.let_go.is_under_way();
        if is_idle && matches!(self.record.evidence, Evidence::Proven { .. }) {
            self.record.valve = self.record.valve.idle();
        }
        let mut calls = Calls { now: Vec::new(), after: plan.after };
        let mut about_record = None;
        for action in plan.actions {
            match action {
                Action::Release(uid) => calls.now.extend(self.release(uid, true)),
                Action::LetGo(uid) => calls.now.extend(self.release(uid, false)),
                action => about_record = about_record.or(Some(action)),
            }
        }
        if self.is_busy {
            return calls;
        }
        let wait = self.tries.wait(now.clock);
        let Some(call) = self.about_record(about_record, job) else { return calls };
        if !wait.is_zero() {
            calls.after = [calls.after, Some(wait)].into_iter().flatten().min();
            return calls;
        }
        self.is_busy = true;
        if let Call::List { .. } = call {
            self.pods.list_begins();
            if self.due == Due::ListAgain {
                self.due = Due::List;
            }
        }
        calls.now.push(call);
        calls
    }

    /// The request about the record that is due.
    fn about_record(&self, planned: Option<Action>, job: &Job) -> Option<Call> {
        let long_name = self.long_name;
        let is_over = job.is_over();
        match self.due {
            Due::Read => return Some(Call::Get { long_name }),
            Due::List | Due::ListAgain => return Some(Call::List { is_over }),
            Due::Nothing => {}
        }
        Some(match planned? {
            Action::Create => Call::Create { long_name },
            Action::Prove => Call::Get { long_name },
            Action::ListPods => Call::List { is_over },
            Action::ReadJob => Call::ReadJob,
            Action::Store(status) => {
                let (fence, tells) = (self.fence.clone()?, self.let_go.len());
                Call::Store(Box::new(Store { fence, status: *status, tells }))
            }
            Action::Release(_) | Action::LetGo(_) => return None,
        })
    }

    /// Takes the answer to a call.
    pub fn answered(&mut self, call: &Call, answer: Answer, now: Now) {
        if let Call::Release { uid, is_counted, .. } = call {
            return self.release_answered(uid, *is_counted, &answer, now);
        }
        self.is_busy = false;
        match (call, answer) {
            (Call::Create { .. } | Call::Get { .. }, Answer::Record(fence, status)) => {
                self.read(fence, status);
            }
            (Call::List { is_over }, Answer::Pods { version, pods }) => {
                self.listed(version, pods, *is_over, now);
            }
            (Call::ReadJob, Answer::Job) => self.job_read = JobRead::Read,
            (Call::Store(store), Answer::Stored { version }) => self.stored(store, version, now),
            (_, Answer::Failed { failure, retry_after }) => {
                return self.failed(call, failure, retry_after, now);
            }
            // The answer to another call than this.
            (
                Call::Create { .. } | Call::Get { .. } | Call::List { .. } | Call::ReadJob,
                Answer::Record(..) | Answer::Pods { .. } | Answer::Job | Answer::Stored { .. },
            )
            | (Call::Store(_), Answer::Record(..) | Answer::Pods { .. } | Answer::Job)
            | (_, Answer::Released { .. }) => {
                return self.failed(call, Failure::Unanswered, Duration::ZERO, now);
            }
            (Call::Release { .. }, _) => {}
        }
        self.tries.succeeded(call);
    }

    /// The record was read, or created. Somebody else may have written it, so its Pods are listed now (AG5).
    fn read(&mut self, fence: Fence, status: Box<TrainJobRecordStatus>) {
        self.settle();
        if self.let_go.read(&status) {
            self.record.valve = Valve::Shut;
        }
        if let Some((uid, recreated)) = self.vanished.take()
            && uid == fence.uid
        {
            // It had not gone.
            self.record.recreated = recreated;
        }
        self.fence = Some(fence);
        self.record.status = Some(status);
        (self.record.evidence, self.record.has_released) = (Evidence::Unproven, false);
        self.due = Due::List;
        self.settle();
    }

    fn listed(&mut self, version: u64, pods: Vec<(u64, Pod)>, is_over: bool, now: Now) {
        self.due = if self.due == Due::ListAgain { Due::List } else { Due::Nothing };
        self.forget_job_read();
        for (_, pod) in &pods {
            self.may_show_let_go(pod);
        }
        let status = self.record.status.as_deref();
        // It was created, so nobody has counted anything.
        let is_new = status.is_some_and(|status| status.as_of.is_none());
        let unwatched = match self.record.evidence {
            Evidence::Unproven => {
                let listed = || pods.iter().map(|(_, pod)| pod);
                let gone = status.map(|status| unwatched(status, listed())).unwrap_or_default();
                // Those that were let go are told of as such.
                let unseen = self.let_go.unseen(gone, listed());
                let is_told = self.let_go.is_under_way() || !self.let_go.is_empty();
                self.record.has_released = listed().any(|pod| self.has_released_before(pod));
                let forget = if is_new { Forget::Nothing } else { Forget::All };
                self.pods.listed(version, pods, forget, now);
                // A record is made because of a Pod (AG11).
                let is_told = is_told || self.record.is_recreated();
                unseen.max(u64::from(is_new && self.pods.is_empty() && !is_told))
            }
            Evidence::Proven { unwatched, .. } => {
                self.pods.listed(version, pods, Forget::Nothing, now);
                unwatched
            }
        };
        self.record.evidence = Evidence::Proven { unwatched, listed_after_end: is_over };
    }

    fn stored(&mut self, store: &Store, version: String, now: Now) {
        self.settle();
        self.forget_job_read();
        self.let_go.told(store.tells);
        self.let_go.counted(&store.status.settling);
        self.fence = Some(Fence { version, ..store.fence.clone() });
        self.record.stored(store.status.clone(), now.clock);
        self.settle();
    }

    fn failed(&mut self, call: &Call, failure: Failure, retry_after: Duration, now: Now) {
        let consequence = for_record(failure);
        if let (Call::Get { .. }, ForRecord::Create) = (call, consequence) {
            // That there is none is what was asked for.
            self.tries.absent(call, now.clock);
            return self.lost_record();
        }
        self.tries.failed(call, failure, now.clock, retry_after);
        if let Call::Store(_) = call {
            self.forget_job_read();
        }
        let (valve, clock) = (self.record.valve, now.clock);
        let is_silent = failure == Failure::Silent;
        if let Call::ReadJob = call {
            if is_silent {
                self.record.valve = valve.silent(clock);
            }
            if self.tries.job_unread() {
                self.job_read = JobRead::Read;
            }
            return;
        }
        self.record.valve = if is_silent { valve.silent(clock) } else { valve.refused(clock) };
        match (call, consequence) {
            (Call::List { .. }, _) => self.pods.list_failed(),
            // Whatever it is that is not there.
            (Call::Create { .. }, ForRecord::Create)
            | (_, ForRecord::Refused | ForRecord::Again) => {}
            (_, ForRecord::Create) => self.lost_record(),
            (_, ForRecord::CreateWithLongName) => (self.long_name, self.due) = (true, Due::Read),
            (_, ForRecord::Prove) => {
                self.let_go.unanswered(call);
                self.record.evidence = Evidence::Unproven;
                if self.record.status.is_none() {
                    self.due = Due::Read;
                }
            }
            (_, ForRecord::LetAllGo) => self.record.valve = valve.ending(),
            (_, ForRecord::ForgetAll) => {
                self.record.valve = valve.ending();
                self.pods.forget_all();
            }
        }
    }

    /// What is to be stored next is newer than what was read of the TrainJob.
    const fn forget_job_read(&mut self) {
        self.job_read = JobRead::Watched;
    }

    /// There is no record. If there was one, somebody deleted it.
    fn lost_record(&mut self) {
        self.settle();
        if self.record.status.is_some() {
            let uid = self.fence.take().map(|fence| fence.uid);
            self.vanished = uid.map(|uid| (uid, self.record.recreated));
            self.record.recreated |= !self.record.is_final();
        }
        self.record.status = None;
        self.record.evidence = Evidence::Unproven;
        (self.fence, self.due) = (None, Due::Nothing);
    }

    fn settle(&mut self) {
        if let Some(status) = &self.record.status {
            self.pods.settle(&status.settling);
        }
    }
}

#[cfg(test)]
mod tests;
