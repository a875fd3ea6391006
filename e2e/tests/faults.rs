//! A short selection of the loop of faults; `cargo faults` runs all of it.

use anyhow::{Result, ensure};
use e2e::faults::verdict::Verdict;
use e2e::faults::{Campaign, Kind, Plan, Program, Selection, report};
use launcher::say;

const LANES: usize = 16;

/// The calls at which a crash does the most harm. The operator is killed before each of them is sent, and again when the
/// API server has carried it out but the operator has no answer. A kill after the answer leaves what a kill before the next
/// call does, so only `cargo faults` has those.
const CRITICAL: [&str; 16] = [
    "complete-ttl/create configmaps job-runtime-snapshot 1",
    "complete-ttl/create jobsets job 1",
    "complete-ttl/patch trainjobs status job Complete 1",
    "complete-ttl/delete trainjobs job 1",
    "deadline/patch trainjobs status job Failed 1",
    "deadline/delete jobsets job 1",
    "deadline-ttl/list pods 1",
    "deadline-ttl/delete trainjobs job 1",
    "suspend-resume/patch jobsets job 1",
    "suspend-resume/patch jobsets job suspend 1",
    "suspend-resume/patch jobsets job resume 1",
    "failure-ttl/patch trainjobs status job Failed 1",
    "ttl-zero/delete trainjobs job 1",
    "mpi-ttl/create secrets job-mpi-ssh-auth 2",
    "recreated/create jobsets job 2",
    "found-at-start/list pods everywhere 1",
];

/// Each error at one call.
const ERRORS: [&str; 14] = [
    "complete-ttl/create jobsets job 1/lost",
    "complete-ttl/create configmaps job-runtime-snapshot 1/409",
    "complete-ttl/delete trainjobs job 1/lostx3",
    "deadline/patch trainjobs status job Failed 1/404",
    "deadline/patch trainjobs status job Failed 1/409x3",
    "deadline/delete jobsets job 1/404x3",
    "deadline/delete jobsets job 1/503x3",
    "deadline-ttl/list pods 1/504",
    "failure-ttl/list pods 1/403",
    "failure-ttl/delete trainjobs job 1/422",
    "suspend-resume/create jobsets job 1/429x3",
    "suspend-resume/patch jobsets job suspend 1/500",
    "suspend-resume/patch jobsets job suspend 1/429x3",
    "recreated/create jobsets job 1/403",
];

/// The same for the retention engine.
const POLICY_CRITICAL: [&str; 6] = [
    "policy-ttl/delete jobs job-001 1",
    "policy-overdue/delete jobs job-000 1",
    "policy-overdue/list jobs 1",
    "policy-trip/patch retentionpolicies status jobs 1",
    "policy-trip/delete jobs job-002 1",
    "policy-owner/get jobs owner 1",
];
const POLICY_ERRORS: [&str; 7] = [
    "policy-ttl/delete jobs job-000 1/403",
    "policy-ttl/delete jobs job-000 1/409x3",
    "policy-ttl/delete jobs job-001 1/500x3",
    "policy-ttl/delete jobs job-002 1/lost",
    "policy-overdue/list jobs 1/503",
    "policy-owner/get jobs owner 1/500",
    "policy-owner/delete jobs child 1/429",
];

/// The same for the accounting program, and what lasts.
const COUNTED_CRITICAL: [&str; 6] = [
    "counted-complete/update trainjobrecords status 1",
    "counted-restart/patch pods 1",
    "counted-delete/create trainjobrecords 1",
    "counted-suspend/get trainjobs job 1",
    "counted-deadline/update trainjobrecords status 2",
    "observed-delete/list pods 1",
];
const COUNTED_ERRORS: [&str; 10] = [
    "counted-complete/get trainjobrecords 1/404x3",
    "counted-ttl/update trainjobrecords status 2/409x3",
    "counted-restart/list pods 1/500",
    "counted-delete/patch pods 1/403x3",
    "counted-ttl/create trainjobrecords 1/500-ever",
    "counted-delete/update trainjobrecords status 1/hangs",
    "counted-restart/update trainjobrecords status 2/second",
    "counted-suspend/patch pods 1/403-ever",
    "counted-deadline/get trainjobs job 1/500x3",
    "observed-delete/create trainjobrecords 1/lost",
];

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_killed_or_refused_at_a_critical_call_ends_each_life_as_if_nothing_had_happened()
-> Result<()> {
    all_hold(Program::Operator, &CRITICAL, &ERRORS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retention_engine_killed_or_refused_at_a_critical_call_ends_each_life_as_if_nothing_had_happened()
-> Result<()> {
    all_hold(Program::Retention, &POLICY_CRITICAL, &POLICY_ERRORS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accounting_program_killed_or_refused_at_a_critical_call_counts_each_pod_once()
-> Result<()> {
    all_hold(Program::Accounting, &COUNTED_CRITICAL, &COUNTED_ERRORS).await
}

/// Sees that nothing is wrong in any of these cases, and that the call of each comes.
async fn all_hold(program: Program, critical: &[&str], errors: &[&str]) -> Result<()> {
    let moments = ["before", "between"];
    let kills = critical.iter().flat_map(|call| moments.map(|moment| format!("{call}/{moment}")));
    let cases: Vec<String> = kills.chain(errors.iter().map(|&error| error.to_owned())).collect();
    let expected = cases.len();
    let tell = |line: &str| say(line);
    let selection = Selection::Matching(cases);
    let plan = Plan { program, selection, kind: Kind::Single, lanes: LANES, time: None };
    let campaign = Box::pin(Campaign::run(&plan, &tell)).await?;
    ensure!(campaign.holds(), "{}", report(&campaign));
    let held = campaign.ran.iter().filter(|ran| ran.verdict == Verdict::Held).count();
    ensure!(held == expected, "only {held} of {expected} calls came:\n{}", report(&campaign));
    Ok(())
}
