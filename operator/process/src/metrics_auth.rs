//! Metrics auth: only clients that the API server authorizes may read a page.
//!
//! A client sends a bearer token of the cluster. A `TokenReview` authenticates it, and a `SubjectAccessReview` tells
//! whether it may GET the path. A positive answer is cached for a minute, and for ten while the API server cannot be asked:
//! that is when metrics are needed most. The number of reviews in a second is limited, so that nobody can flood the API
//! server through this page.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hyper::{HeaderMap, StatusCode, header::AUTHORIZATION};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use thiserror::Error;
use tokio::time::{Instant, timeout};

/// How long a yes holds.
const VALID: Duration = Duration::from_mins(1);
/// How long it holds while nobody can be asked.
const VALID_UNASKED: Duration = Duration::from_mins(10);
/// How many of them are remembered.
const REMEMBERED: usize = 64;
/// How often a second the API server is asked about tokens.
const QUESTIONS: u32 = 5;
/// How long its answers may take together. Less than a connection may last.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why somebody may not pass.
#[derive(Debug, Error)]
pub enum Refusal {
    /// Nobody knows who they are.
    #[error("unauthorized: expected a bearer token of this cluster")]
    Unknown,
    /// They are known, and may not.
    #[error("forbidden: {0} may not get {1}")]
    Forbidden(String, String),
    /// It cannot be found out at the moment.
    #[error("cannot ask the API server: {0}")]
    Unavailable(String),
}

impl Refusal {
    /// The status of the answer.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Unknown => StatusCode::UNAUTHORIZED,
            Self::Forbidden(..) => StatusCode::FORBIDDEN,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Authenticates and authorizes requests. Clones share the cache.
#[derive(Clone)]
pub struct MetricsAuth {
    client: Client,
    state: Arc<Mutex<State>>,
    hasher: RandomState,
}

#[derive(Debug)]
struct State {
    /// When a token was last said to be allowed to see a path, by what is left of both.
    passed: HashMap<u64, Instant>,
    /// How often the API server has been asked since.
    asked: (u32, Instant),
}

impl MetricsAuth {
    /// One that asks the API server by this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let state = State { passed: HashMap::new(), asked: (0, Instant::now()) };
        Self { client, state: Arc::new(Mutex::new(state)), hasher: RandomState::new() }
    }

    /// Lets a request for this path pass.
    ///
    /// # Errors
    ///
    /// Why not.
    pub async fn admit(&self, headers: &HeaderMap, path: &str) -> Result<(), Refusal> {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = given.and_then(|given| given.strip_prefix("Bearer ")).unwrap_or_default();
        if token.trim().is_empty() {
            return Err(Refusal::Unknown);
        }
        let (pass, now) = (self.hasher.hash_one((token, path)), Instant::now());
        if self.state().has_passed(pass, now, VALID) {
            return Ok(());
        }
        match self.ask_in_time(token.trim(), path, now).await {
            Ok(()) => {
                self.state().pass(pass, now);
                Ok(())
            }
            Err(Refusal::Unavailable(_)) if self.state().has_passed(pass, now, VALID_UNASKED) => {
                Ok(())
            }
            Err(refusal) => {
                self.state().passed.remove(&pass);
                Err(refusal)
            }
        }
    }

    async fn ask_in_time(&self, token: &str, path: &str, now: Instant) -> Result<(), Refusal> {
        if !self.state().may_ask(now) {
            return Err(Refusal::Unavailable("there are too many questions".to_owned()));
        }
        match timeout(PATIENCE, self.ask(token, path)).await {
            Ok(answer) => answer,
            Err(_) => Err(Refusal::Unavailable(format!("no answer within {PATIENCE:?}"))),
        }
    }

    async fn ask(&self, token: &str, path: &str) -> Result<(), Refusal> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let review = Api::all(self.client.clone()).create(&PostParams::default(), &review).await;
        let status = review.map_err(|error| unavailable(&error))?.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        let Some(UserInfo { username: Some(user), uid, groups, extra }) = user else {
            return Err(Refusal::Unknown);
        };
        let attributes =
            NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) };
        let spec = SubjectAccessReviewSpec {
            user: Some(user.clone()),
            uid,
            groups,
            extra,
            non_resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let review = Api::all(self.client.clone()).create(&PostParams::default(), &review).await;
        match review.map_err(|error| unavailable(&error))?.status {
            Some(status) if status.allowed => Ok(()),
            _ => Err(Refusal::Forbidden(user, path.to_owned())),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn may_ask(&mut self, now: Instant) -> bool {
        let (times, since) = &mut self.asked;
        if now.duration_since(*since) >= Duration::from_secs(1) {
            (*times, *since) = (0, now);
        }
        *times += 1;
        *times <= QUESTIONS
    }

    fn has_passed(&self, pass: u64, now: Instant, valid: Duration) -> bool {
        self.passed.get(&pass).is_some_and(|at| now.duration_since(*at) < valid)
    }

    fn pass(&mut self, pass: u64, now: Instant) {
        if self.passed.len() >= REMEMBERED {
            self.passed.retain(|_, at| now.duration_since(*at) < VALID_UNASKED);
        }
        if self.passed.len() < REMEMBERED || self.passed.contains_key(&pass) {
            self.passed.insert(pass, now);
        }
    }
}

fn unavailable(error: &kube::Error) -> Refusal {
    Refusal::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests;
