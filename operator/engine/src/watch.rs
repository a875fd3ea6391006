//! Watches that are tried again for ever, and say once what keeps them.
//!
//! One watch a kind, which lists and watches (`list_and_watch`) as `kube::runtime::watcher` does, with its types for what
//! happens and what goes wrong, but reads an object of a list when its text is there, not when all of a page is. One that
//! fails is tried again; the log says so once, says what to do about it, and says when it is over.

mod list_and_watch;
mod pages;
#[cfg(test)]
mod scripted;
mod span;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use kube::{
    Api, Resource,
    runtime::watcher::{self, Event},
};
use prometheus::IntCounter;
use tokio::time::{Instant, sleep};

use self::list_and_watch::{ListAndWatch, Selected, Sign};
pub use self::span::Span;
use crate::jitter;

/// First and longest wait before a watch that failed is tried again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// A watch that has not failed for so long begins again with the first wait.
const QUIET: Duration = Duration::from_secs(15);

/// A watch that ends sooner, and showed nothing, has failed, as for client-go: whoever ends it does so again.
const TOO_SHORT: Duration = Duration::from_secs(1);

/// The longest wait before another look for a kind that need not be there.
const LOOK_FOR_OPTIONAL: Duration = Duration::from_secs(30);

/// What is watched.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its kind, as the log names it.
    pub kind: &'static str,
    /// How to install the kind; `None` if it need not be there.
    pub install: Option<&'static str>,
    /// How long each watch goes on.
    pub span: Span,
    /// What counts its failures, but for those to find a kind that need not be there.
    pub restarts: &'a IntCounter,
}

/// A watch has failed, and will be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    /// Whether the API server says that there is no such kind, or that it may not be seen.
    pub is_refused: bool,
}

/// Hands every event of a kind to `take`, for ever, and every failure. `unreachable` is whether the API
/// server could not be reached when last tried, which is said once for all kinds that share it.
pub async fn follow<K>(
    api: Api<K>,
    subject: Subject<'_>,
    unreachable: &AtomicBool,
    take: impl FnMut(Result<Event<K>, Failed>),
) where
    K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
    K: Send + 'static,
{
    follow_with(api, Selected::default(), subject, unreachable, take).await;
}

/// Like [`follow`], for the objects that this label selector selects.
pub async fn follow_labelled<K>(
    api: Api<K>,
    labels: &str,
    subject: Subject<'_>,
    unreachable: &AtomicBool,
    take: impl FnMut(Result<Event<K>, Failed>),
) where
    K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
    K: Send + 'static,
{
    let selected = Selected { labels: Some(labels.to_owned()), ..Selected::default() };
    follow_with(api, selected, subject, unreachable, take).await;
}

/// Like [`follow`], for the one object of this name.
pub async fn follow_one<K>(
    api: Api<K>,
    name: &str,
    subject: Subject<'_>,
    unreachable: &AtomicBool,
    take: impl FnMut(Result<Event<K>, Failed>),
) where
    K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
    K: Send + 'static,
{
    // A permission that is restricted to a name needs just this selector.
    let fields = Some(format!("metadata.name={name}"));
    let one = Selected { fields, ..Selected::default() };
    follow_with(api, one, subject, unreachable, take).await;
}

async fn follow_with<K>(
    api: Api<K>,
    selected: Selected,
    subject: Subject<'_>,
    unreachable: &AtomicBool,
    mut take: impl FnMut(Result<Event<K>, Failed>),
) where
    K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
    K: Send + 'static,
{
    let longest = if subject.install.is_some() { BACKOFF.1 } else { LOOK_FOR_OPTIONAL };
    let mut objects = ListAndWatch::new(api, selected, subject.span);
    let mut wait = Wait { longest, failures: 0, last: None };
    let mut trouble = Trouble { subject, last: None, said: None, unreachable };
    loop {
        let (begun, mut is_empty) = (Instant::now(), true);
        let mut tell = |sign| match sign {
            Sign::Alive => trouble.over(),
            Sign::Event(event) => {
                is_empty = false;
                // A list that begins or is under way may still fail.
                let works = matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_));
                take(Ok(event));
                if works {
                    trouble.over();
                }
            }
        };
        match objects.go_on(&mut tell).await {
            Ok(()) if is_empty && begun.elapsed() < TOO_SHORT => subject.restarts.inc(),
            Ok(()) => continue,
            Err(error) => {
                let is_refused = is_refused(&error);
                if subject.install.is_some() || !is_refused {
                    subject.restarts.inc();
                }
                take(Err(Failed { is_refused }));
                trouble.with(&error);
            }
        }
        sleep(wait.next()).await;
    }
}

/// Whether the API server says that there is no such kind, or that it may not be seen.
fn is_refused(error: &watcher::Error) -> bool {
    matches!(cause(error), Some((Cause::NotInstalled | Cause::Forbidden, _)))
}

/// Doubling waits between two tries of a watch, with jitter, so that not all kinds come at once.
///
/// A watch that begins a list has not succeeded yet; what counts as success is that it has been quiet for a while.
#[derive(Debug)]
struct Wait {
    longest: Duration,
    failures: u32,
    last: Option<Instant>,
}

