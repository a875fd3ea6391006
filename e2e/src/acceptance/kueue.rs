//! Kueue: 200 jobs with a deadline and a TTL pass a queue of 8 GPUs in which later ones preempt earlier ones.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use invariants::{Clock as JudgedClock, History, Job, State, Terms};
use kube::api::{ListParams, PostParams};
use serde_json::json;
use trainjob_api::conditions::{COMPLETE, FAILED};

use crate::testenv::fixtures::{COMPLETES, RUNS, noted_requests};
use crate::testenv::kueue::{Ask, Case, Clock, QueueOptions, Setting, job};
use crate::testenv::recorder::Recorder;
use crate::testenv::until::until_ok;

/// Jobs of low priority, all there from the beginning.
const LOW: usize = 150;
/// Jobs of high priority that come together: few, or they would take turns among themselves.
const WAVE: usize = 2;
/// How many waves come.
const WAVES: usize = 25;
/// How many jobs more have ended when the next wave comes.
const BETWEEN: usize = 3;
/// All jobs.
const JOBS: usize = LOW + WAVE * WAVES;
/// One in so many runs until its deadline.
const ENDLESS: usize = 5;
/// The deadline of those, in seconds from the last resume.
const SHORT: i64 = 6;
/// The deadline of the others.
const LONG: i64 = 3600;
/// The TTL of all.
const TTL: i64 = 3;
/// How many jobs are created at a time.
const AT_ONCE: usize = 16;
/// How long all of it may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(30);
/// How late what is due may be there, in milliseconds.
const ALLOWANCE: i64 = 30_000;

/// Shows all of it; `tell` hears of each step.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let setting = Setting::start(Clock::LastResume, json!({})).await?;
    tell("Kueue queues TrainJobs, with the RBAC of its release");
    let body = async |case: &Case<'_>| {
        let recorder = Recorder::start(case.tenant.client.clone()).await?;
        let begun = Instant::now();
        pass(case, &recorder, tell).await?;
        let seconds = begun.elapsed().as_secs();
        recorder.caught_up_in(&case.tenant.namespace).await?;
        let seen = Seen::read(&recorder, &case.tenant.namespace);
        tell(&format!("{} in {seconds} s", seen.judge()?));
        judge(&setting, &recorder, &case.tenant.namespace)
    };
    // On the heap: the future is large.
    Box::pin(setting.test("queue", QueueOptions::default(), body)).await?;
    tell(
        "no webhook refused a request of Kueue, no job and no Workload is left, no invariant was violated",
    );
    Ok(())
}

/// Creates all jobs and waits until nothing is left of them.
async fn pass(case: &Case<'_>, recorder: &Recorder, tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    submit(case, "low", 0..LOW).await?;
    tell(&format!("{LOW} jobs of low priority wait for 8 GPUs"));
    for wave in 0..WAVES {
        let first = LOW + wave * WAVE;
        ended(case, recorder, (wave + 1) * BETWEEN).await?;
        submit(case, "high", first..first + WAVE).await?;
    }
    tell(&format!("{} jobs of high priority have come, {WAVE} at a time", WAVE * WAVES));
    for share in 2..=4 {
        let count = JOBS * share / 4;
        ended(case, recorder, count).await?;
        tell(&format!("{count} jobs have ended"));
    }
    nothing_left(case).await
}

