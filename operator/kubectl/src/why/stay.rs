//! How long a finished job stays, and what can be done about that.
//!
//! How long holds may be is a setting of the operator (`lifecycle.maximumHoldSeconds`), which the plugin cannot read. It
//! computes with the default, and says so where the answer depends on it.

use trainjob_api::{lifecycle::v1alpha1::HOLD_ANNOTATION, time::Timestamp};
use trainjob_core::lifecycle::hold::{End, Hold};

use super::{answer::Cause, scene::Scene, words};
use crate::{
    duration::brief,
    ttl::{Ttl, hold_of},
};

/// How long after the end of a TTL somebody should look why the job is still there, in seconds.
const OVERDUE: i64 = 60;

/// How long a job stays that has finished: the cause, what shows it, and what can be done about it.
pub(super) fn stay(scene: &Scene) -> (Cause, Vec<String>, Vec<String>) {
    let name = words::name_and_namespace(scene);
    let delete = format!("Delete it: kubectl delete trainjob {name}");
    let let_go = format!("Let it go: kubectl annotate trainjob {name} {HOLD_ANNOTATION}-");
    let hold = hold_of(&scene.facts);
    let is_longest = hold.is_some_and(|(_, hold)| hold.end != End::AsWished);
    match Ttl::of(&scene.facts, true, scene.now) {
        Ttl::Running { due, left_seconds } => {
            let left = brief(left_seconds.unsigned_abs());
            let why = hold.map_or_else(
                || format!("Its TTL deletes it at {due}, in {left}."),
                |(end, hold)| format!("Its TTL ends at {end}, but {}.", reach(hold, scene.now)),
            );
            let longer = format!(
                "Keep it for longer, as far as the cluster allows (lifecycle.maximumHoldSeconds): kubectl annotate trainjob {name} --overwrite {HOLD_ANNOTATION}=TIME, such as {}",
                due.plus(86_400)
            );
            let hold = if is_longest { let_go } else { longer };
            (Cause::TtlRunning, vec![why], vec![hold, delete])
        }
        Ttl::Held { .. } => {
            let why = hold
                .map(|(_, hold)| format!("Its TTL has passed, but {}.", reach(hold, scene.now)));
            (Cause::Held, why.into_iter().collect(), vec![let_go])
        }
        Ttl::Due { due } => {
            let failed = scene.told("TTLDeletionFailed");
            let why = std::iter::once(passed(due, hold.map(|(_, hold)| hold.end)))
                .chain(failed.map(|note| format!("An event says: {note}.")));
            let ask = "Ask an administrator whether the operator runs and may delete TrainJobs";
            let longest = if is_longest { ", and how long holds may be" } else { "" };
            let is_late = scene.now.since(due) > OVERDUE;
            let next = is_late.then(|| format!("{ask}{longest}."));
            (Cause::TtlPassed, why.collect(), next.into_iter().collect())
        }
        Ttl::Exempt => {
            let why = "It is a copy that MultiKueue has made, and removes itself.".to_owned();
            (Cause::RemoteCopy, vec![why], Vec::new())
        }
        Ttl::None | Ttl::AfterEnd { .. } | Ttl::Never | Ttl::AfterRelease => {
            let unset = "It has no ttlSecondsAfterFinished, so it stays until somebody deletes it.";
            let invalid = scene.facts.out_of_range.map(|it| {
                format!(
                    "Its {} is {} and counts as unset; it must be at least {}.",
                    it.field, it.value, it.minimum
                )
            });
            let why = std::iter::once(unset.to_owned()).chain(invalid).collect();
            (Cause::KeptForEver, why, vec![delete])
        }
    }
}

/// How far a hold reaches, as the end of a sentence.
fn reach(hold: Hold, now: Timestamp) -> String {
    let Hold { until, end } = hold;
    let left = brief(until.since(now).unsigned_abs());
    let by_default =
        "by the default of lifecycle.maximumHoldSeconds; the cluster may allow less or more";
    let (which, limit) = match end {
        End::AsWished => ("", "unless the cluster allows less (lifecycle.maximumHoldSeconds)"),
        End::Capped => (", which asks for more,", by_default),
        End::Unreadable => (", which is no RFC 3339 time,", by_default),
    };
    format!("its annotation {HOLD_ANNOTATION}{which} keeps it until {until}, for {left}, {limit}")
}

