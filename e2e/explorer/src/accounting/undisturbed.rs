//! The record of a run without accidents (A11).

use trainjob_accounting_core::{
    job::{Job, Suspension},
    ledger::Ledger,
    pod::Pod,
    settings::Settings,
    share::share,
    verdict::Order,
};
use trainjob_api::{
    lifecycle::v1alpha1::{record::TrainJobRecordStatus, record_words::Outcome},
    time::Timestamp,
};

use super::history::History;

/// What a run without accidents ends in: each Pod is counted, as it was at its end.
pub(super) fn undisturbed(pods: &[History]) -> TrainJobRecordStatus {
    let settings = Settings::default();
    let mut ledger = Ledger::new(TrainJobRecordStatus::default(), &settings);
    for pod in pods.iter().map(|history| &history.last) {
        let job = Job::Running { suspension: Suspension::Never };
        // Its last version is released already.
        let pod = Pod { finalizer: true, ..pod.clone() };
        ledger.count(&share(&pod, Order::Unknown, &job, Timestamp(i64::MAX)));
    }
    ledger.finish(Outcome::Complete)
}

/// All of a record that says what was counted.
pub(super) fn comparable(record: &TrainJobRecordStatus) -> TrainJobRecordStatus {
    TrainJobRecordStatus {
        started_at: record.started_at.clone(),
        ended_at: record.ended_at.clone(),
        totals: record.totals.clone(),
        job_sets: record.job_sets.clone(),
        causes: record.causes.clone(),
        replicated_jobs: record.replicated_jobs.clone(),
        exit_codes: record.exit_codes.clone(),
        first_failures: record.first_failures.clone(),
        lost: record.lost.clone(),
        inexact: record.inexact.clone(),
        ..TrainJobRecordStatus::default()
    }
}
