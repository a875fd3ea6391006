//! A finished object, and what was learned and done about it.

use std::time::Duration;

use trainjob_api::time::Timestamp;
use trainjob_core::facts::ObjectKey;
use trainjob_retention_core::{
    breaker::OWNER_ASKED_WITHIN,
    facts::Facts,
    keep_last::Candidate,
    maybe_timestamp::MaybeTimestamp,
    plan::{Act, Answers, FoundOwner, Notice, OwnerAnswer, Plan, Release},
    uid::Uid,
};

use super::{found::Found, rates::Rates};
use crate::key::{Key, scheduled_since};

/// How long an answer holds: about an owner that lets the object go (`docs/retention.md`, R24), and about a release (R13).
const ANSWER_HOLDS: Duration = Duration::from_mins(1);
/// How long it takes at most until an owner is asked for again that had not finished.
const LONGEST_WAIT: Duration = Duration::from_secs(OWNER_ASKED_WITHIN.unsigned_abs());
/// When to ask for an owner again of which there was no answer.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// The longest wait after deletions and questions that failed.
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);

/// A place in a group, and how many the group keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) candidate: Candidate,
    pub(super) count: u16,
}

/// What is known of the Pods of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ObjectPods {
    /// Nothing yet: the list of Pods will tell.
    #[default]
    Unknown,
    /// There may be some. So many were deleted already, and nobody was told of them.
    Some(u32),
    /// There are some that may not go before this second of a clock that nobody sets, for so many times in a row.
    Later(u32, u8),
    /// None is left that goes before the object.
    None,
}

/// A finished object.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) key: ObjectKey,
    pub(super) facts: Facts,
    /// In which list it was last seen.
    pub(super) list: u32,
    /// Its places in groups.
    pub(super) places: Box<[Place]>,
    /// When it is due, as of the last look; what its place in the queue follows from.
    pub(super) due: MaybeTimestamp,
    pub(super) progress: Progress,
    /// The policy whose breaker knows that it is due.
    pub(super) judged_by: Option<Box<Uid>>,
    /// What is known of its Pods.
    pub(super) pods: ObjectPods,
    /// Whether its wishes were changed since its users were told something.
    pub(super) wishes_edited: bool,
    /// Whether the watch has brought its end, or an answer that of its owner, and no breaker was told so far because the
    /// time is not known (R41).
    pub(super) end_is_news: bool,
    /// What policies found of it.
    pub(super) found: Found,
    /// What was done about it, which is nothing for most: they wait for their time.
    activity: Option<Box<Activity>>,
}

/// What was done about an object so far.
#[derive(Debug, Default)]
struct Activity {
    /// How often its deletion has failed in a row.
    failures: u8,
    /// Until when it is left alone after a deletion that failed.
    rests_until: Duration,
    /// The answer about its owner.
    asked: Option<Asked>,
    /// How often in a row there was no answer.
    unanswered: u8,
    /// The answer about its release, and when it was given.
    release: Option<(Release, Duration)>,
    /// What its users were told.
    told: Box<[Notice]>,
}

/// How far its deletion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing was done.
    None,
    /// It stands in the line of its policy, with this due instant.
    Waits(Timestamp),
    /// It has leave to be deleted.
    HasLeave,
    /// The API server has accepted its deletion. The watch will tell.
    Accepted,
}

#[derive(Debug)]
struct Asked {
    answer: OwnerAnswer,
    at: Duration,
    /// How often in a row the owner had not finished.
    unfinished: u8,
}

impl Asked {
    fn holds_until(&self) -> Duration {
        let doubled = ANSWER_HOLDS.saturating_mul(1 << self.unfinished.saturating_sub(1).min(10));
        self.at.saturating_add(doubled.min(LONGEST_WAIT))
    }
}

/// Until when an answer about a release holds that was given then.
const fn release_holds_until(at: Duration) -> Duration {
    at.saturating_add(ANSWER_HOLDS)
}

