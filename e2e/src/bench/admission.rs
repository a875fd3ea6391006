//! `admission`: what a review costs, beside a server that reads it and says yes.
//!
//! The reviews are those that the API server sends for a TrainJob that is created and resumed, recorded
//! at the beginning. They are sent straight to either server, over TLS on kept connections. At the end it is sent
//! usual ones beside [hostile] ones.

mod connection;
mod hostile;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use trainjob_api::TrainJob;

use self::connection::{Connection, Recorded, connect, one};
use self::hostile::Hostile;
use super::Size;
use super::figures::{Spread, Times, float};
use super::progress::Progress;
use super::report::{Bar, Bound, Report, row};
use super::usage::{self, megabytes};
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::fixtures::train_job;
use crate::testenv::ports::Port;
use crate::testenv::process::Process;
use crate::testenv::until::until_ok;
use crate::testenv::webhook::{Webhook, WebhookOptions, register, unregister};
use crate::testenv::workspace;

/// Reviews of one round of either server.
const REVIEWS: usize = 50_000;
/// Connections, each with one review at a time.
const CONNECTIONS: usize = 32;
/// Reviews before what is measured.
const WARM_UP: usize = 2_000;
/// Sizes that the bars are about, in bytes.
const SIZES: [usize; 2] = [4_096, 10_240];

/// What came of one round of one server.
#[derive(Debug, Clone, Copy)]
struct Measured {
    times: Times,
    /// Microseconds of processor time for each review.
    cpu: f64,
    refused: usize,
}

pub(super) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    progress.step("starting a control plane", 0);
    let cluster = Cluster::start(Options { crds: true, ..Options::bare() }).await?;
    cluster.apply_yaml("default", &workspace::read(RUNTIME)?).await?;
    let webhook = Webhook::start(&cluster, WebhookOptions::default()).await?;
    webhook.wait_ready().await?;
    let recorded = record(&cluster, &webhook, progress).await?;
    let reviews = size.jobs.unwrap_or(REVIEWS);

    let (authority, certificates) = webhook.authority().context("its certificate is from files")?;
    let connector = connector(&authority.pem())?;
    let empty = Empty::start(&cluster, certificates, None).await?;
    let mut rounds = Vec::new();
    for _ in 0..size.rounds {
        progress.step("reviews for the empty server", reviews);
        let nothing = measure(&connector, &empty.address, empty.id(), &recorded, reviews).await?;
        progress.step("reviews for the admission server", reviews);
        let ours =
            measure(&connector, &webhook.address(), webhook.process().id(), &recorded, reviews)
                .await?;
        rounds.push((ours, nothing));
    }
    let peak = megabytes(usage::of(webhook.process().id())?.peak);
    progress.step("usual reviews beside hostile ones", 0);
    let time = Duration::from_secs(size.seconds.try_into()?);
    let hostile = hostile::run(&connector, &webhook.address(), &recorded, time).await?;
    let all = usage::of(webhook.process().id())?.peak;
    let mut report = report(size, reviews, &recorded, &rounds, peak);
    add_hostile(&mut report, &hostile, all);
    Ok(report)
}

/// The memory limit of the chart, in bytes.
const MEMORY_LIMIT: u64 = 256 * 1024 * 1024;

/// Adds what came of usual reviews beside hostile ones, and the most memory until then.
fn add_hostile(report: &mut Report, hostile: &Hostile, peak: u64) {
    let Hostile { times, usual, failed, sent, judged } = *hostile;
    let (p99, megabytes) = (times.p99, megabytes(peak));
    report.notes.push(format!(
        "{usual} reviews beside {sent} hostile ones of 3 MB, {judged} of which were judged: p50 {:.2}, p99 {p99:.2} ms; \
         memory at most {megabytes:.1} MB",
        times.p50
    ));
    let over = peak.saturating_sub(MEMORY_LIMIT).div_ceil(1024);
    report.bars.extend([
        Bar::measured("p99 in ms beside hostile reviews", p99, Bound::AtMost(100.0)),
        Bar::none(
            "KiB of memory over the chart's limit",
            usize::try_from(over).unwrap_or(usize::MAX),
        ),
        Bar::none("reviews without their answer beside hostile ones", failed),
        Bar::none("rounds without hostile reviews", usize::from(judged == 0)),
    ]);
    if let Some(figures) = report.figures.as_object_mut() {
        figures.insert("hostile_p99_ms".into(), json!(p99));
        figures.insert("hostile_peak_mb".into(), json!(megabytes));
        figures.insert("hostile_reviews".into(), json!([sent, judged]));
    }
}

