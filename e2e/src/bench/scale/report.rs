//! What is said of `scale` and of `failover`.

use serde_json::{Value, json};

use super::super::Size;
use super::super::report::{Bar, Bound, Report, row};
use super::super::rig::store;
use super::Resident;
use super::cold::{ColdStart, Listed};
use super::hostile::Hostile;
use super::judged::TakeOver;
use super::plan::Ending;
use super::rest::{AtRest, Churn};
use super::take_over::LEASE;

/// What the operator may keep of manifests by default, in megabytes, and what it may need beside that.
const BUDGET_MB: f64 = 16.777_216;
const BESIDE_MB: f64 = 40.0;

/// A report that grows part by part.
#[derive(Default)]
struct Parts {
    table: Vec<Vec<String>>,
    notes: Vec<String>,
    bars: Vec<Bar>,
}

impl Parts {
    fn at_most(&mut self, what: impl Into<String>, value: f64, most: f64) {
        self.bars.push(Bar::measured(what, value, Bound::AtMost(most)));
    }

    fn row(&mut self, what: &str, value: f64, unit: &str) {
        self.table.push(row([&what, &format!("{value:.1}"), &unit]));
    }

    fn cold(&mut self, listed: &Listed, cold: &ColdStart) {
        self.row("raw LIST of TrainJobs", listed.train_jobs_ms, "ms");
        self.row("raw LIST of JobSets, at the same time", listed.job_sets_ms, "ms");
        self.row("cold start until ready", cold.ready_ms, "ms");
        self.row("first page to first overdue TTL deletion", cold.first_deletion_ms, "ms");
        self.row("first page to the last of 200", cold.last_deletion_ms, "ms");
        self.notes.push(format!("requests at the cold start: {:?}", cold.calls));
        self.at_most("cold start / raw LIST", cold.ready_ms / listed.whole_ms(), 1.2);
        self.at_most("ms from the first page to the first deletion", cold.first_deletion_ms, 300.0);
        self.bars.push(Bar::none("overdue TrainJobs that were not deleted", cold.missing));
    }

    fn at_rest(&mut self, at_rest: &AtRest) {
        self.row("memory at rest (PSS)", at_rest.pss_mb, "MB");
        self.row("most memory", at_rest.peak_mb, "MB");
        self.row("CPU at rest", at_rest.cpu_ms_per_second, "ms/s");
        self.row("requests at rest", at_rest.calls_per_second, "1/s");
        self.notes.push(format!("requests at rest: {:?}", at_rest.calls));
        self.at_most("MB at rest", at_rest.pss_mb, 80.0);
        self.at_most("most MB", at_rest.peak_mb, 112.0);
        self.at_most("requests a second at rest", at_rest.calls_per_second, 1.0);
        self.at_most("ms CPU a second at rest", at_rest.cpu_ms_per_second, 1.0);
    }

    fn churn(&mut self, churn: &Churn) {
        self.row("statuses of JobSets, as fast as possible", churn.full_rate, "1/s");
        self.row(&format!("and for {} s", churn.seconds), churn.rate, "1/s");
        self.row("memory before that", churn.before_mb, "MB");
        self.row("memory after that", churn.after_mb, "MB");
        self.row("most memory until then", churn.peak_mb, "MB");
        self.at_most("MB more after churn", churn.after_mb - churn.before_mb, 2.0);
    }

