//! What a take-over was, by what the API server noted.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::calls::{Call, Calls, Micros};
use super::super::deadlines::is_failure;
use super::super::figures::Times;
use super::super::usage::{Usage, megabytes};
use super::plan::{Ending, Plan};

/// How long reads are counted, in microseconds.
const READS_WITHIN: i64 = 30_000_000;

/// What came of a take-over. What did not happen is not a number.
#[derive(Debug, Clone)]
pub(super) struct TakeOver {
    pub(super) ending: Ending,
    /// From the release of the Lease, or from the end of the leader, until the follower has it; in milliseconds.
    pub(super) lease_ms: f64,
    /// From then, or from when it was due if that was later, to the first action that was overdue.
    pub(super) overdue_ms: f64,
    /// From then, or from its creation, to the JobSet of the new job.
    pub(super) new_ms: f64,
    /// How late deadlines were stored.
    pub(super) deadlines: Times,
    pub(super) early: usize,
    /// Jobs that were not deleted, or whose deadlines were not stored.
    pub(super) missing: usize,
    /// What the new leader read in the first seconds.
    pub(super) reads: usize,
    /// What the old leader wrote after it had been resumed.
    pub(super) late_writes: usize,
    pub(super) exit_code: Option<i32>,
    pub(super) usage: Option<Usage>,
}

impl TakeOver {
    /// Its figures.
    pub(super) fn json(&self) -> Value {
        json!({
            "ending": self.ending.name(), "lease_ms": self.lease_ms, "overdue_ms": self.overdue_ms,
            "new_ms": self.new_ms, "deadlines_ms": self.deadlines, "early": self.early,
            "missing": self.missing, "gets": self.reads, "late_writes": self.late_writes,
            "exit_code": self.exit_code,
            "pss_mb": self.usage.map(|it| megabytes(it.now)),
            "peak_mb": self.usage.map(|it| megabytes(it.peak)),
        })
    }

    /// The exit code that it has to have had; none if it was killed.
    pub(super) const fn exits_as_it_must(&self) -> bool {
        match self.ending {
            Ending::Terminated => matches!(self.exit_code, Some(0)),
            Ending::Killed => self.exit_code.is_none(),
            Ending::Paused => matches!(self.exit_code, Some(1)),
        }
    }
}

/// What a take-over was, from one with the first token to one with the second.
pub(super) fn judged(
    calls: &Calls,
    plan: &Plan,
    [old, new]: [&str; 2],
    resumed: Option<Micros>,
) -> TakeOver {
    let taken = lease_writes(calls, new).map(Call::completed).filter(|at| *at >= plan.ends).min();
    // Nothing that comes after never is found.
    let taken = taken.unwrap_or(Micros(i64::MAX));
    let is_new = |call: &&&Call| call.has_token(new) && call.received() >= plan.ends;
    let (deleted, stored) =
        (calls.accepted("delete", "trainjobs"), calls.accepted("patch", "trainjobs/status"));
    let ttls = late(deleted.iter().filter(is_new).copied(), &plan.ttls, taken);
    let failures = stored.iter().filter(is_new).copied().filter(|call| is_failure(call));
    let deadlines = late(failures, &plan.deadlines, taken);
    let built = calls.accepted("create", "jobsets");
    let built =
        built.iter().find(|call| call.object.name == plan.new.0).map(|call| call.completed());
    let since = |at: Option<Micros>, from: Micros| at.map_or(f64::NAN, |at| at.since(from));
    let released = lease_writes(calls, old).filter(|call| is_release(call));
    let released = released.map(Call::completed).filter(|at| *at >= plan.ends).min();
    let is_read = |call: &&Call| {
        let (from, to) = (taken, Micros(taken.0.saturating_add(READS_WITHIN)));
        call.verb == "get"
            && call.has_token(new)
            && (from..to).contains(&call.received())
            && call.object.resource != "leases"
    };
    let is_late = |call: &&Call| {
        let is_write = !matches!(call.verb.as_str(), "get" | "list" | "watch");
        let after = resumed.is_some_and(|resumed| call.received() >= resumed);
        is_write && after && call.has_token(old) && call.object.resource != "leases"
    };
    let ended = match plan.ending {
        Ending::Terminated => released.unwrap_or(plan.ends),
        Ending::Killed | Ending::Paused => plan.ends,
    };
    let is_early = |late: &&(f64, bool)| late.1;
    TakeOver {
        ending: plan.ending,
        lease_ms: if taken.0 == i64::MAX { f64::NAN } else { taken.since(ended) },
        overdue_ms: ttls.iter().map(|late| late.0).min_by(f64::total_cmp).unwrap_or(f64::NAN),
        new_ms: since(built, taken.max(plan.new.1)),
        deadlines: Times::of(deadlines.iter().map(|late| late.0)),
        early: ttls.iter().chain(&deadlines).filter(is_early).count(),
        missing: plan.ttls.len() + plan.deadlines.len() - ttls.len() - deadlines.len(),
        reads: calls.work.iter().filter(is_read).count(),
        late_writes: calls.work.iter().filter(is_late).count(),
        exit_code: None,
        usage: None,
    }
}

/// The accepted writes to the Lease by one of the replicas.
fn lease_writes<'c>(calls: &'c Calls, token: &str) -> impl Iterator<Item = &'c Call> {
    let is_it = move |call: &&Call| {
        let is_write = matches!(call.verb.as_str(), "create" | "update" | "patch");
        is_write && call.object.resource == "leases" && call.was_accepted() && call.has_token(token)
    };
    calls.work.iter().filter(is_it)
}

