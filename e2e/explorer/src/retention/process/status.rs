//! What is stored in the status of policies, and when: as the program's `status` does it.

use trainjob_core::Now;
use trainjob_retention::cluster_state::{KindState, Stored, Survey};
use trainjob_retention_core::{breaker::Record, policy::Mode, uid::Uid};

use super::{
    Process, TARGET,
    request::{Answer, Request, UnderWay},
    written::policy_uid,
};
use crate::retention::{defect::Defect, rules::PolicyId, server::Server};

/// How often everything is counted, in milliseconds.
const COUNTED_EVERY: i64 = 30_000;

impl Process {
    /// Counts so many objects more, if it is time for that. What everything looked at is told when the count ends.
    pub fn survey(&mut self, count: usize, server: &Server) {
        let monotonic = server.monotonic();
        let is_time = self.counted.is_none_or(|counted| monotonic - counted >= COUNTED_EVERY);
        let (mut survey, began) = match self.survey.take() {
            Some(begun) => begun,
            None if is_time && self.is_known() => (Survey::default(), self.now(server)),
            None => return,
        };
        let has_more = self.state.survey(TARGET, &mut survey, count, began);
        for (key, at) in survey.take_soon() {
            self.look_at(&key, Some(at), server);
        }
        if has_more {
            self.survey = Some((survey, began));
            return;
        }
        self.counted = Some(monotonic);
        if !self.has(Defect::LooksForgotten) {
            let monotonic = self.monotonic(server);
            self.state.surveyed(TARGET, began, monotonic);
        }
    }

    /// Whether all Jobs are known and evaluated.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let mut stored = self.state.policies().map(|(_, stored)| stored);
        stored.any(|stored| {
            let (target, state) = self.state.kind_of(stored);
            target.is_some() && matches!(state, KindState::Known { .. })
        })
    }

    /// Counts everything once more, for whoever compares.
    pub fn counts(&mut self, now: Now) -> Survey {
        let mut survey = Survey::default();
        while self.state.survey(TARGET, &mut survey, 100, now) {}
        survey
    }

    /// Stores what has to be stored.
    pub fn write_statuses(&mut self, server: &Server) {
        let is_writing = |it: &UnderWay| matches!(it.request, Request::Status { .. });
        if self.survey.is_some() || self.under_way.iter().any(is_writing) {
            // One after the other.
            return;
        }
        let monotonic = server.monotonic();
        let mut requests = Vec::new();
        for (id, written) in &self.written {
            let uid = policy_uid(written.uid);
            // Of a policy that is not understood, or is not the one that was seen last, nothing is stored.
            let record = self.state.record(&uid);
            let known = self.view.policies.get(id).and_then(|seen| self.state.stored(&seen.key()));
            let Some(Ok(known)) = known.filter(|it| is_of(it, &uid)) else { continue };
            let is_audited = known.policy.mode == Mode::Audit;
            let is_due = written.is_urgent(record.as_ref(), is_audited)
                || record.is_some() && written.is_old(monotonic);
            if is_due {
                let version = Some(written.version).filter(|_| !self.has(Defect::StoreNotFenced));
                let record = if self.has(Defect::TripForgotten) {
                    record.map(|record| Record { trip: None, ..record })
                } else {
                    record
                };
                let since = record.as_ref().and_then(|it| self.judged(written.uid, &it.digest));
                let (id, uid, since) = (*id, written.uid, since.cloned());
                requests.push(Request::Status { id, uid, version, record, since });
            }
        }
        for request in requests {
            if let (true, Request::Status { uid, record: Some(record), .. }) =
                (self.has(Defect::StoreNotAwaited), &request)
            {
                self.state.stored_record(&policy_uid(*uid), record.clone());
            }
            self.send(request, server);
        }
    }

    pub(super) fn status_answered(
        &mut self,
        (id, uid): (PolicyId, u64),
        record: Option<Record>,
        answer: &Answer,
        server: &Server,
    ) {
        let monotonic = server.monotonic();
        let (Answer::Stored(version), Some(written)) = (answer, self.written.get_mut(&id)) else {
            return;
        };
        if written.uid != uid {
            return;
        }
        // What the watch shows is taken in after that, so the newer one stays.
        if *version > written.version {
            (written.record, written.version) = (record.clone(), *version);
        }
        if let Some(record) = record {
            written.stored = Some(monotonic);
            self.has_stored.insert(uid);
            self.state.stored_record(&policy_uid(uid), record);
        }
    }
}

fn is_of(stored: &Stored, uid: &Uid) -> bool {
    stored.as_ref().is_ok_and(|stored| stored.policy.uid == *uid)
}
