//! What is looked up when somebody reads the metrics: finished objects, policies, the queue, the time
//! (`docs/retention.md`, 7).
//!
//! The page is computed once a second at most, in slices so that others get at the state in between, and costs nothing
//! while nobody reads. What the last survey found of an object is counted as long as it holds; others are planned for. What
//! is said of objects and policies is what the leader sees; another replica shows no objects and no policies.

mod findings;
mod work;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use prometheus::Result;
use trainjob_process::{metrics::Sampled, server_time::ServerTime};

use self::{
    findings::{Findings, KindLine, PolicyLine},
    work::{Time, Work},
};
use crate::{
    cluster_state::{ClusterState, KindState, Numbers, PolicyKey, Stored},
    key::TargetId,
    metrics::Metrics,
    remover::Remover,
    status::is_ready,
};

/// How many objects are counted at a time; others want the state, too.
const SLICE: usize = 1_000;

/// Shows the gauges that are looked up in these, among the metrics of the remover.
///
/// # Errors
///
/// There is a metric of one of their names.
pub fn show(remover: &Arc<Remover>, server_time: Arc<ServerTime>) -> Result<()> {
    let mut metrics = Sampled::default();
    let (work, findings) = (Work::new(&mut metrics)?, Findings::new(&mut metrics)?);
    let counting = Arc::clone(remover);
    metrics.register(remover.metrics().registry(), move || {
        work.set_queue(&counting.queue_numbers(), counting.leader().holds());
        work.set_flows(counting.slow_flows());
        work.set_time(time(&counting, &server_time));
        let (kinds, policies) = lines(&counting);
        let shown = counting.metrics();
        begin(shown, &kinds, &policies);
        findings.set_kinds(&kinds, &shown.kinds);
        findings.set_loops(counting.loops());
        findings.set_policies(&policies, &shown.policies);
    })
}

fn time(remover: &Remover, server_time: &ServerTime) -> Time {
    let is_good = remover.clock().now().reached().is_some();
    let offset = |_| ahead(remover.clock().likely(), SystemTime::now());
    Time { is_good, offset: server_time.reading().map(offset) }
}

/// By how many seconds a clock is ahead of another.
fn ahead(clock: SystemTime, other: SystemTime) -> f64 {
    let behind = |time: Duration| -time.as_secs_f64();
    clock
        .duration_since(other)
        .map_or_else(|before| behind(before.duration()), |ahead| ahead.as_secs_f64())
}

/// Begins the counters of kinds and policies, those in Audit, too, which may enforce next.
fn begin(metrics: &Metrics, kinds: &[KindLine], policies: &[PolicyLine]) {
    for line in kinds {
        metrics.begin_kind(&line.kind);
    }
    for line in policies {
        if let Some(kind) = &line.kind {
            metrics.begin_policy(&line.policy, kind);
        }
    }
}

/// What is known of kinds and policies.
fn lines(remover: &Remover) -> (Vec<KindLine>, Vec<PolicyLine>) {
    let (mut kinds, mut policies) = (Vec::new(), Vec::new());
    let is_leader = remover.leader().holds();
    for (index, target) in remover.targets().into_iter().enumerate() {
        let mut numbers = Numbers::default();
        let now = remover.clock().now();
        while is_leader && remover.state().count(TargetId(index), &mut numbers, SLICE, now) {}
        kinds.push(KindLine { kind: target.kind, numbers });
    }
    if is_leader {
        let state = remover.state();
        for (key, stored) in state.policies() {
            let (target, kind) = state.kind_of(stored);
            let is_gone = target.is_some_and(|target| remover.is_gone(target));
            let line = target.and_then(|target| kinds.get(target.0));
            policies.push(policy_line(&state, (key, stored), (kind, is_gone), line));
        }
    }
    (kinds, policies)
}

fn policy_line(
    state: &ClusterState,
    (key, stored): (&PolicyKey, &Stored),
    kind: (KindState, bool),
    line: Option<&KindLine>,
) -> PolicyLine {
    let policy = stored.as_ref().ok().map(|stored| &stored.policy);
    let uid = policy.map(|policy| &policy.uid);
    let missing = uid.map(|uid| state.missing_rules(uid)).unwrap_or_default();
    let would_delete = uid.and_then(|uid| line?.numbers.would_delete.get(uid).copied());
    PolicyLine {
        policy: Arc::clone(&key.name),
        kind: policy.and(line).map(|line| line.kind.clone()),
        mode: policy.map(|policy| policy.mode),
        is_forbidden: policy.is_some() && (kind.0 == KindState::NotATarget || !missing.is_empty()),
        is_ready: is_ready(stored, kind, uid.is_some_and(|uid| state.is_paused(uid))),
        is_tripped: uid.is_some_and(|uid| state.tripped(uid).is_some()),
        unexpected: uid.map_or(0, |uid| state.unexpected(uid)),
        would_delete: would_delete.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests;