/// Whether it gives the Lease to nobody.
fn is_release(call: &Call) -> bool {
    let holder = call.sent.pointer("/spec/holderIdentity").and_then(Value::as_str);
    holder.is_none_or(str::is_empty)
}

/// How late the first call about each of these was done, counted from when it was possible, and whether it came early.
fn late<'c>(
    calls: impl Iterator<Item = &'c Call>,
    dues: &HashMap<String, Micros>,
    taken: Micros,
) -> Vec<(f64, bool)> {
    let mut found: HashMap<&str, (f64, bool)> = HashMap::new();
    for call in calls {
        if let Some(due) = dues.get(&call.object.name) {
            let late = call.completed().since((*due).max(taken));
            found.entry(&call.object.name).or_insert((late, call.received() < *due));
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::calls::Noted;
    use super::*;
    use crate::testenv::fixtures::OPERATOR_USER;

    /// A call that one of the replicas made, received and done so many milliseconds after the epoch.
    fn line(token: &str, verb: &str, object: &Value, times: (i64, i64), sent: &Value) -> String {
        let at = |ms: i64| format!("1970-01-01T00:00:{:02}.{:03}000Z", ms / 1_000, ms % 1_000);
        let extra = json!({"authentication.kubernetes.io/credential-id": [format!("JTI={token}")]});
        json!({
            "verb": verb, "user": {"username": OPERATOR_USER, "extra": extra}, "objectRef": object,
            "responseStatus": {"code": 200}, "requestObject": sent,
            "requestReceivedTimestamp": at(times.0), "stageTimestamp": at(times.1),
        })
        .to_string()
    }

    fn calls(lines: &[String]) -> Calls {
        Noted::read(lines.join("\n").as_bytes()).unwrap().operator
    }

    fn plan(ending: Ending) -> Plan {
        let at = |name: &str, ms: i64| HashMap::from([(name.to_owned(), Micros(ms * 1_000))]);
        Plan {
            ending,
            ends: Micros(1_000_000),
            ttls: at("done", 1_020),
            deadlines: at("free", 5_000),
            new: ("new".to_owned(), Micros(1_005_000)),
        }
    }

    fn lines() -> Vec<String> {
        let object = |resource: &str, name: &str| json!({"resource": resource, "namespace": "a", "name": name});
        let status = json!({"resource": "trainjobs", "subresource": "status", "namespace": "a", "name": "free"});
        let failed = json!({"status": {"conditions": [{"reason": "DeadlineExceeded"}]}});
        let (lease, none) = (object("leases", "l"), Value::Null);
        vec![
            line("old", "update", &lease, (1_001, 1_010), &json!({"spec": {"holderIdentity": ""}})),
            line(
                "new",
                "update",
                &lease,
                (1_025, 1_030),
                &json!({"spec": {"holderIdentity": "n"}}),
            ),
            line("new", "delete", &object("trainjobs", "done"), (1_040, 1_050), &none),
            line("new", "create", &object("jobsets", "new"), (1_060, 1_080), &none),
            line("new", "get", &object("configmaps", "x"), (1_090, 1_100), &none),
            line("new", "get", &lease, (1_090, 1_100), &none),
            line("new", "patch", &status, (5_001, 5_007), &failed),
            line("old", "delete", &object("trainjobs", "done"), (9_000, 9_001), &none),
        ]
    }

    fn is(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-6
    }

    #[test]
    fn each_time_counts_from_when_the_follower_could_act() {
        let taken = judged(&calls(&lines()), &plan(Ending::Terminated), ["old", "new"], None);
        assert!(is(taken.lease_ms, 20.0), "{taken:?}");
        assert!(is(taken.overdue_ms, 20.0), "{taken:?}");
        assert!(is(taken.new_ms, 50.0), "{taken:?}");
        assert!(is(taken.deadlines.last, 7.0), "{taken:?}");
        assert_eq!((taken.early, taken.missing, taken.reads, taken.late_writes), (0, 0, 1, 0));
    }

    #[test]
    fn without_a_release_the_lease_counts_from_the_end_of_the_leader() {
        let taken = judged(&calls(&lines()), &plan(Ending::Killed), ["old", "new"], None);
        assert!(is(taken.lease_ms, 30.0), "{taken:?}");
    }

    #[test]
    fn writes_of_a_resumed_leader_are_counted() {
        let resumed = Some(Micros(8_000_000));
        let taken = judged(&calls(&lines()), &plan(Ending::Paused), ["old", "new"], resumed);
        assert_eq!(taken.late_writes, 1);
    }

    #[test]
    fn what_did_not_happen_is_missing_and_what_came_too_soon_is_early() {
        let mut lines = lines();
        lines.remove(2);
        let mut plan = plan(Ending::Terminated);
        plan.deadlines.insert("free".to_owned(), Micros(6_000_000));
        let taken = judged(&calls(&lines), &plan, ["old", "new"], None);
        assert!(taken.overdue_ms.is_nan(), "{taken:?}");
        assert_eq!((taken.early, taken.missing), (1, 1));
        let nobody = judged(&calls(&lines[..1]), &plan, ["old", "new"], None);
        assert!(nobody.lease_ms.is_nan() && nobody.new_ms.is_nan(), "{nobody:?}");
        assert_eq!((nobody.missing, nobody.reads), (2, 0));
    }
}