impl Wait {
    fn next(&mut self) -> Duration {
        let (first, _) = BACKOFF;
        let now = Instant::now();
        let quiet = QUIET.max(self.longest * 2);
        if self.last.replace(now).is_some_and(|last| now.duration_since(last) > quiet) {
            self.failures = 0;
        }
        let wait = first.saturating_mul(1 << self.failures.min(8)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        jitter(wait)
    }
}

/// What is wrong with a watch, said once.
struct Trouble<'a> {
    subject: Subject<'a>,
    last: Option<Cause>,
    said: Option<Cause>,
    unreachable: &'a AtomicBool,
}

/// Why a watch fails, as far as it makes a difference to who reads the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    NotInstalled,
    Forbidden,
    Unreachable,
}

impl Trouble<'_> {
    fn with(&mut self, error: &watcher::Error) {
        let Some((cause, error)) = cause(error) else {
            tracing::debug!(kind = self.subject.kind, %error, "watch begins anew");
            return;
        };
        // An API server that has just come back knows neither RBAC rules nor kinds for a moment.
        let doubtful = self.said == Some(Cause::Unreachable) && self.last != Some(cause);
        self.last = Some(cause);
        if self.said == Some(cause) || doubtful {
            return;
        }
        self.said = Some(cause);
        let Subject { kind, install, .. } = self.subject;
        match cause {
            Cause::NotInstalled => {
                let Some(install) = install else { return };
                tracing::error!(
                    kind,
                    "the CRD of {kind} is not installed; {install}. Waiting for it"
                );
            }
            Cause::Forbidden => {
                tracing::error!(kind, %error, "not allowed to list and watch {kind}. Waiting for the right");
            }
            Cause::Unreachable if self.unreachable.swap(true, Ordering::Relaxed) => {}
            Cause::Unreachable => {
                tracing::error!(
                    error,
                    "cannot reach the API server. Trying again until it answers"
                );
            }
        }
    }

    fn over(&mut self) {
        self.last = None;
        if self.unreachable.swap(false, Ordering::Relaxed) {
            tracing::info!("the API server answers again");
        }
        if let Some(Cause::NotInstalled | Cause::Forbidden) = self.said.take() {
            let kind = self.subject.kind;
            tracing::info!(kind, "watching {kind}");
        }
    }
}

/// The cause of a failure and what the API server or the network says of it, unless it belongs to the
/// normal life of a watch: one that ends, or an API server that is busy for a moment.
fn cause(error: &watcher::Error) -> Option<(Cause, String)> {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) =
        error
    else {
        return None;
    };
    match error {
        kube::Error::Api(status) if status.code == 429 => None,
        kube::Error::Api(status) => {
            let cause = match status.code {
                404 => Cause::NotInstalled,
                401 | 403 => Cause::Forbidden,
                _ => Cause::Unreachable,
            };
            Some((cause, status.message.clone()))
        }
        _ => Some((Cause::Unreachable, chain(error))),
    }
}

/// An error with what caused it, down to the system's own words.
fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(error.source(), |error| error.source())
        .fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use tokio::time::timeout;

    use super::*;
    use crate::watch::scripted::{SILENT, Script, page, refused, scripted};

    /// What was asked for in this time, how often it failed, and whether the API server counts as unreachable.
    async fn followed(answers: Script, time: Duration) -> (usize, u64, bool) {
        let (client, asked) = scripted(answers);
        let (unreachable, restarts) =
            (AtomicBool::default(), IntCounter::new("restarts", "Restarts").unwrap());
        let (kind, install) = ("ConfigMap", Some("install it"));
        let subject = Subject { kind, install, span: Span::Short, restarts: &restarts };
        let following = follow::<ConfigMap>(Api::all(client), subject, &unreachable, |_| {});
        timeout(time, following).await.unwrap_err();
        let asked = asked.lock().unwrap().len();
        (asked, restarts.get(), unreachable.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn api_server_that_begins_to_answer_a_watch_is_reached_though_nothing_happens() {
        let failing = vec![page("5", "", &[], 0), refused(500), refused(500)];
        let mut working = failing.clone();
        working.push((SILENT, String::new()));
        let time = Duration::from_secs(3);
        assert_eq!(followed(failing, time).await, (4, 2, true));
        assert_eq!(followed(working, time).await, (4, 2, false));
    }

    #[tokio::test(start_paused = true)]
    async fn watch_that_ends_at_once_is_begun_anew_after_a_wait() {
        let mut script = vec![page("5", "", &[], 0)];
        script.extend(std::iter::repeat_n((200, String::new()), 1_000));
        let (asked, restarts, unreachable) = followed(script, Duration::from_mins(1)).await;
        assert!((12..40).contains(&asked), "{asked}");
        assert!(restarts + 2 >= asked as u64 && !unreachable, "{restarts} of {asked}");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_while_a_watch_fails_and_begin_anew_after_a_quiet_time() {
        let mut wait = Wait { longest: BACKOFF.1, failures: 0, last: None };
        for expected in [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000] {
            let next = wait.next();
            assert!((expected / 2..=expected).contains(&next.as_millis()), "{expected}: {next:?}");
            tokio::time::advance(next).await;
        }
        tokio::time::advance(QUIET * 2).await;
        assert!(wait.next() <= BACKOFF.0);
    }
}