impl ObjectPods {
    /// How long it is until it is asked again whether Pods may go; `None`: they may be asked for now.
    pub(super) fn rests(self, now: Duration) -> Option<Duration> {
        match self {
            Self::Later(until, _) => {
                let until = Duration::from_secs(until.into());
                (until > now).then(|| until.saturating_sub(now))
            }
            Self::Unknown | Self::Some(_) | Self::None => None,
        }
    }

    /// Some may not go before so long from `now` on, for so many times in a row.
    pub(super) fn later(wait: Duration, times: u8, now: Duration) -> Self {
        let until = now.saturating_add(wait).as_millis().div_ceil(1_000);
        Self::Later(until.try_into().unwrap_or(u32::MAX), times)
    }
}

impl Object {
    /// One that was not known before, with this known of its Pods.
    pub(super) fn new(key: ObjectKey, facts: Facts, list: u32, pods: ObjectPods) -> Self {
        Self {
            key,
            facts,
            list,
            places: Box::default(),
            due: MaybeTimestamp::NONE,
            progress: Progress::None,
            judged_by: None,
            pods,
            wishes_edited: false,
            end_is_news: false,
            found: Found::default(),
            activity: None,
        }
    }

    fn asked(&self) -> Option<&Asked> {
        self.activity.as_ref()?.asked.as_ref()
    }

    fn release(&self) -> Option<(Release, Duration)> {
        self.activity.as_ref()?.release
    }

    fn activity(&mut self) -> &mut Activity {
        self.activity.get_or_insert_default()
    }

    /// What its users were told.
    pub(super) fn told(&self) -> &[Notice] {
        self.activity.as_ref().map_or(&[], |activity| &activity.told)
    }

    /// Its users were told all of this.
    pub(super) fn tell(&mut self, all: Box<[Notice]>) {
        self.wishes_edited = false;
        if *all != *self.told() {
            self.activity().told = all;
        }
    }

    /// The same object in another version. One that has ended another time may have Pods again, of which this is known.
    pub(super) fn changed(&mut self, facts: Facts, list: u32, pods: ObjectPods) {
        if facts.uid != self.facts.uid {
            self.activity = None;
        } else if facts.controller() != self.facts.controller()
            && let Some(activity) = &mut self.activity
        {
            activity.asked = None;
        }
        if facts.uid != self.facts.uid || facts.finishes != self.facts.finishes {
            self.pods = pods;
        }
        self.wishes_edited |= facts.wishes != self.facts.wishes;
        (self.facts, self.list, self.progress) = (facts, list, Progress::None);
        self.found = Found::default();
    }

    /// What is known beside its facts at `now`, a time of a clock that nobody sets.
    pub(super) fn answers(&self, now: Duration) -> Answers {
        let valid = self.asked().filter(|asked| now < asked.holds_until());
        let release = self.release().filter(|(_, at)| now < release_holds_until(*at));
        Answers {
            owner: valid.map(|asked| asked.answer),
            release: release.map(|(release, _)| release),
            pods_deleted: self.pods == ObjectPods::None,
        }
    }

    /// What a policy in Audit goes by: an answer that lets the object go holds for good, because nothing is deleted by it.
    pub(super) fn audited_answers(&self, now: Duration) -> Answers {
        let known = self.known_answers();
        let asked_again = self.asked().is_some_and(|asked| asked.unfinished > 0);
        let valid = self.answers(now);
        Answers {
            owner: if asked_again { valid.owner } else { known.owner },
            release: known.release.filter(|release| *release == Release::Done).or(valid.release),
            pods_deleted: known.pods_deleted,
        }
    }

    /// The last answers, however old: to count and to judge by, not to delete by.
    pub(super) fn known_answers(&self) -> Answers {
        Answers {
            owner: self.asked().map(|asked| asked.answer),
            release: self.release().map(|(release, _)| release),
            pods_deleted: self.pods == ObjectPods::None,
        }
    }

    /// How long the answers about its owner and its release still hold, as far as they keep the object.
    pub(super) fn asks_again_in(&self, now: Duration) -> Option<Duration> {
        let owner = self.asked().filter(|asked| asked.unfinished > 0);
        let release = self.release().filter(|(answer, _)| *answer == Release::Pending);
        let holds = [owner.map(Asked::holds_until), release.map(|(_, at)| release_holds_until(at))];
        let until = holds.into_iter().flatten().filter(|until| *until > now).min();
        until.map(|until| until.saturating_sub(now))
    }

