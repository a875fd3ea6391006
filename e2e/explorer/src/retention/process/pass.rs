//! Passes over Jobs, and the requests that they and others send.

use std::time::Duration;

use trainjob_api::time::Timestamp;
use trainjob_retention::{
    cluster_state::{Deletion, Reply, Resource, Right, Step, Verb},
    key::Key,
};
use trainjob_retention_core::{plan::OwnerAnswer, uid::Uid};

use super::{
    Process,
    request::{Answer, Request, UnderWay},
};
use crate::retention::{
    defect::Defect,
    objects::job_key,
    server::{Fence, Server},
};

/// After so long, in milliseconds, a request counts as failed.
const TIMEOUT: i64 = 15_000;
/// How long it is until another try to ask for an owner, in milliseconds.
const ASK_AGAIN: i64 = 10_000;

impl Process {
    /// A pass over an object. The deletion that it leads to.
    pub fn pass(&mut self, key: &Key, server: &Server) -> Option<Deletion> {
        self.ready.remove(key);
        if self.passes.contains_key(key) {
            self.passes.insert(key.clone(), true);
            return None;
        }
        self.go_on(key, server)
    }

    fn go_on(&mut self, key: &Key, server: &Server) -> Option<Deletion> {
        if let Some(planned) = self.planned(key) {
            return Some(planned);
        }
        self.notice_time(server);
        let (now, monotonic) = (self.now(server), self.monotonic(server));
        match self.state.look(key, now, monotonic) {
            Step::Gone => self.arm(key, None, None, server),
            // No Job has a release that could be asked for, and no rule is about Pods.
            Step::Idle | Step::Line | Step::AskRelease(_) | Step::DeletePods(_) => {}
            Step::Wait(wait) => self.arm(key, wait.until, wait.longest, server),
            Step::AskOwner(owner) => {
                let uid = owner.name.strip_prefix('s').and_then(|uid| uid.parse().ok());
                self.passes.insert(key.clone(), false);
                self.send(
                    Request::Owner { key: key.clone(), owner: uid.unwrap_or_default() },
                    server,
                );
            }
            Step::Delete(deletion) => {
                if self.has(Defect::NotPlannedAgain) && !self.planned.iter().any(|it| it.0 == *key)
                {
                    self.planned.push((key.clone(), *deletion));
                    self.ready.insert(key.clone());
                    return None;
                }
                return Some(*deletion);
            }
        }
        None
    }

    /// A deletion that a wrong program has decided on a while ago.
    fn planned(&mut self, key: &Key) -> Option<Deletion> {
        let index = self.planned.iter().position(|(planned, _)| planned == key)?;
        Some(self.planned.remove(index).1)
    }

    /// Sends a deletion that a pass led to.
    pub fn delete(&mut self, key: &Key, deletion: &Deletion, server: &Server) {
        let Some(id) = job_key(&key.object) else { return };
        let is_named = !self.has(Defect::UidNotFenced);
        let is_versioned = !self.has(Defect::VersionNotFenced) && is_named;
        let fence = Fence {
            uid: is_named.then(|| deletion.uid.to_string()),
            version: is_versioned.then(|| deletion.resource_version.to_string()),
        };
        self.passes.insert(key.clone(), false);
        let uid = deletion.uid.clone();
        let view = Box::new(self.view.clone());
        let at = server.seconds();
        self.send(Request::Delete { key: key.clone(), id, fence, uid, view, at }, server);
    }

    pub(super) fn send(&mut self, request: Request, server: &Server) {
        let sent = server.monotonic();
        self.under_way.push(UnderWay { request, sent, answer: None, is_lost: false });
    }

    /// Asks about rights, as it does each second.
    pub fn ask_rights(&mut self, server: &Server) {
        let is_asking = |it: &UnderWay| matches!(it.request, Request::Right(_));
        if self.under_way.iter().any(is_asking) {
            return;
        }
        for right in self.state.rights_to_ask(self.monotonic(server)) {
            self.send(Request::Right(right), server);
        }
    }

    /// Gives leave to an object in a line.
    ///
    /// # Errors
    ///
    /// How long it is until there is leave for one; `None` if nobody waits, or the time is not known.
    pub fn give_leave(&mut self, server: &Server) -> Result<Key, Option<Duration>> {
        let (now, monotonic) = (self.now(server), self.monotonic(server));
        if self.has(Defect::RateIgnored) {
            // Leave is saved up between any two questions.
            self.leave_asked += 1;
            return self
                .state
                .give_leave(now, monotonic + self.leave_asked * Duration::from_mins(1));
        }
        self.state.give_leave(now, monotonic)
    }

