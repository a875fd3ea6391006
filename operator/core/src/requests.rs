//! What a Pod requests, as the scheduler counts it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;

use crate::build::amount;

/// So many billionths are one.
pub const BILLIONTHS: u128 = 1_000_000_000;

/// How many billionths of each resource a Pod requests: its containers together, or what it needs to start, where that
/// is more, and its overhead; what is requested for the Pod as a whole goes first. `None`, if a quantity is none.
#[must_use]
pub fn requested_billionths(pod: &PodSpec) -> Option<BTreeMap<String, u128>> {
    let amounts = amount::requests(pod).ok()?;
    Some(amounts.into_iter().map(|(name, amount)| (name, amount.billionths())).collect())
}
