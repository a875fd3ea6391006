//! `status`: a line for each TrainJob.

use std::io::Write;

use crate::{
    access::Access,
    arguments::{StatusArguments, StatusOutput},
    failure::Failure,
    read::{self, Selection},
    row::{self, Row},
    table,
};

/// Prints a line for each TrainJob that is meant: two lists, however many there are, and a question for the time.
///
/// # Errors
///
/// The API server refuses, does not answer, or has no TrainJob of one of the names.
pub async fn run(
    access: &Access,
    arguments: StatusArguments,
    mut out: impl Write,
) -> Result<(), Failure> {
    let namespace = (!arguments.all_namespaces).then(|| access.namespace.clone());
    let which = Selection {
        namespace: namespace.clone(),
        names: arguments.names,
        selector: arguments.selector,
    };
    let (jobs, now) = tokio::join!(read::train_jobs(&access.client, &which), access.now());
    let jobs = jobs?;
    let held = read::held(&access.client, namespace.as_deref(), &jobs).await?;
    let clock = arguments.deadline_clock.map(Into::into);
    let rows: Vec<Row> = jobs.iter().map(|job| Row::of(job, &held, clock, now)).collect();
    if arguments.output == Some(StatusOutput::Json) {
        return Ok(row::write_json(&rows, out)?);
    }
    if rows.is_empty() {
        let place = namespace.map_or_else(String::new, |name| format!(" in namespace {name}"));
        return Ok(writeln!(out, "No TrainJobs{place}.")?);
    }
    let width = (arguments.output != Some(StatusOutput::Wide)).then_some(table::WIDTH);
    Ok(out.write_all(table::render(&rows, arguments.all_namespaces, width).as_bytes())?)
}