async fn submit(
    case: &Case<'_>,
    priority: &'static str,
    numbers: std::ops::Range<usize>,
) -> Result<()> {
    let labels = &case.queue.labels(priority);
    stream::iter(numbers)
        .map(|number| async move {
            let (runtime, deadline) =
                if is_endless(number) { (RUNS, SHORT) } else { (COMPLETES, LONG) };
            let gpus = [1, 2, 1, 4].get(number % 4).copied().unwrap_or(1);
            let ask = Ask { priority, nodes: 1, gpus };
            let both = json!({"activeDeadlineSeconds": deadline, "ttlSecondsAfterFinished": TTL});
            let job = job(&name(number), runtime, labels, ask, &both)?;
            let created = case.tenant.jobs.create(&PostParams::default(), &job).await;
            created.with_context(|| format!("job {number}"))?;
            anyhow::Ok(())
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

const fn is_endless(number: usize) -> bool {
    number % ENDLESS == ENDLESS - 1
}

fn name(number: usize) -> String {
    format!("job-{number}")
}

/// Waits until so many jobs have ended.
async fn ended(case: &Case<'_>, recorder: &Recorder, count: usize) -> Result<()> {
    until_ok(format!("{count} jobs have ended"), PATIENCE, || async {
        let ended = Seen::read(recorder, &case.tenant.namespace).ended();
        ensure!(ended >= count, "{ended} have");
        Ok(())
    })
    .await
}

async fn nothing_left(case: &Case<'_>) -> Result<()> {
    let (tenant, all) = (case.tenant, ListParams::default());
    until_ok("nothing is left", PATIENCE, || async {
        let left = [
            ("jobs", tenant.jobs.list_metadata(&all).await?.items.len()),
            ("Workloads", case.workloads.list_metadata(&all).await?.items.len()),
            ("JobSets", tenant.job_sets.list_metadata(&all).await?.items.len()),
            ("Pods", tenant.pods.list_metadata(&all).await?.items.len()),
        ];
        ensure!(left.iter().all(|(_, count)| *count == 0), "{left:?}");
        Ok(())
    })
    .await
}

/// What became of one job.
#[derive(Debug, Default)]
struct Course {
    versions: usize,
    /// Versions that lack what the job was created with.
    changed: usize,
    preemptions: usize,
    last: Option<Job>,
    gone: bool,
}

/// What became of all jobs, by name.
#[derive(Debug, Default)]
struct Seen(BTreeMap<String, Course>);

impl Seen {
    fn read(recorder: &Recorder, namespace: &str) -> Self {
        let mut seen = Self::default();
        for change in recorder.changes(Some(namespace)) {
            let State::TrainJob(job) = change.object.state else { continue };
            seen.add(change.object.name, job, change.gone);
        }
        seen
    }

    fn add(&mut self, name: String, job: Job, gone: bool) {
        let number = name.rsplit('-').next().and_then(|number| number.parse().ok());
        let deadline = if number.is_some_and(is_endless) { SHORT } else { LONG };
        let course = self.0.entry(name).or_default();
        let was_running = course.last.as_ref().is_some_and(|last| !last.suspend);
        course.versions += 1;
        course.changed += usize::from((job.deadline, job.ttl) != (Some(deadline), Some(TTL)));
        course.preemptions += usize::from(was_running && job.suspend);
        course.gone = gone;
        course.last = Some(job);
    }

    fn ended(&self) -> usize {
        self.0.values().filter(|course| course.end().is_some()).count()
    }

    /// What there is to tell, if every job had its end and kept its fields.
    fn judge(&self) -> Result<String> {
        ensure!(self.0.len() == JOBS, "{} jobs were seen", self.0.len());
        for number in 0..JOBS {
            let name = name(number);
            let course = self.0.get(&name).with_context(|| format!("{name} is lost"))?;
            let expected = if is_endless(number) { FAILED } else { COMPLETE };
            ensure!(course.end() == Some(expected), "{name} is not {expected}: {course:?}");
            ensure!(course.gone, "{name} is left");
            ensure!(course.changed == 0, "{name} lost its deadline or TTL: {course:?}");
        }
        let sum = |of: fn(&Course) -> usize| self.0.values().map(of).sum::<usize>();
        let (versions, preemptions) = (sum(|it| it.versions), sum(|it| it.preemptions));
        ensure!(preemptions > 0, "no job was preempted");
        Ok(format!(
            "{JOBS} jobs have ended as they should and are gone, {preemptions} preemptions; all \
             {versions} versions of them have their deadline and TTL;"
        ))
    }
}

impl Course {
    /// The condition that ended it.
    fn end(&self) -> Option<&'static str> {
        let job = self.last.as_ref()?;
        let is = |kind: &str| job.conditions.iter().any(|it| it.kind == kind && it.holds);
        [COMPLETE, FAILED].into_iter().find(|kind| is(kind))
    }
}

/// Judges the run by what must hold in every run.
fn judge(setting: &Setting, recorder: &Recorder, namespace: &str) -> Result<()> {
    let terms = Terms { clock: JudgedClock::LastResume, allowance: ALLOWANCE, ..Terms::default() };
    let mut requests = noted_requests(setting.world.cluster.folder(), &[])?;
    requests.retain(|request| request.namespace == namespace);
    let history = History {
        changes: recorder.changes(Some(namespace)),
        requests,
        terms,
        end: i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?,
    };
    let violations: Vec<String> =
        invariants::check(&history).iter().map(ToString::to_string).collect();
    ensure!(violations.is_empty(), "{}", violations.join("\n"));
    Ok(())
}