    /// Whether an answer about its owner or its release keeps it, however old.
    pub(super) fn is_kept_by_answer(&self) -> bool {
        let is_pending = |(release, _): &(Release, _)| *release == Release::Pending;
        self.asked().is_some_and(|asked| asked.unfinished > 0)
            || self.release().as_ref().is_some_and(is_pending)
    }

    /// Takes in whether it is released.
    pub(super) fn release_answered(&mut self, answer: Release, now: Duration) {
        self.activity().release = Some((answer, now));
        self.found = Found::default();
    }

    /// Takes in how its owner is. Returns whether that has ended since it was asked for last.
    pub(super) fn answered(&mut self, answer: OwnerAnswer, now: Duration) -> bool {
        let is_unfinished = matches!(answer, OwnerAnswer::Found(FoundOwner { finished: None, .. }));
        let before = self.asked().map_or(0, |asked| asked.unfinished);
        let unfinished = if is_unfinished { before.saturating_add(1) } else { 0 };
        let activity = self.activity();
        (activity.asked, activity.unanswered) = (Some(Asked { answer, at: now, unfinished }), 0);
        self.found = Found::default();
        before > 0 && !is_unfinished
    }

    /// There was no answer about its owner. How long it is until it is asked for again: 10 s, doubling. At ten
    /// thousand objects with owners of a kind that is not served, a wait that stays would be a thousand requests a second.
    pub(super) fn ask_failed(&mut self) -> Duration {
        let activity = self.activity();
        let doubled = ASK_AGAIN.saturating_mul(1 << activity.unanswered.min(5));
        activity.unanswered = activity.unanswered.saturating_add(1);
        doubled.min(LONGEST_BACKOFF)
    }

    /// How long it is still left alone after a deletion that failed, or, if its Pods are what is to go, because they may not
    /// go yet; `None`: it is not.
    pub(super) fn rests(&self, now: Duration, plan: &Plan<'_>) -> Option<Duration> {
        let until = self.activity.as_ref().map_or(Duration::ZERO, |activity| activity.rests_until);
        let rest = Some(until.saturating_sub(now)).filter(|rest| !rest.is_zero());
        rest.max(self.pods.rests(now).filter(|_| plan.act == Act::DeletePods))
    }

    /// It does not stand in the line of this policy any more.
    pub(super) fn leave_line(&mut self, rates: &mut Rates, policy: &Uid, key: &Key) {
        if let Progress::Waits(since) = self.progress {
            self.progress = Progress::None;
            rates.leave(policy, key, since);
        }
    }

    /// Its deletion was accepted.
    pub(super) fn accepted(&mut self) {
        self.progress = Progress::Accepted;
        self.has_not_failed();
    }

    /// From when on it counts in the line of its policy, at `now`. One whose last deletion has failed goes behind the whole
    /// backlog: where nothing lets it go, others of its flow would never be tried.
    pub(super) fn in_line_since(&self, due: Timestamp, now: Timestamp) -> Timestamp {
        let has_failed = self.activity.as_ref().is_some_and(|activity| activity.failures > 0);
        if has_failed { due.max(scheduled_since(now).plus(-1)) } else { due }
    }

    /// Its last deletion, or that of its Pods, has not failed.
    pub(super) fn has_not_failed(&mut self) {
        if let Some(activity) = &mut self.activity {
            activity.failures = 0;
        }
    }

    /// Its deletion has failed. How long it is left alone: so long, or 1 s, doubling.
    pub(super) fn failed(&mut self, wait: Option<Duration>, now: Duration) -> Duration {
        self.progress = Progress::None;
        let activity = self.activity();
        let wait = wait.unwrap_or_else(|| {
            let doubled = Duration::from_secs(1).saturating_mul(1 << activity.failures.min(9));
            activity.failures = activity.failures.saturating_add(1);
            doubled.min(LONGEST_BACKOFF)
        });
        activity.rests_until = now.saturating_add(wait);
        wait
    }
}
