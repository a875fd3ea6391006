//! The admission server beside hostile reviews: of nearly three megabytes each, and as many as one core can send.
//!
//! They come from one thread that sends the next as soon as the last is answered or refused, on several connections.
//! Usual reviews come beside them at a steady pace, as from an API server that has little to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_rustls::TlsConnector;

use super::super::figures::Times;
use super::connection::{Recorded, connect, one};

/// How long a hostile review may be: what the API server accepts of a request, less what is around the object.
const LENGTH: usize = 3 * 1024 * 1024 - 16 * 1024;
/// Parts of an object that are read at most, less those of a usual one; more are refused before they are read.
const PARTS: usize = 19_000;
/// Connections of the hostile thread.
const HOSTILE: usize = 16;
/// How long the first hostile review is waited for. A server that is built without optimisation takes seconds to judge one
/// on a busy machine.
const FIRST_JUDGED: Duration = Duration::from_mins(1);
/// Connections for usual reviews, and the time from one review to the next on each.
const USUAL: (usize, Duration) = (4, Duration::from_millis(20));

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hostile {
    /// How long usual reviews took, in milliseconds.
    pub(super) times: Times,
    /// Usual reviews that were sent.
    pub(super) usual: usize,
    /// Usual reviews that got no answer, or another one than they should.
    pub(super) failed: usize,
    /// Hostile reviews that were sent.
    pub(super) sent: usize,
    /// Hostile reviews that were judged: the others were refused, or their connection was closed.
    pub(super) judged: usize,
}

/// Sends usual reviews with hostile ones beside them, for so long and until a hostile one has been judged.
pub(super) async fn run(
    connector: &TlsConnector,
    address: &str,
    recorded: &[Recorded],
    time: Duration,
) -> Result<Hostile> {
    let creation = recorded.iter().find(|it| it.path.contains("validate"));
    let hostile = hostile(creation.context("no validation was recorded")?)?;
    let counts = Arc::new(Counts::default());
    let attack = {
        let (connector, address) = (connector.clone(), address.to_owned());
        let counts = Arc::clone(&counts);
        std::thread::Builder::new()
            .name("hostile".to_owned())
            .spawn(move || attack(&connector, &address, &hostile, &counts))?
    };
    let usual = usual(connector, address, recorded, time, &counts).await;
    counts.over.store(true, Ordering::Relaxed);
    let attack = tokio::task::spawn_blocking(move || attack.join()).await?;
    attack.ok().context("the hostile thread panicked")??;
    let (sent, judged) =
        (counts.sent.load(Ordering::Relaxed), counts.judged.load(Ordering::Relaxed));
    let answers = usual?;
    let failed = answers.iter().filter(|answer| answer.is_none()).count();
    let times = answers.iter().flatten().map(|took| took.as_secs_f64() * 1e3);
    Ok(Hostile { times: Times::of(times), usual: answers.len(), failed, sent, judged })
}

/// Hostile reviews, and whether no more are to be sent.
#[derive(Debug, Default)]
struct Counts {
    sent: AtomicUsize,
    judged: AtomicUsize,
    over: AtomicBool,
}

impl Counts {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// The same review with as many variables as are read, which are so long that it is as long as it may be.
fn hostile(review: &Recorded) -> Result<Recorded> {
    let mut body: Value = serde_json::from_slice(&review.body)?;
    let trainer = body.pointer_mut("/request/object/spec/trainer").context("no trainer")?;
    let bare = r#"{"name":"SETTING_00000","value":""},"#.len();
    let value = "v".repeat((LENGTH / PARTS).saturating_sub(bare));
    let variables: Vec<_> = (0..PARTS)
        .map(|number| json!({"name": format!("SETTING_{number:05}"), "value": value}))
        .collect();
    trainer
        .as_object_mut()
        .context("the trainer is no object")?
        .insert("env".into(), variables.into());
    Ok(Recorded { path: review.path.clone(), body: body.to_string().into() })
}

/// Sends hostile reviews from this thread until it is over.
fn attack(
    connector: &TlsConnector,
    address: &str,
    hostile: &Recorded,
    counts: &Counts,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let sender = || async {
            while !counts.is_over() {
                // A server that refuses a body before it has read it closes the connection.
                let Ok(mut connection) = connect(connector, address).await else { continue };
                while !counts.is_over() {
                    counts.sent.fetch_add(1, Ordering::Relaxed);
                    let Ok((_, allowed)) = one(&mut connection, hostile).await else { break };
                    counts.judged.fetch_add(usize::from(allowed.is_some()), Ordering::Relaxed);
                }
            }
        };
        futures::future::join_all((0..HOSTILE).map(|_| sender())).await;
    });
    Ok(())
}

/// Sends usual reviews at a steady pace, for so long and until a hostile one has been judged; returns how long each took, or that it was not admitted.
async fn usual(
    connector: &TlsConnector,
    address: &str,
    recorded: &[Recorded],
    time: Duration,
    counts: &Arc<Counts>,
) -> Result<Vec<Option<Duration>>> {
    let (connections, every) = USUAL;
    let mut tasks = JoinSet::new();
    for offset in 0..connections {
        let (connector, address) = (connector.clone(), address.to_owned());
        let (recorded, counts) = (recorded.to_vec(), Arc::clone(counts));
        tasks.spawn(async move {
            let mut connection = connect(&connector, &address).await?;
            let (begin, mut pace) = (Instant::now(), interval(every));
            pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut answers = Vec::new();
            for review in recorded.iter().cycle().skip(offset) {
                pace.tick().await;
                let (elapsed, judged) = (begin.elapsed(), counts.judged.load(Ordering::Relaxed));
                if elapsed >= time && (judged > 0 || elapsed >= FIRST_JUDGED) {
                    break;
                }
                match one(&mut connection, review).await {
                    Ok((took, Some(true))) => answers.push(Some(took)),
                    Ok(_) => answers.push(None),
                    Err(_) => {
                        answers.push(None);
                        connection = connect(&connector, &address).await?;
                    }
                }
            }
            anyhow::Ok(answers)
        });
    }
    let mut all = Vec::new();
    while let Some(done) = tasks.join_next().await {
        all.extend(done??);
    }
    Ok(all)
}
