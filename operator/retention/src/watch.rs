//! A watch whose objects are handed on as texts.
//!
//! What is watched is read by nobody but the rules of retention, which keep little of it. So a list comes in pages, and
//! a page is [cut into its items](list) as it arrives; an object is in memory only while it is read (`docs/retention.md`,
//! R61). The watch of `trainjob-engine` reads objects of a known type.
//!
//! Like that one, it lists and watches, and lists again when it has to. The API server ends a watch after a [span](Span),
//! and it is begun anew where it was. Events, bookmarks and an end in its time say that the watch is live (R34).

mod line;

use std::{io, pin::pin, time::Duration};

use futures::{AsyncBufRead, AsyncBufReadExt};
use http::Request;
use kube::Client;
use prometheus::IntCounter;
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout};
use trainjob_engine::{
    jitter,
    list::{self, PageError},
    watch::Span,
};
use trainjob_retention_core::selection::Selection;

use self::line::Event;
pub use self::line::Named;

/// The room that is kept for a line.
const LINE: usize = 16 * 1024;
/// First and longest wait before a watch that failed is tried again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// Most and fewest objects of a page. One that fails is asked for in smaller ones.
const PAGE: (u32, u32) = (500, 25);

/// How much earlier than its span a watch may seem to end: the time until its answer begins.
const TOLERANCE: Duration = Duration::from_secs(1);

/// How long a line, or the end, may take to come in a watch of this span. Less than R34 allows, so that a watch which is
/// replaced in time stops nothing: what replaces it is short.
const fn silence(span: Span) -> Duration {
    match span {
        Span::Short => Duration::from_secs(8),
        Span::Long => Duration::from_secs(70),
    }
}

/// What is watched.
#[derive(Clone)]
pub struct Source {
    /// Through which client. It has no time limits of its own.
    pub client: Client,
    /// The path of the collection, such as `/apis/batch/v1/jobs`.
    pub path: String,
    /// What is selected of it.
    pub selection: Selection,
    /// Whether only the metadata of the objects are wanted.
    pub metadata_only: bool,
    /// How long each watch goes on.
    pub span: Span,
    /// What counts those that fail.
    pub restarts: IntCounter,
}

/// What a watch tells.
#[derive(Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// All objects there are follow, as [`Self::Listed`].
    ListBegins,
    /// This object is there.
    Listed(&'a str),
    /// All objects there are have been told. What was known before and was not among them is gone.
    ListEnds,
    /// This object is there, or is there in another version.
    Changed(&'a str, Named<'a>),
    /// This object is gone.
    Deleted(Named<'a>),
    /// All that has happened until a moment ago has been told.
    Alive,
}

/// Why a watch is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The API server does not know the path. It may be starting.
    NotServed,
    /// The API server does not allow it.
    Forbidden,
}

/// What went wrong with a list or a watch.
#[derive(Debug, Error)]
enum WatchError {
    #[error(transparent)]
    Refused(#[from] kube::Error),
    #[error("no answer in time")]
    Silent,
    #[error("it ended before its time")]
    Early,
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    #[error(transparent)]
    NoPage(#[from] PageError),
    #[error("cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the API server ended the watch with status {0}")]
    Expired(u16),
}

impl WatchError {
    fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(kube::Error::Api(status))
            | Self::NoPage(PageError::Refused(kube::Error::Api(status))) => Some(status.code),
            _ => None,
        }
    }
}

