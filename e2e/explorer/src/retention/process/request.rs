//! What a replica asks the API server, and what it is answered.

use trainjob_api::time::Timestamp;
use trainjob_retention::{
    cluster_state::{Reply, Right},
    key::Key,
};
use trainjob_retention_core::{
    breaker::Record,
    plan::{FoundOwner, OwnerAnswer},
    uid::Uid,
};

use super::since::Since;
use crate::retention::{
    rules::{JobId, PolicyId, View},
    server::{Fence, Server},
};

/// A request.
#[derive(Debug, Clone)]
pub enum Request {
    /// The DELETE of a Job.
    Delete {
        /// The key that the pass is about.
        key: Key,
        /// Which Job.
        id: JobId,
        /// Its preconditions.
        fence: Fence,
        /// The UID that it was decided for.
        uid: Uid,
        /// What the replica knew.
        view: Box<View>,
        /// When it was sent, by the API server's clock, in seconds.
        at: i64,
    },
    /// A GET of an owner.
    Owner {
        /// The key that the pass is about.
        key: Key,
        /// The UID of the owner.
        owner: u64,
    },
    /// What the status of a policy stores for the breaker.
    Status {
        /// Which policy.
        id: PolicyId,
        /// Its UID.
        uid: u64,
        /// Its version, as a precondition.
        version: Option<u64>,
        /// What it is to store.
        record: Option<Record>,
        /// What the replica has judged for that, if it knows of no other digest by now.
        since: Option<Since>,
    },
    /// Whether the program has a right.
    Right(Right),
}

/// What a request was answered.
#[derive(Debug, Clone)]
pub enum Answer {
    /// What came of a DELETE.
    Deletion(Reply),
    /// It is forbidden: the right is missing, or admission denies it.
    Forbidden,
    /// How an owner is.
    Owner(OwnerAnswer),
    /// The new version of a policy.
    Stored(u64),
    /// Whether there is a right.
    Right(bool),
    /// It failed, or there was no answer in time.
    Failed,
}

/// A request that was sent.
#[derive(Debug, Clone)]
pub struct UnderWay {
    /// What was asked.
    pub request: Request,
    /// When, by a clock that nobody sets, in milliseconds.
    pub sent: i64,
    /// The answer, if it is on its way back.
    pub answer: Option<Answer>,
    /// Whether it is lost, or its answer.
    pub is_lost: bool,
}

/// How the API server says an owner is.
#[must_use]
pub fn owner_answer(owner: u64, server: &Server) -> OwnerAnswer {
    match server.owners.get(&owner) {
        None => OwnerAnswer::Gone,
        Some(finished) => OwnerAnswer::Found(FoundOwner {
            finished: finished.map(Timestamp),
            ..FoundOwner::default()
        }),
    }
}
