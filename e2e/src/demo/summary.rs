//! What is said at the end.

use crate::demo::clock::{SignedDuration, short};
use crate::demo::lateness::{Punctuality, TARGET, of_deadline, of_deletion};
use crate::demo::model::Model;
use crate::demo::scenario::Scenario;
use crate::demo::screen::WIDTH;
use crate::demo::table::wrapped;
use crate::demo::verdict::{Worst, broken, start_after_runtime};

/// Where the text of an entry begins.
const INDENT: usize = 25;

/// The summary of a demo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its lines.
    pub lines: Vec<String>,
    /// Whether every promise was kept and nothing is left behind.
    pub met: bool,
}

impl Summary {
    /// The summary of what was seen, and of what was `left` behind.
    #[must_use]
    pub fn of(model: &Model, left: &[String]) -> Self {
        let mut lines = vec![String::new(), "Expectations".to_owned()];
        let mut kept = 0;
        let mut all = 0;
        for (example, scenario) in model.scenarios() {
            let complaints = broken(model, example, scenario);
            let verdict = if complaints.is_empty() { "met" } else { "NOT MET" };
            lines.extend(entry(verdict, example.job, example.promise));
            lines.extend(complaints.iter().flat_map(|it| entry("", "", &format!("but {it}"))));
            kept += usize::from(complaints.is_empty());
            all += 1;
        }
        lines.push(String::new());
        lines.push(format!("Lateness, from due to seen by a watch; target {}", short(TARGET)));
        lines.push(lateness("deadline", model, of_deadline));
        lines.push(lateness("TTL deletion", model, of_deletion));
        let longest = |of: fn(&Model, &Scenario) -> Option<SignedDuration>| {
            model.scenarios().filter_map(|(_, scenario)| of(model, scenario)).max()
        };
        lines.extend(longest(release).map(|took| {
            measure("", "release", &short(took), "from Failed to neither JobSet nor running Pod")
        }));
        lines.extend(
            longest(start_after_runtime).map(|took| {
                measure("", "start", &short(took), "from its late runtime to the JobSet")
            }),
        );
        lines.push(String::new());
        let left_behind = if left.is_empty() { "nothing".to_owned() } else { left.join(", ") };
        lines.push(format!("Left behind: {left_behind}."));
        lines.push(format!(
            "GPUs: at most {} held at a time, for {:.0} GPU-seconds in all.",
            model.most_gpus(),
            model.gpu_seconds()
        ));
        lines.push(format!("Expectations met: {kept} of {all}."));
        Self { lines, met: kept == all && left.is_empty() }
    }
}

fn entry(verdict: &str, what: &str, text: &str) -> Vec<String> {
    wrapped(&format!("  {verdict:<7}  {what:<12}  {text}"), WIDTH, INDENT)
}

fn lateness(what: &str, model: &Model, of: fn(&Scenario) -> Option<Punctuality>) -> String {
    let Some(worst) = Worst::of(model.scenarios().filter_map(|(_, scenario)| of(scenario))) else {
        return measure("", what, "-", "there was none");
    };
    let verdict = if worst.is_met() { "met" } else { "MISSED" };
    let (by, how) = match worst.worst {
        Punctuality::Late(by) => (by, "late"),
        Punctuality::Early(by) => (by, "EARLY"),
    };
    let of_how_many = match worst.count {
        1 => how.to_owned(),
        count => format!("{how}, the worst of {count}"),
    };
    measure(verdict, what, &short(by), &of_how_many)
}

fn measure(verdict: &str, what: &str, value: &str, remark: &str) -> String {
    format!("  {verdict:<7}  {what:<12}  {value:>7}  {remark}")
}

/// How long a job that its deadline failed went on holding something.
fn release(_: &Model, scenario: &Scenario) -> Option<SignedDuration> {
    Some(scenario.released_at?.duration_since(scenario.finished.as_ref()?.seen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::seen::{Change, Seen};
    use crate::demo::testing::{at, job};

    #[test]
    fn summary_names_unmet_promises_and_leftover_objects() {
        let mut model = Model::default();
        let complete = job(|job| {
            job.spec.ttl_seconds_after_finished = Some(10);
            job.finish("Complete", "AllJobsCompleted", 10);
        });
        for (seconds, change) in [(10.5, complete), (20.26, Change::JobGone)] {
            model.see(&Seen { at: at(seconds), job: "completes".to_owned(), change });
        }
        let summary = Summary::of(&model, &["Pod a".to_owned()]);
        assert!(!summary.met);
        for line in [
            "  met      completes     completed, and its time to live deleted it",
            "  NOT MET  ttl-zero      was seen Complete, and deleted at once",
            "                         but it did not finish: -",
            "           deadline            -  there was none",
            "  MISSED   TTL deletion   260 ms  late",
            "Left behind: Pod a.",
            "Expectations met: 1 of 6.",
        ] {
            assert!(summary.lines.iter().any(|it| it == line), "{line}: {:#?}", summary.lines);
        }
    }
}