/// That a TTL has passed, and the hold that delayed it if there was one.
fn passed(due: Timestamp, hold: Option<End>) -> String {
    match hold {
        None => format!("Its TTL has passed at {due}: the operator is to delete it."),
        Some(End::AsWished) => format!(
            "Its TTL has passed, and its annotation {HOLD_ANNOTATION} has kept it until {due}: the operator is to delete it."
        ),
        Some(End::Capped | End::Unreadable) => format!(
            "Its TTL has passed, and its annotation {HOLD_ANNOTATION} has kept it until {due}, by the default of lifecycle.maximumHoldSeconds: the operator is to delete it, unless the cluster allows more."
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::why::testing::{NOW, condition, scene};

    /// Much later than any hold reaches by default.
    const LATER: Timestamp = Timestamp(2_600_000);

    #[test]
    fn an_answer_about_a_hold_says_how_it_depends_on_the_longest_hold_of_the_cluster() {
        let default =
            "by the default of lifecycle.maximumHoldSeconds; the cluster may allow less or more.";
        let long = "2100-01-01T00:00:00Z";
        for (hold, ttl, now, cause, why, next) in [
            (
                "1970-01-01T03:00:00Z",
                6_600,
                NOW,
                Cause::TtlRunning,
                "Its TTL ends at 1970-01-01T02:00:00Z, but its annotation lifecycle.trainjob.dev/hold-until keeps it until 1970-01-01T03:00:00Z, for 2h, unless the cluster allows less (lifecycle.maximumHoldSeconds).".to_owned(),
                "as far as the cluster allows",
            ),
            (
                long,
                6_600,
                NOW,
                Cause::TtlRunning,
                format!("Its TTL ends at 1970-01-01T02:00:00Z, but its annotation lifecycle.trainjob.dev/hold-until, which asks for more, keeps it until 1970-01-31T02:00:00Z, for 30d1h, {default}"),
                "Let it go",
            ),
            (
                "1970-01-01T03:00:00Z",
                60,
                NOW,
                Cause::Held,
                "Its TTL has passed, but its annotation lifecycle.trainjob.dev/hold-until keeps it until 1970-01-01T03:00:00Z, for 2h, unless the cluster allows less (lifecycle.maximumHoldSeconds).".to_owned(),
                "Let it go",
            ),
            (
                "tomorrow",
                60,
                NOW,
                Cause::Held,
                format!("Its TTL has passed, but its annotation lifecycle.trainjob.dev/hold-until, which is no RFC 3339 time, keeps it until 1970-01-31T00:11:00Z, for 29d23h, {default}"),
                "Let it go",
            ),
            (
                "1970-01-01T00:30:00Z",
                60,
                NOW,
                Cause::TtlPassed,
                "Its TTL has passed, and its annotation lifecycle.trainjob.dev/hold-until has kept it until 1970-01-01T00:30:00Z: the operator is to delete it.".to_owned(),
                "may delete TrainJobs.",
            ),
            (
                long,
                60,
                LATER,
                Cause::TtlPassed,
                "Its TTL has passed, and its annotation lifecycle.trainjob.dev/hold-until has kept it until 1970-01-31T00:11:00Z, by the default of lifecycle.maximumHoldSeconds: the operator is to delete it, unless the cluster allows more.".to_owned(),
                "may delete TrainJobs, and how long holds may be.",
            ),
        ] {
            let annotated = json!({"annotations": {HOLD_ANNOTATION: hold}});
            let spec = json!({"ttlSecondsAfterFinished": ttl});
            let mut job = scene(&annotated, &spec, &json!([condition("Complete", "Done", "")]));
            job.now = now;
            let (said, because, advice) = stay(&job);
            assert_eq!((said, because), (cause, vec![why]), "{hold} {ttl}");
            assert!(advice.iter().any(|it| it.contains(next)), "{next:?} is not in {advice:?}");
        }
    }
}
