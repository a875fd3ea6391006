//! Sums of Pods, and of sums.

use std::{cmp::Ordering, collections::BTreeMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use trainjob_api::lifecycle::v1alpha1::{
    record::{PodCounts, PodSums, RESOURCES, Seconds},
    record_words::Class,
};

use crate::{amounts::add, settings::Settings, share::Share};

/// Adds a Pod. Whether there was no room for a resource.
pub(super) fn count(sums: &mut PodSums, share: &Share, settings: &Settings) -> bool {
    sums.container_restarts = add(sums.container_restarts, share.container_restarts);
    earlier(&mut sums.started_at, Some(&share.span.start().into()));
    later(&mut sums.ended_at, Some(&share.span.end().into()));
    let count = match share.verdict.class() {
        Class::Succeeded => &mut sums.pods.succeeded,
        Class::Failed => &mut sums.pods.failed,
        Class::Deleted => &mut sums.pods.deleted,
    };
    *count = add(*count, 1);
    if let Some(reason) = share.verdict.reason() {
        add_to(&mut sums.reasons, reason, 1);
    }
    add_all(&mut sums.seconds, &share.seconds);
    if share.verdict.is_wasted() {
        add_all(&mut sums.wasted, &share.seconds);
    }
    cut_both(sums, settings)
}

/// Adds other Pods. Whether there was no room for a resource.
pub(super) fn merge(sums: &mut PodSums, more: &PodSums, settings: &Settings) -> bool {
    sums.container_restarts = add(sums.container_restarts, more.container_restarts);
    earlier(&mut sums.started_at, more.started_at.as_ref());
    later(&mut sums.ended_at, more.ended_at.as_ref());
    add_pods(&mut sums.pods, &more.pods);
    add_all(&mut sums.reasons, &more.reasons);
    add_all(&mut sums.seconds, &more.seconds);
    add_all(&mut sums.wasted, &more.wasted);
    cut_both(sums, settings)
}

fn cut_both(sums: &mut PodSums, settings: &Settings) -> bool {
    // One after the other: both are cut.
    let dropped = cut(&mut sums.seconds, settings);
    cut(&mut sums.wasted, settings) || dropped
}

pub(super) fn add_pods(sum: &mut PodCounts, more: &PodCounts) {
    let PodCounts { active, succeeded, failed, deleted } = sum;
    *active = add(*active, more.active);
    *succeeded = add(*succeeded, more.succeeded);
    *failed = add(*failed, more.failed);
    *deleted = add(*deleted, more.deleted);
}

pub(super) fn add_all(sums: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (name, number) in more {
        add_to(sums, name, *number);
    }
}

pub(super) fn add_to(sums: &mut BTreeMap<String, u64>, name: &str, number: u64) {
    if let Some(sum) = sums.get_mut(name) {
        *sum = add(*sum, number);
    } else {
        sums.insert(name.into(), number);
    }
}

/// Keeps as many resources as there is room for: GPUs, then cpu and memory, then by alphabet. Whether one was dropped.
pub(super) fn cut(seconds: &mut Seconds, settings: &Settings) -> bool {
    if seconds.len() <= RESOURCES {
        return false;
    }
    // A tenant may name tens of thousands, so they are put in order once.
    let rank = |name: &String| (!settings.is_gpu(name), !matches!(&**name, "cpu" | "memory"));
    let mut ranked: Vec<_> = seconds.keys().map(|name| (rank(name), name.clone())).collect();
    ranked.sort_unstable();
    for (_, name) in ranked.into_iter().skip(RESOURCES) {
        seconds.remove(&name);
    }
    true
}

/// Seconds of all resources that are GPUs.
pub(super) fn gpu_seconds(seconds: &Seconds, settings: &Settings) -> u64 {
    let gpus = seconds.iter().filter(|(name, _)| settings.is_gpu(name));
    gpus.fold(0, |sum, (_, seconds)| add(sum, *seconds))
}

pub(super) fn earlier(instant: &mut Option<Time>, other: Option<&Time>) {
    if let Some(other) = other
        && instant.as_ref().is_none_or(|it| other.0 < it.0)
    {
        *instant = Some(other.clone());
    }
}

pub(super) fn later(instant: &mut Option<Time>, other: Option<&Time>) {
    if let Some(other) = other
        && instant.as_ref().is_none_or(|it| other.0 > it.0)
    {
        *instant = Some(other.clone());
    }
}

/// The item of a sorted list, made where it belongs if there is none.
#[expect(clippy::indexing_slicing, reason = "the index is where the item was found or inserted")]
pub(super) fn position<T>(
    items: &mut Vec<T>,
    compare: impl FnMut(&T) -> Ordering,
    make: impl FnOnce() -> T,
) -> &mut T {
    let at = match items.binary_search_by(compare) {
        Ok(at) => at,
        Err(at) => {
            items.insert(at, make());
            at
        }
    };
    &mut items[at]
}
