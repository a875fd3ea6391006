//! A fault that waits for its call.

use std::time::Duration;

use super::blow::{Blow, InjectedFault, Moment};
use super::purpose::purpose;
use crate::faults::proxy::{Call, Fault, Injection, Proxy};

/// Seconds that a 429 says to wait.
const RETRY_AFTER: u32 = 1;

/// How long an endless fault lasts from the first call of it: longer than whoever is in the way of others may be.
pub(super) const ENDLESS: Duration = Duration::from_secs(45);

/// A fault in the way of one call, or of a few in a row.
pub(super) struct Strike {
    injection: Injection,
    fault: InjectedFault,
}

impl Strike {
    /// Puts it in the way.
    pub(super) fn prepare(proxy: &Proxy, blow: &Blow) -> Self {
        let Blow { call, fault } = blow;
        let wanted = call.purpose.clone();
        let matches = move |call: &Call| !call.is_watch() && purpose(call) == wanted;
        let numbers = call.number..=call.number.saturating_add(fault.times() - 1);
        Self { injection: proxy.inject(matches, numbers, proxy_fault(*fault)), fault: *fault }
    }

    /// Whether the operator is to be killed when it strikes.
    pub(super) const fn kills(&self) -> bool {
        self.fault.kills()
    }

    /// Whether another program is started when it strikes.
    pub(super) const fn doubles(&self) -> bool {
        matches!(self.fault, InjectedFault::Second)
    }

    /// Whether it ends only because it is [ended](Self::end).
    pub(super) const fn is_endless(&self) -> bool {
        self.fault.is_endless()
    }

    /// Ends it: calls that it holds go on, and it strikes no more.
    pub(super) fn end(&self) {
        self.injection.remove();
    }

    /// Lets it strike for a while, and ends it.
    pub(super) async fn lasts(&self) {
        self.strikes().await;
        tokio::time::sleep(ENDLESS).await;
        self.end();
    }

    /// How many calls it has struck.
    pub(super) fn count(&self) -> usize {
        self.injection.befallen()
    }

    /// Waits until it strikes; for ever, if its call does not come.
    pub(super) async fn strikes(&self) {
        while self.injection.reached().await.is_err() {}
    }
}

fn proxy_fault(fault: InjectedFault) -> Fault {
    match fault {
        InjectedFault::Kill(Moment::Before)
        | InjectedFault::Hang { .. }
        | InjectedFault::Second => Fault::HoldRequest,
        InjectedFault::Kill(Moment::Between) => Fault::HoldReply,
        InjectedFault::Kill(Moment::After) => Fault::Pass,
        InjectedFault::Answer { status, .. } => {
            let retry_after = (status == 429).then_some(RETRY_AFTER);
            Fault::Answer { status, retry_after }
        }
        InjectedFault::Lose { .. } => Fault::DropReply,
    }
}
