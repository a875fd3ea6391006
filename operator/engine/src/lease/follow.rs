//! The watch of the one Lease.

use std::{
    future::pending,
    sync::{Arc, atomic::AtomicBool},
};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, runtime::watcher::Event};
use prometheus::IntCounter;
use tokio::sync::watch;

use crate::{
    leader::Leadership,
    watch::{Span, Subject, follow_one},
};

/// The kind of the object by which a leader is elected, as logs and metrics name it.
pub const KIND: &str = "Lease";

/// What the watch of the Lease has in common with the other watches of a program.
#[derive(Debug)]
pub struct Watched {
    /// Whether the API server could not be reached when last tried; said once for all kinds.
    pub unreachable: Arc<AtomicBool>,
    /// What counts its failures.
    pub restarts: IntCounter,
}

/// How to get Leases.
const INSTALL: &str = "it is part of Kubernetes since 1.14";

/// Follows the Lease while somebody else may hold it; never ends. A leader would be told of its own renewals, and of a
/// change by anybody else the failure of its next renewal tells.
pub(super) async fn until_it_leads(
    follow: impl Future<Output = ()>,
    mut leadership: watch::Receiver<Leadership>,
) {
    tokio::select! {
        () = follow => {}
        _ = leadership.wait_for(|it| *it != Leadership::Waiting) => {}
    }
    pending::<()>().await;
}

/// Hands on what the watch of the one Lease shows; never ends.
pub(super) async fn follow(
    api: Api<Lease>,
    name: String,
    news: watch::Sender<Option<Lease>>,
    watched: Watched,
) {
    let mut listed = None;
    let Watched { unreachable, restarts } = &watched;
    let subject = Subject { kind: KIND, install: Some(INSTALL), span: Span::Long, restarts };
    follow_one(api, &name, subject, unreachable, |event| match event {
        Ok(Event::Init) => listed = None,
        Ok(Event::InitApply(lease)) => listed = Some(lease),
        Ok(Event::InitDone) => {
            news.send_replace(listed.take());
        }
        Ok(Event::Apply(lease)) => {
            news.send_replace(Some(lease));
        }
        Ok(Event::Delete(_)) => {
            news.send_replace(None);
        }
        // Without news the Lease is looked at when it seems to have expired.
        Err(_) => {}
    })
    .await;
}

#[cfg(test)]
mod tests {
    use tokio::{task::yield_now, time::Instant};

    use super::*;

    #[tokio::test]
    async fn lease_is_followed_until_this_process_leads() {
        let (leadership, seen) = watch::channel(Leadership::Waiting);
        let held = Arc::new(());
        let follow = {
            let held = Arc::clone(&held);
            async move {
                pending::<()>().await;
                drop(held);
            }
        };
        let task = tokio::spawn(until_it_leads(follow, seen));
        yield_now().await;
        assert_eq!(Arc::strong_count(&held), 2);
        leadership.send_replace(Leadership::Leading { until: Instant::now() });
        yield_now().await;
        assert_eq!(Arc::strong_count(&held), 1, "it still follows");
        assert!(!task.is_finished());
        task.abort();
    }
}