const RUNTIME: &str = "examples/runtimes/torch-distributed.yaml";

/// The empty server.
struct Empty {
    address: String,
    process: Arc<Process>,
    _port: Port,
}

impl Empty {
    async fn start(cluster: &Cluster, certificates: &Path, records: Option<&Path>) -> Result<Self> {
        let binary = tokio::task::spawn_blocking(workspace::empty_webhook).await??;
        let port = Port::take()?;
        let address = port.address();
        let mut arguments = vec![address.clone(), certificates.display().to_string()];
        arguments.extend(records.map(|folder| folder.display().to_string()));
        let name = if records.is_some() { "empty-webhook-recorder" } else { "empty-webhook" };
        let process = Arc::new(cluster.spawn(name, &binary, &arguments, &[])?);
        until_ok("the empty server listens", Duration::from_secs(10), || async {
            Ok(TcpStream::connect(&address).await?)
        })
        .await?;
        Ok(Self { address, process, _port: port })
    }

    fn id(&self) -> u32 {
        self.process.id()
    }
}

/// What the API server sends for a TrainJob that is created, and for one that is resumed.
async fn record(
    cluster: &Cluster,
    webhook: &Webhook,
    progress: &Progress,
) -> Result<Vec<Recorded>> {
    progress.step("recording reviews", 0);
    let folder = cluster.folder().join("reviews");
    fs::create_dir(&folder)?;
    let (authority, certificates) = webhook.authority().context("its certificate is from files")?;
    let recorder = Empty::start(cluster, certificates, Some(&folder)).await?;
    let client = cluster.client().await?;
    register(&client, &recorder.address, Some(&authority.pem())).await?;
    let jobs: Api<TrainJob> = Api::namespaced(client.clone(), "default");
    for (number, length) in SIZES.into_iter().enumerate() {
        let name = format!("recorded-{number}");
        let mut job = job(&name, 0);
        // The second is sent twice in a review of an update.
        let length = length / (number + 1);
        let bare = serde_json::to_string(&job)?.len() + ENVELOPE;
        job = self::job(&name, length.saturating_sub(bare));
        let job: TrainJob = serde_json::from_value(job)?;
        until_ok("the API server asks the recorder", Duration::from_secs(10), || async {
            jobs.create(&PostParams::default(), &job).await?;
            let known = fs::read_dir(&folder)?.count();
            if known == 0 {
                jobs.delete(&name, &DeleteParams::default()).await?;
            }
            ensure!(known > 0, "nothing is recorded yet");
            Ok(())
        })
        .await?;
        let resume = json!({"spec": {"suspend": false}});
        jobs.patch(&name, &PatchParams::default(), &Patch::Merge(resume)).await?;
    }
    recorder.process.kill();
    unregister(&client).await?;
    read(&folder)
}

/// About what a review has beside its objects, and an object beside what its author wrote.
const ENVELOPE: usize = 2_000;

/// A TrainJob whose variables are so long altogether.
fn job(name: &str, padding: usize) -> Value {
    const ONE: usize = 80;
    let variables: Vec<_> = (0..padding / ONE)
        .map(|number| json!({"name": format!("SETTING_{number:04}"), "value": "v".repeat(40)}))
        .collect();
    let spec = json!({
        "suspend": true,
        "trainer": {"numNodes": 4, "env": variables},
        "activeDeadlineSeconds": 3_600,
        "ttlSecondsAfterFinished": 3_600,
    });
    train_job(name, "torch-distributed", &spec)
}

/// Of what was recorded the reviews of the first creation and of the second update.
fn read(folder: &Path) -> Result<Vec<Recorded>> {
    let mut recorded = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        let name = file.file_name().into_string().ok().context("a name that is not UTF-8")?;
        let (_, path) = name.split_once('.').context("a name without a path")?;
        let body = fs::read(file.path())?;
        let review: Value = serde_json::from_slice(&body)?;
        let request = |field: &str| review.pointer(&format!("/request/{field}")).cloned();
        let wanted =
            [(json!("CREATE"), json!("recorded-0")), (json!("UPDATE"), json!("recorded-1"))];
        let found = (request("operation"), request("name"));
        if wanted.into_iter().any(|(operation, name)| found == (Some(operation), Some(name))) {
            recorded.push(Recorded { path: format!("/{path}"), body: body.into() });
        }
    }
    recorded.sort_by_key(|it| (it.body.len(), it.path.clone()));
    ensure!(recorded.len() >= 4, "not everything was recorded: {}", recorded.len());
    Ok(recorded)
}

