//! Whether another program lives, as its Lease shows it.
//!
//! What matters is when the Lease was seen to change, by the clock of this process. What is written in it is not compared
//! with any clock.

use std::{
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, runtime::watcher::Event};
use prometheus::IntCounter;

use crate::{
    clock::monotonic,
    lease::KIND,
    watch::{Failed, Span, Subject, follow_one},
};

/// How to get Leases.
const INSTALL: &str = "it is part of Kubernetes since 1.14";

/// What was seen of a Lease.
#[derive(Debug)]
pub struct Heartbeat {
    begun: Duration,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    version: Option<String>,
    is_held: bool,
    changed_at: Option<Duration>,
    unseen_until: Option<Duration>,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self::since(monotonic())
    }
}

impl Heartbeat {
    /// Nothing has been seen yet; it is looked for since `begun`, by the clock of this process.
    #[must_use]
    pub fn since(begun: Duration) -> Self {
        Self { begun, seen: Mutex::default() }
    }

    /// Since when it is looked for.
    #[must_use]
    pub const fn begun(&self) -> Duration {
        self.begun
    }

    /// When the Lease was last seen to change.
    #[must_use]
    pub fn changed_at(&self) -> Option<Duration> {
        self.seen().changed_at
    }

    /// Since when the Lease has been seen to stand still: since it changed, or since it could be seen again. A holder cannot
    /// renew it while the API server is away, so that time says nothing of the holder.
    #[must_use]
    pub fn still_since(&self) -> Duration {
        let seen = self.seen();
        seen.changed_at.max(seen.unseen_until).unwrap_or(self.begun)
    }

    /// Whether it says that somebody holds it.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.seen().is_held
    }

    /// This version was seen at `now`, or that there is none.
    pub fn saw(&self, lease: Option<&Lease>, now: Duration) {
        let mut seen = self.seen();
        let version = lease.and_then(|lease| lease.metadata.resource_version.clone());
        let holder = lease.and_then(|lease| lease.spec.as_ref()?.holder_identity.as_deref());
        seen.is_held = holder.is_some_and(|holder| !holder.is_empty());
        // What is seen first has not been seen to change.
        if seen.version.is_some() && version.is_some() && seen.version != version {
            seen.changed_at = Some(now);
        }
        seen.version = version.or_else(|| seen.version.take());
    }

    /// The API server could not be asked at `now`.
    pub fn missed(&self, now: Duration) {
        self.seen().unseen_until = Some(now);
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches the Lease of this name, for ever. `restarts` counts failures of the watch.
    pub async fn watch(
        &self,
        api: Api<Lease>,
        name: &str,
        unreachable: &AtomicBool,
        restarts: &IntCounter,
    ) {
        let subject = Subject { kind: KIND, install: Some(INSTALL), span: Span::Short, restarts };
        follow_one(api, name, subject, unreachable, |event| match event {
            Ok(Event::InitApply(lease) | Event::Apply(lease)) => {
                self.saw(Some(&lease), monotonic());
            }
            Ok(Event::Delete(_)) => self.saw(None, monotonic()),
            // Where it may not be seen, the API server is there, and its holder may renew it.
            Err(Failed { is_refused: false }) => self.missed(monotonic()),
            Ok(Event::Init | Event::InitDone) | Err(Failed { is_refused: true }) => {}
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(version: &str, holder: &str) -> Lease {
        let spec = json!({"holderIdentity": holder});
        serde_json::from_value(json!({"metadata": {"resourceVersion": version}, "spec": spec}))
            .unwrap()
    }

    #[test]
    fn only_another_version_than_the_first_is_a_change() {
        let at = Duration::from_secs;
        let heartbeat = Heartbeat::since(at(0));
        heartbeat.saw(Some(&lease("7", "a")), at(2));
        assert_eq!((heartbeat.changed_at(), heartbeat.is_held()), (None, true));
        heartbeat.saw(Some(&lease("7", "a")), at(61));
        assert_eq!(heartbeat.changed_at(), None, "a list shows the same version");
        heartbeat.saw(Some(&lease("8", "")), at(62));
        assert_eq!((heartbeat.changed_at(), heartbeat.is_held()), (Some(at(62)), false));
        heartbeat.saw(None, at(66));
        assert_eq!(heartbeat.changed_at(), Some(at(62)), "a deletion is no sign of life");
        heartbeat.saw(Some(&lease("9", "b")), at(70));
        assert_eq!(heartbeat.changed_at(), Some(at(70)), "it was made anew");
    }

    #[test]
    fn time_in_which_the_api_server_is_away_is_not_one_in_which_the_lease_stands_still() {
        let at = Duration::from_secs;
        let heartbeat = Heartbeat::since(at(1));
        assert_eq!(heartbeat.still_since(), at(1));
        heartbeat.saw(Some(&lease("7", "a")), at(2));
        assert_eq!(heartbeat.still_since(), at(1), "it has not been seen to change");
        heartbeat.saw(Some(&lease("8", "a")), at(4));
        assert_eq!(heartbeat.still_since(), at(4));
        heartbeat.missed(at(124));
        assert_eq!(heartbeat.still_since(), at(124));
        heartbeat.saw(Some(&lease("8", "a")), at(126));
        assert_eq!(heartbeat.still_since(), at(124), "it is seen again, and has not changed");
        heartbeat.saw(Some(&lease("9", "a")), at(130));
        assert_eq!(heartbeat.still_since(), at(130));
    }
}