    /// Takes in what a request came to, which is the one of this number.
    pub fn answer(&mut self, number: usize, server: &Server) {
        let Some(under_way) = self.under_way.get(number) else { return };
        let is_late = server.monotonic() - under_way.sent >= TIMEOUT;
        let answer = match &under_way.answer {
            Some(answer) if !under_way.is_lost => answer.clone(),
            _ if is_late => Answer::Failed,
            _ => return,
        };
        let UnderWay { request, .. } = self.under_way.remove(number);
        match request {
            Request::Delete { key, uid, .. } => self.deleted(&key, &uid, &answer, server),
            Request::Owner { key, owner } => self.asked((&key, owner), &answer, server),
            Request::Status { id, uid, record, .. } => {
                self.status_answered((id, uid), record, &answer, server);
            }
            Request::Right(right) => self.right_answered(&right, &answer, server),
        }
    }

    fn deleted(&mut self, key: &Key, uid: &Uid, answer: &Answer, server: &Server) {
        let monotonic = self.monotonic(server);
        let (reply, is_forbidden) = match answer {
            Answer::Deletion(reply) => (*reply, false),
            Answer::Forbidden => (Reply::Failed, true),
            _ => (Reply::Failed, false),
        };
        self.note_reply(uid, reply, server);
        if self.has(Defect::FailureForgotten) && reply != Reply::Accepted {
            return self.ended(key);
        }
        if self.has(Defect::NoBackoff) && reply != Reply::Accepted {
            self.ready.insert(key.clone());
            return self.ended(key);
        }
        let told = if self.has(Defect::AcceptedForgotten) { Reply::Failed } else { reply };
        let (wait, effects) = self.state.replied(key, uid, told, monotonic);
        self.apply(effects);
        self.retry(key, wait, server);
        if is_forbidden {
            let right = Right { resource: jobs(), verb: Verb::Delete };
            self.state.refused(key, vec![right], monotonic);
        }
        self.ended(key);
    }

    fn note_reply(&mut self, uid: &Uid, reply: Reply, server: &Server) {
        let Some(uid) = uid.to_string().strip_prefix('u').and_then(|uid| uid.parse().ok()) else {
            return;
        };
        let Some(job) = self.view.jobs.values().find(|job| job.uid == uid) else { return };
        if reply == Reply::Accepted {
            self.accepted.insert(uid);
        } else if job.end.is_some() {
            // What goes on meanwhile has nothing to rest from.
            self.failed.insert(uid, server.monotonic());
        }
    }

    fn asked(&mut self, (key, owner): (&Key, u64), answer: &Answer, server: &Server) {
        let monotonic = self.monotonic(server);
        match answer {
            Answer::Owner(answer) => {
                let answer =
                    if self.has(Defect::OwnerIgnored) { OwnerAnswer::Gone } else { *answer };
                let asked = Uid::from(format!("s{owner}").as_str());
                self.state.answered(key, &asked, answer, self.now(server), monotonic);
                match answer {
                    OwnerAnswer::Gone => self.owners.remove(&owner),
                    OwnerAnswer::Found(found) => {
                        self.owners.insert(owner, found.finished.map(|finished| finished.0))
                    }
                };
                self.note_due(server);
                // The pass goes on at once.
                self.ready.insert(key.clone());
            }
            _ => {
                self.retries.insert(key.clone(), server.monotonic() + ASK_AGAIN);
            }
        }
        self.ended(key);
    }

    fn right_answered(&mut self, right: &Right, answer: &Answer, server: &Server) {
        let monotonic = self.monotonic(server);
        let answer = if let Answer::Right(given) = answer { Some(*given) } else { None };
        if let (Some(given), Verb::Delete) = (answer, right.verb) {
            self.lacks_right = !given;
            // It may come when no policy needs the right any more.
            self.forget_right();
        }
        let answer = if self.has(Defect::RightIgnored) { answer.map(|_| true) } else { answer };
        let (_, effects) = self.state.right_answered(right, answer, monotonic);
        self.apply(effects);
    }

    /// A pass has ended; if its key was put again meanwhile, it waits now.
    fn ended(&mut self, key: &Key) {
        if self.passes.remove(key) == Some(true) {
            self.ready.insert(key.clone());
        }
    }

    fn arm(
        &mut self,
        key: &Key,
        until: Option<Timestamp>,
        longest: Option<Duration>,
        server: &Server,
    ) {
        self.look_at(key, until, server);
        self.retry(key, longest, server);
    }

    fn retry(&mut self, key: &Key, wait: Option<Duration>, server: &Server) {
        match wait.and_then(|wait| i64::try_from(wait.as_millis()).ok()) {
            // Not before, however long the rest of a millisecond is.
            Some(wait) => self.retries.insert(key.clone(), server.monotonic() + wait + 1),
            None => self.retries.remove(key),
        };
    }
}

/// What the program deletes here.
fn jobs() -> Resource {
    Resource { group: "batch".into(), name: "jobs".into() }
}