fn connector(authority: &str) -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes())?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

async fn measure(
    connector: &TlsConnector,
    address: &str,
    id: u32,
    recorded: &[Recorded],
    reviews: usize,
) -> Result<Measured> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(connect(connector, address).await?);
    }
    let connections = send(connections, recorded, WARM_UP).await?.0;
    let before = usage::of(id)?.cpu;
    let (_, answers) = send(connections, recorded, reviews).await?;
    let cpu = usage::of(id)?.cpu.saturating_sub(before).as_secs_f64() * 1e6;
    let cpu = cpu / float(answers.len());
    let refused = answers.iter().filter(|(_, allowed)| !allowed).count();
    let times = Times::of(answers.into_iter().map(|(took, _)| took.as_secs_f64() * 1e3));
    Ok(Measured { times, cpu, refused })
}

/// Sends so many reviews, in turn, on all connections at once; returns how long each took and whether
/// the answer was yes.
async fn send(
    connections: Vec<Connection>,
    recorded: &[Recorded],
    reviews: usize,
) -> Result<(Vec<Connection>, Vec<(Duration, bool)>)> {
    let each = reviews / connections.len();
    let mut tasks = JoinSet::new();
    for (offset, mut connection) in connections.into_iter().enumerate() {
        let recorded = recorded.to_vec();
        tasks.spawn(async move {
            let mut answers = Vec::with_capacity(each);
            for review in recorded.iter().cycle().skip(offset).take(each) {
                let (took, allowed) = one(&mut connection, review).await?;
                answers.push((took, allowed.context("a review was not judged")?));
            }
            anyhow::Ok((connection, answers))
        });
    }
    let (mut connections, mut all) = (Vec::new(), Vec::new());
    while let Some(done) = tasks.join_next().await {
        let (connection, answers) = done??;
        connections.push(connection);
        all.extend(answers);
    }
    Ok((connections, all))
}

fn report(
    size: Size,
    reviews: usize,
    recorded: &[Recorded],
    rounds: &[(Measured, Measured)],
    peak: f64,
) -> Report {
    let spread = |of: &dyn Fn(&(Measured, Measured)) -> f64| Spread::of(rounds.iter().map(of));
    let cells = |name: &str, side: fn(&(Measured, Measured)) -> Measured| {
        let each = |pick: fn(&Measured) -> f64| spread(&|round| pick(&side(round)));
        let [p50, p99] = [each(|it| it.times.p50), each(|it| it.times.p99)];
        let cpu = each(|it| it.cpu);
        vec![name.to_owned(), format!("{p50:.2}"), format!("{p99:.2}"), format!("{cpu:.0}")]
    };
    let p99 = spread(&|(ours, nothing)| ours.times.p99 / nothing.times.p99);
    let cpu = spread(&|(ours, nothing)| ours.cpu / nothing.cpu);
    let refused = rounds.iter().map(|(ours, _)| ours.refused).sum();
    let sizes: Vec<_> = recorded.iter().map(|it| it.body.len()).collect();
    Report {
        bench: "admission",
        title: format!(
            "{reviews} reviews of {sizes:?} bytes on {CONNECTIONS} connections; {} rounds, median (range)",
            size.rounds
        ),
        table: vec![
            row([&"", &"p50 ms", &"p99 ms", &"CPU us a review"]),
            cells("admission server", |round| round.0),
            cells("empty server", |round| round.1),
        ],
        notes: vec![format!(
            "admission / empty: p99 {p99:.2}, CPU {cpu:.2}; memory at most {peak:.1} MB"
        )],
        bars: vec![
            Bar::measured("p99 / empty server", p99.median, Bound::AtMost(3.0)),
            Bar::measured("CPU / empty server", cpu.median, Bound::AtMost(2.0)),
            Bar::measured("memory in MB", peak, Bound::AtMost(40.0)),
            Bar::none("reviews that were refused", refused),
        ],
        figures: json!({
            "reviews": reviews, "rounds": size.rounds, "bytes": sizes, "p99_ratio": p99,
            "cpu_ratio": cpu, "peak_mb": peak,
            "cpu_us": spread(&|round| round.0.cpu), "empty_cpu_us": spread(&|round| round.1.cpu),
        }),
    }
}
