//! What came, and what came of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use invariants::{Millis, Request};

use super::call::Call;

/// All calls, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Log(Mutex<Vec<Line>>);

#[derive(Debug)]
struct Line {
    call: Arc<Call>,
    request: Request,
    under_way: bool,
}

/// The line of one call. The client has its answer, or will have none, when this is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    line: LineOf,
}

/// Where the answer of the API server is noted, also when the client has not waited for it.
#[derive(Debug, Clone)]
pub(super) struct LineOf {
    log: Arc<Log>,
    index: usize,
}

impl Log {
    pub(super) fn add(self: &Arc<Self>, call: &Arc<Call>) -> Entry {
        let request = call.sent(now());
        let mut lines = self.lines();
        lines.push(Line { call: Arc::clone(call), request, under_way: true });
        Entry { line: LineOf { log: Arc::clone(self), index: lines.len() - 1 } }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        let now = now();
        let noted = |line: &Line| {
            let ended = if line.under_way { now } else { line.request.ended };
            Request { ended, ..line.request.clone() }
        };
        self.lines().iter().map(noted).collect()
    }

    pub(super) fn calls(&self) -> Vec<Arc<Call>> {
        self.lines().iter().map(|line| Arc::clone(&line.call)).collect()
    }

    pub(super) fn count(&self, matches: impl Fn(&Call) -> bool) -> usize {
        self.calls().iter().filter(|call| matches(call)).count()
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineOf {
    /// Notes what the API server answered.
    pub(super) fn served(&self, code: http::StatusCode, version: Option<u64>) {
        self.change(|line| {
            line.request.answer.served = Some(code.as_u16());
            line.request.answer.version = version;
        });
    }

    fn change(&self, change: impl FnOnce(&mut Line)) {
        if let Some(line) = self.log.lines().get_mut(self.index) {
            change(line);
        }
    }
}

impl Entry {
    pub(super) const fn line(&self) -> &LineOf {
        &self.line
    }

    /// Notes what the client is answered.
    pub(super) fn answered<B>(&self, response: &http::Response<B>) {
        let retry_after = response.headers().get(http::header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        self.line.change(|line| {
            line.request.answer.code = Some(response.status().as_u16());
            line.request.answer.retry_after = retry_after;
        });
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let now = now();
        self.line.change(|line| {
            line.request.ended = now;
            line.under_way = false;
        });
    }
}

fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}