    fn take_over(&mut self, taken: &TakeOver) {
        let name = taken.ending.name();
        self.row(&format!("{name}: until the Lease is taken"), taken.lease_ms, "ms");
        self.row(&format!("{name}: first overdue action after that"), taken.overdue_ms, "ms");
        self.row(&format!("{name}: JobSet of a new job"), taken.new_ms, "ms");
        self.row(&format!("{name}: deadlines late, p50"), taken.deadlines.p50, "ms");
        self.row(&format!("{name}: deadlines late, last"), taken.deadlines.last, "ms");
        let lease = match taken.ending {
            Ending::Terminated => 50.0,
            #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
            Ending::Killed | Ending::Paused => (LEASE as f64 + 1.0) * 1e3,
        };
        self.at_most(format!("{name}: ms until the Lease is taken"), taken.lease_ms, lease);
        self.at_most(format!("{name}: ms to the first overdue action"), taken.overdue_ms, 500.0);
        self.at_most(format!("{name}: ms to the JobSet of a new job"), taken.new_ms, 1_000.0);
        self.at_most(format!("{name}: ms a deadline is late"), taken.deadlines.last, 500.0);
        let mut none =
            |what: &str, count| self.bars.push(Bar::none(format!("{name}: {what}"), count));
        none("actions before they were due", taken.early);
        none("TTLs and deadlines without an action", taken.missing);
        none("GETs of the new leader in 30 s", taken.reads);
        none("writes of the old leader after it was resumed", taken.late_writes);
        none("wrong exit codes", usize::from(!taken.exits_as_it_must()));
    }

    fn hostile(&mut self, hostile: &Hostile) {
        let jobs = hostile.jobs;
        self.row(&format!("{jobs} TrainJobs of 1 MB: most memory"), hostile.peak_mb, "MB");
        self.row("at rest (PSS)", hostile.pss_mb, "MB");
        self.row("after a restart: most memory", hostile.restarted_peak_mb, "MB");
        self.row("at rest (PSS)", hostile.restarted_pss_mb, "MB");
        self.row("ready after", hostile.ready_ms, "ms");
        let most = BUDGET_MB + BESIDE_MB;
        self.at_most("most MB with TrainJobs of 1 MB", hostile.peak_mb, most);
        self.at_most("most MB after a restart with them", hostile.restarted_peak_mb, most);
        self.bars.push(Bar::none("TrainJobs of 1 MB without a JobSet", hostile.missing));
    }

    fn resident(&mut self, resident: &Resident) {
        self.cold(&resident.listed, &resident.cold);
        resident.at_rest.iter().for_each(|at_rest| self.at_rest(at_rest));
        resident.churn.iter().for_each(|churn| self.churn(churn));
        resident.take_overs.iter().for_each(|taken| self.take_over(taken));
    }

    fn report(self, bench: &'static str, title: String, figures: Value) -> Report {
        let Self { table, notes, bars } = self;
        Report { bench, title, table, notes, bars, figures }
    }
}

fn figures(resident: &Resident) -> Value {
    let Resident { jobs, listed, cold, at_rest, churn, take_overs } = resident;
    let take_overs: Vec<Value> = take_overs.iter().map(TakeOver::json).collect();
    json!({
        "jobs": jobs, "raw_list": listed, "cold": cold, "at_rest": at_rest, "churn": churn,
        "take_overs": take_overs,
    })
}

/// The report of `scale`.
pub(super) fn of_scale(
    size: Size,
    resident: Option<&Resident>,
    hostile: Option<&Hostile>,
) -> Report {
    let mut parts = Parts::default();
    let mut title = Vec::new();
    if let Some(resident) = resident {
        let jobs = resident.jobs;
        title.push(format!(
            "{jobs} finished TrainJobs, {jobs} unfinished ones, half of them suspended"
        ));
        parts.resident(resident);
    }
    if let Some(hostile) = hostile {
        title.push(format!("{} TrainJobs of a megabyte", hostile.jobs));
        parts.hostile(hostile);
    }
    title.push(store(size.fsync).to_owned());
    let figures =
        json!({"fsync": size.fsync, "resident": resident.map(figures), "hostile": hostile});
    parts.report("scale", title.join("; "), figures)
}

/// The report of `failover`.
pub(super) fn of_failover(size: Size, resident: &Resident) -> Report {
    let mut parts = Parts::default();
    resident.take_overs.iter().for_each(|taken| parts.take_over(taken));
    let jobs = resident.jobs;
    let title = format!(
        "take-overs with {jobs} finished and {jobs} unfinished TrainJobs; {}",
        store(size.fsync)
    );
    let figures = json!({"fsync": size.fsync, "resident": figures(resident)});
    parts.report("failover", title, figures)
}
