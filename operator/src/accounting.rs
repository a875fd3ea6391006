//! Whether the program lives that counts Pods (`docs/accounting.md`, AM2): a watch of its Lease.
//!
//! What matters is when the Lease was seen to change, by the clock of this process. What is written in it is not compared
//! with any clock.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use prometheus::IntCounter;
use trainjob_core::mark::{Accounting, LEASE_BELIEVED, Mode, Program};
use trainjob_engine::{clock::monotonic, heartbeat::Heartbeat};
use trainjob_process::config;

/// The program that counts, as its Lease shows it.
#[derive(Debug)]
pub struct Counting {
    mode: Mode,
    heartbeat: Heartbeat,
}

impl Counting {
    /// Nothing has been seen yet.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self { mode, heartbeat: Heartbeat::default() }
    }

    /// What decides now whether a new JobSet is marked.
    #[must_use]
    pub fn now(&self) -> Accounting {
        Accounting { mode: self.mode, program: self.program(monotonic()) }
    }

    fn program(&self, now: Duration) -> Program {
        match self.heartbeat.changed_at() {
            Some(at) => Program::Changed(now.saturating_sub(at)),
            None if now.saturating_sub(self.heartbeat.begun()) < LEASE_BELIEVED => {
                Program::Young { held: self.heartbeat.is_held() }
            }
            None => Program::Silent,
        }
    }

    /// Watches the Lease, for ever. `restarts` counts failures of the watch.
    pub async fn watch(
        self: Arc<Self>,
        client: Client,
        lease: config::Accounting,
        own_namespace: String,
        unreachable: Arc<AtomicBool>,
        restarts: IntCounter,
    ) {
        let namespace = lease.lease_namespace.unwrap_or(own_namespace);
        let api: Api<Lease> = Api::namespaced(client, &namespace);
        self.heartbeat.watch(api, &lease.lease_name, &unreachable, &restarts).await;
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
    fn am2_only_a_change_that_this_process_has_seen_says_that_the_program_lives() {
        let at = |seconds| Duration::from_secs(seconds);
        let counting = Counting { mode: Mode::Exact, heartbeat: Heartbeat::since(Duration::ZERO) };
        assert_eq!(counting.program(at(1)), Program::Young { held: false });
        counting.heartbeat.saw(Some(&lease("7", "a")), at(2));
        assert_eq!(counting.program(at(59)), Program::Young { held: true });
        assert_eq!(counting.program(at(60)), Program::Silent, "it was never seen to change");
        counting.heartbeat.saw(Some(&lease("7", "a")), at(61));
        assert_eq!(counting.program(at(61)), Program::Silent, "a list shows the same version");
        counting.heartbeat.saw(Some(&lease("8", "a")), at(62));
        assert_eq!(counting.program(at(65)), Program::Changed(at(3)));
        counting.heartbeat.saw(None, at(66));
        counting.heartbeat.saw(Some(&lease("9", "b")), at(70));
        assert_eq!(counting.program(at(70)), Program::Changed(at(0)), "it was made anew");
    }

    #[test]
    fn am2_a_young_process_believes_a_holder_and_no_released_lease() {
        let counting = Counting::new(Mode::Observe);
        counting.heartbeat.saw(Some(&lease("7", "")), monotonic());
        assert_eq!(counting.now().program, Program::Young { held: false });
        assert_eq!(counting.now().mode, Mode::Observe);
    }
}
