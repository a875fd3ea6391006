//! A real Prometheus looks on while the programs of a release live through a bad minute: what dashboards and
//! alerts make of it.

mod accounting;
mod alerts;
mod companions;
mod dashboards;
mod faults;
mod numbers;
mod prometheus;
mod refusals;
mod replicas;
mod retention;
mod scenario;
mod site;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::testenv::release::Release;
use crate::testenv::workspace;
use alerts::Suite;
use companions::Companions;
use prometheus::{Prometheus, Span, now};
use scenario::Scenario;

/// The tests of the alerts.
const TESTS: &str = "e2e/promtool";
const ALERTS: [&str; 3] = [
    "charts/trainjob-operator/files/alerts.yaml",
    "charts/trainjob-operator/files/retention-alerts.yaml",
    "charts/trainjob-operator/files/accounting-alerts.yaml",
];
const DRAW: &str = "panels.py";

/// Shows all of it; `tell` hears of each step, and where the drawings are.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let folder = empty_folder()?;
    operator(&folder, tell).await?;
    let release = companions::install().await?;
    Box::pin(companions(&release, &folder, tell)).await?;
    let drawn = release.tools.python(DRAW, &[&folder]).await?;
    drawn.lines().for_each(|picture| tell(&format!("drawn: {picture}")));
    Ok(())
}

/// Operator and webhook, of two replicas each.
async fn operator(folder: &Path, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let release = Release::with_runtimes(&[]).await?;
    let program = release.tools.prometheus()?;
    check_rules(&release, (&program, folder), tell).await?;
    let rules = alerts::OPERATOR.hurried()?;
    let prometheus = Prometheus::start(&release.cluster, &program, &rules).await?;
    let begun = now()?;
    let mut scenario = Scenario::start(&release, &prometheus).await?;
    tell(
        "two operators and two webhooks run with what the chart gives them, and Prometheus scrapes them",
    );
    Box::pin(scenario.play(tell)).await?;
    have_something_to_compare(&alerts::OPERATOR, &prometheus, tell).await?;
    let span = dashboards::span(begun, now()?);
    fill(&prometheus, &dashboards::OPERATOR, (span, folder), tell).await?;
    scenario.end().await?;
    no_others_fired(&alerts::OPERATOR, &prometheus, tell).await
}

/// The accounting program and the retention engine.
async fn companions(release: &Release, folder: &Path, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let suite = &alerts::COMPANIONS;
    let program = release.tools.prometheus()?;
    let prometheus = Prometheus::start(&release.cluster, &program, &suite.hurried()?).await?;
    let begun = now()?;
    let mut companions = Box::pin(Companions::start(release, &prometheus)).await?;
    Box::pin(companions.play(tell)).await?;
    have_something_to_compare(suite, &prometheus, tell).await?;
    let span = dashboards::span(begun, now()?);
    let files = [dashboards::GPU_HOURS, dashboards::RETENTION];
    fill(&prometheus, &files, (span, folder), tell).await?;
    companions.agree_with_the_records(span, tell).await?;
    companions.end().await?;
    no_others_fired(suite, &prometheus, tell).await
}

async fn have_something_to_compare(
    suite: &Suite,
    prometheus: &Prometheus,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    let alerts = suite.have_something_to_compare(prometheus).await?;
    tell(&format!("{alerts} alerts: every expression is evaluated, and has something to compare"));
    Ok(())
}

async fn fill(
    prometheus: &Prometheus,
    files: &[&str],
    (span, folder): (Span, &Path),
    tell: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    for file in files {
        let count = dashboards::fill(prometheus, file, span, folder).await?;
        let (queries, with_data) = (count.queries, count.with_data);
        tell(&format!("{file}: {with_data} of {queries} queries have data, none fails"));
    }
    Ok(())
}

async fn no_others_fired(
    suite: &Suite,
    prometheus: &Prometheus,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    suite.no_others_fired(prometheus).await?;
    tell(&format!(
        "everything stopped: {} alerts have fired in all, as they should, and no others",
        alerts::fired(prometheus).await?.len()
    ));
    Ok(())
}

/// Lets promtool check the rules and run their tests.
async fn check_rules(
    release: &Release,
    (prometheus, folder): (&Path, &Path),
    tell: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    let promtool = prometheus.with_file_name("promtool");
    let mut tests = fs::read_dir(workspace::path(TESTS))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>>>()?;
    tests.sort();
    let rules = ALERTS.map(workspace::path).to_vec();
    for (command, files) in [("check", rules), ("test", tests)] {
        let arguments = [PathBuf::from(command), PathBuf::from("rules")].into_iter().chain(files);
        release.tools.program(&promtool, &arguments.collect::<Vec<_>>()).await?;
    }
    tell("promtool accepts the alerts, and their tests pass");
    let dashboards = dashboards::files();
    let read = release.tools.python("dashboards.py", &dashboards).await?;
    tell(read.trim());
    let count = numbers::check(release, &promtool, folder).await?;
    tell(&format!(
        "{count} numbers of alerts are values of the chart, and promtool accepts others"
    ));
    Ok(())
}

/// `acceptance/monitoring` in cargo's target folder, with nothing in it.
fn empty_folder() -> Result<PathBuf> {
    let folder = workspace::output("acceptance/monitoring")?;
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