/// Hands on what happens, for ever; until the path is not served, or not allowed.
pub async fn follow(source: &Source, mut take: impl FnMut(News<'_>)) -> Ended {
    let (mut wait, mut page, mut said) = (BACKOFF.0, PAGE.0, false);
    loop {
        let error = match list_all(source, page, &mut take).await {
            Err(error) => {
                page = (page / 2).max(PAGE.1);
                error
            }
            Ok(version) => {
                page = PAGE.0;
                if said {
                    tracing::info!(path = source.path, "watching {}", source.path);
                    said = false;
                }
                let mut has_told = false;
                let watched = watch(source, version, |news| {
                    has_told = true;
                    take(news);
                });
                let error = watched.await;
                if has_told {
                    wait = BACKOFF.0;
                }
                error
            }
        };
        source.restarts.inc();
        match error.status() {
            Some(404) => return Ended::NotServed,
            Some(401 | 403) => {
                tracing::error!(path = source.path, %error, "not allowed to list and watch");
                return Ended::Forbidden;
            }
            _ if said || matches!(error, WatchError::Expired(_)) => {
                tracing::debug!(path = source.path, %error, "lists again");
            }
            _ => {
                tracing::warn!(path = source.path, %error, "cannot watch; trying again");
                said = true;
            }
        }
        sleep(jitter(wait)).await;
        wait = wait.saturating_mul(2).min(BACKOFF.1);
    }
}

/// Lists everything. The version of the list is where a watch goes on.
async fn list_all(
    source: &Source,
    page: u32,
    take: &mut impl FnMut(News<'_>),
) -> Result<String, WatchError> {
    take(News::ListBegins);
    let mut next = String::new();
    loop {
        let token = if next.is_empty() { String::new() } else { format!("&continue={next}") };
        let question = format!("limit={page}{token}");
        let request = request(source, &question, "List")?;
        let metadata = list::page(&source.client, request, |item| take(News::Listed(item))).await?;
        if metadata.next.is_empty() {
            take(News::ListEnds);
            return Ok(metadata.resource_version);
        }
        next = escaped(&metadata.next);
    }
}

/// Watches from a version on, until that does not go on.
async fn watch(source: &Source, mut version: String, mut take: impl FnMut(News<'_>)) -> WatchError {
    let (mut failures, mut wait) = (0_u32, BACKOFF.0);
    loop {
        let mut heard = false;
        let span = if failures == 0 { source.span } else { Span::Short };
        let ended = watch_once(source, span, &mut version, |news| {
            heard = true;
            take(news);
        });
        match ended.await {
            Ok(()) => (failures, wait) = (0, BACKOFF.0),
            // An API server that fills its cache of the kind answers so. Another list would delay it (KEP-4568).
            Err(error) if error.status() == Some(429) => {
                source.restarts.inc();
                tracing::debug!(path = source.path, %error, "watches later");
                sleep(jitter(wait)).await;
                wait = wait.saturating_mul(2).min(BACKOFF.1);
            }
            // A watch that was cut says nothing about the version.
            Err(WatchError::Broken(_) | WatchError::Silent | WatchError::Early)
                if heard || failures < 3 =>
            {
                source.restarts.inc();
                failures = if heard { 1 } else { failures + 1 };
                sleep(jitter(BACKOFF.0)).await;
            }
            Err(error) => return error,
        }
    }
}

/// One request to watch, until the API server ends it. That it does so in its time shows that it has told everything.
async fn watch_once(
    source: &Source,
    span: Span,
    version: &mut String,
    mut take: impl FnMut(News<'_>),
) -> Result<(), WatchError> {
    let (from, seconds, silence) = (escaped(version), span.seconds(), silence(span));
    let question = format!(
        "watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={from}"
    );
    let mut body = pin!(source.client.request_stream(request(source, &question, "")?).await?);
    let (begun, mut text) = (Instant::now(), Vec::new());
    while next_line(&mut body, &mut text, silence).await? {
        let line = String::from_utf8_lossy(&text);
        let reached = match Event::read(&line)? {
            Event::Changed(object, named) => {
                let reached = named.resource_version.clone().into_owned();
                take(News::Changed(object, named));
                reached
            }
            Event::Deleted(_, named) => {
                let reached = named.resource_version.clone().into_owned();
                take(News::Deleted(named));
                reached
            }
            Event::Bookmark(named) => named.resource_version.into_owned(),
            Event::Failed(status) => return Err(WatchError::Expired(status)),
        };
        *version = reached;
        take(News::Alive);
    }
    if begun.elapsed() + TOLERANCE < Duration::from_secs(u64::from(seconds)) {
        return Err(WatchError::Early);
    }
    take(News::Alive);
    Ok(())
}

/// Reads a line, for so long. False if there is none any more. The room for a long one is given back.
async fn next_line(
    body: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    silence: Duration,
) -> Result<bool, WatchError> {
    line.clear();
    line.shrink_to(LINE);
    let read = timeout(silence, body.read_until(b'\n', line)).await;
    Ok(read.map_err(|_| WatchError::Silent)?? > 0)
}

fn request(source: &Source, question: &str, list: &str) -> Result<Request<Vec<u8>>, kube::Error> {
    let accepted = if source.metadata_only {
        format!("application/json;as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1")
    } else {
        "application/json".to_owned()
    };
    let Selection { fields, labels } = &source.selection;
    let mut selected = String::new();
    for (name, selector) in [("fieldSelector", *fields), ("labelSelector", labels)] {
        if !selector.is_empty() {
            selected = format!("{selected}&{name}={}", escaped(selector));
        }
    }
    Request::get(format!("{}?{question}{selected}", source.path))
        .header(http::header::ACCEPT, accepted)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)
}

/// A text as the value of a parameter. Tokens and versions consist of letters, digits and few other characters.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests;
