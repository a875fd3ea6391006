//! What the program knows of a Pod beside the Pod itself, and how news change it.
//!
//! News are newer versions from the watch or a list, and replies to own requests. Older versions have to be left out by
//! who keeps the versions.

use std::{mem, time::Duration};

use crate::{
    backoff::Backoff,
    clock::Now,
    end::{Ended, ended},
    pod::Pod,
    verdict::Order,
};

/// A Pod of a record, until it is counted, released and seen to be so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracked {
    /// The newest version that is known. Of a Pod that is [`Presence::Stripped`] it says that there is a finalizer: there
    /// was one.
    pub pod: Pod,
    /// Where it is.
    pub presence: Presence,
    /// In which order this process saw it end and be deleted.
    pub order: Order,
    /// Since when this process knows that it has ended, or has gone, by the monotonic clock.
    pub ended_seen: Option<Duration>,
    /// When its release is tried again, after it failed (AG8, AH5).
    pub backoff: Backoff,
}

/// Where a Pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is there.
    Here,
    /// It is there, and its release is under way.
    Releasing,
    /// It is there, and somebody else has removed its finalizer (AG10).
    Stripped,
    /// It went without this process (AG10).
    Gone,
    /// Nothing has to be done about it: this process has released it, or was told that there is nothing to release (404,
    /// or 409 on the UID), or it went and is counted. It stays known until the watch shows that, since an older version
    /// may still come (AG6).
    Released,
}

impl Tracked {
    /// A Pod that is seen for the first time.
    #[must_use]
    pub fn new(pod: Pod, now: Now) -> Self {
        let mut tracked = Self {
            pod,
            presence: Presence::Here,
            order: Order::Unknown,
            ended_seen: None,
            backoff: Backoff::default(),
        };
        tracked.note_end(now);
        tracked.note_order();
        tracked
    }

    /// A newer version of it.
    pub fn saw(&mut self, pod: Pod, now: Now) {
        let before = mem::replace(&mut self.pod, pod);
        let had = before.finalizer;
        self.presence = match self.presence {
            Presence::Released if self.pod.finalizer => Presence::Here,
            Presence::Released => Presence::Released,
            Presence::Here | Presence::Releasing | Presence::Stripped | Presence::Gone
                if self.pod.accounted && !self.pod.finalizer =>
            {
                Presence::Released
            }
            Presence::Here | Presence::Releasing | Presence::Stripped
                if had && !self.pod.finalizer =>
            {
                self.pod.finalizer = true;
                Presence::Stripped
            }
            Presence::Releasing => Presence::Releasing,
            Presence::Here | Presence::Stripped | Presence::Gone => Presence::Here,
        };
        self.note_end(now);
        self.note_order();
    }

    /// It went.
    pub fn went(&mut self, now: Now) {
        match self.presence {
            Presence::Released => {}
            Presence::Here | Presence::Releasing | Presence::Stripped | Presence::Gone => {
                self.presence = Presence::Gone;
                self.ended_seen.get_or_insert(now.clock);
            }
        }
    }

    /// Somebody else took our finalizer, or the labels by which it is seen (AG10).
    pub fn stripped(&mut self, now: Now) {
        match self.presence {
            Presence::Here => {
                self.presence = Presence::Stripped;
                self.note_end(now);
            }
            // The answer to its release tells.
            Presence::Releasing | Presence::Stripped | Presence::Gone | Presence::Released => {}
        }
    }

    /// The release was answered: done, or there is nothing to release.
    pub fn released(&mut self) {
        self.presence = Presence::Released;
        self.backoff.succeeded();
    }

    /// The release was not answered, or refused: it is tried again, not before `at_least` has passed (AG8, AH5).
    pub fn release_failed(&mut self, clock: Duration, at_least: Duration) {
        if self.presence == Presence::Releasing {
            self.presence = Presence::Here;
        }
        self.backoff.failed(clock, at_least);
    }

    /// Time has passed: one that was deleted by force ends without news of it (AE1).
    pub fn time_passes(&mut self, now: Now) {
        if self.ended_seen.is_none() && self.pod.deletion.is_some() {
            self.note_end(now);
        }
    }

    fn note_end(&mut self, now: Now) {
        if self.presence == Presence::Stripped || ended(&self.pod, now.server) == Ended::Yes {
            self.ended_seen.get_or_insert(now.clock);
        }
    }

    /// What is seen at once tells nothing of the order.
    fn note_order(&mut self) {
        if self.order == Order::Unknown {
            self.order = match (self.pod.is_terminal(), self.pod.deletion) {
                (true, None) => Order::EndedFirst,
                (false, Some(_)) => Order::DeletedFirst,
                (true, Some(_)) | (false, None) => Order::Unknown,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        pod::{Deletion, Phase},
        testing::{at, pod},
    };

    const NOW: Now = Now { server: at(1_000), clock: Duration::from_secs(7) };

    fn deleted(pod: Pod) -> Pod {
        Pod { deletion: Some(Deletion { at: at(900), grace: 30 }), ..pod }
    }

    fn failed(pod: Pod) -> Pod {
        Pod { phase: Phase::Failed, ..pod }
    }

    #[test]
    fn the_order_is_what_was_seen_first() {
        for (case, versions, expected) in [
            (
                "ended, then deleted",
                vec![pod(), failed(pod()), deleted(failed(pod()))],
                Order::EndedFirst,
            ),
            (
                "deleted, then ended",
                vec![pod(), deleted(pod()), deleted(failed(pod()))],
                Order::DeletedFirst,
            ),
            ("both at once", vec![pod(), deleted(failed(pod()))], Order::Unknown),
            ("it runs", vec![pod()], Order::Unknown),
        ] {
            let mut versions = versions.into_iter();
            let mut tracked = Tracked::new(versions.next().unwrap(), NOW);
            versions.for_each(|version| tracked.saw(version, NOW));
            assert_eq!(tracked.order, expected, "{case}");
        }
    }

    #[test]
    fn ag10_a_finalizer_that_somebody_else_removed_is_told_from_our_release() {
        let bare = || Pod { finalizer: false, ..pod() };
        let ours = || Pod { accounted: true, ..bare() };
        for (case, before, version, expected) in [
            ("ours", Presence::Releasing, ours(), Presence::Released),
            ("ours, reply lost", Presence::Here, ours(), Presence::Released),
            ("by hand", Presence::Here, bare(), Presence::Stripped),
            ("by hand, while ours was under way", Presence::Releasing, bare(), Presence::Stripped),
            ("put back by hand", Presence::Released, pod(), Presence::Here),
            ("another change", Presence::Releasing, pod(), Presence::Releasing),
        ] {
            let mut tracked = Tracked { presence: before, ..Tracked::new(pod(), NOW) };
            tracked.saw(version, NOW);
            assert_eq!(tracked.presence, expected, "{case}");
        }
        let mut observed = Tracked::new(bare(), NOW);
        observed.saw(failed(bare()), NOW);
        assert_eq!(observed.presence, Presence::Here, "it never had one");
    }

    #[test]
    fn ag6_what_was_released_does_not_count_as_gone() {
        let mut tracked = Tracked::new(pod(), NOW);
        tracked.released();
        tracked.went(NOW);
        assert_eq!(tracked.presence, Presence::Released);
        let mut lost = Tracked::new(pod(), NOW);
        lost.went(NOW);
        assert_eq!(lost.presence, Presence::Gone);
    }
}
