//! Names that policies delete and somebody makes again, and what else users are to be told (`docs/retention.md`, R47).

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use trainjob_api::time::Timestamp;
use trainjob_core::{facts::ObjectKey, recreation::Origin};
use trainjob_retention_core::{facts::Facts, uid::Uid};

use super::{
    ClusterState,
    notices::{ObjectNews, What},
};
use crate::key::{Key, TargetId};

impl ClusterState {
    /// What users are to be told of objects, each once.
    pub fn take_news(&mut self) -> Vec<ObjectNews> {
        self.news.take()
    }

    /// How many names are deleted by policies and made again, over and over (R47).
    #[must_use]
    pub fn loops(&self, now: Timestamp) -> usize {
        self.recreations.loops(now)
    }

    /// The deletion of the object with this UID was accepted.
    pub(super) fn note_deleted(&mut self, key: &Key, uid: &Uid, monotonic: Duration) {
        // The API server's time as of the last judgement is good enough for what counts in minutes.
        let Some(offset) = self.clock_offset else { return };
        let passed = i64::try_from(monotonic.as_secs()).unwrap_or(i64::MAX);
        self.recreations.deleted(key, uid, Timestamp(offset).plus(passed));
        // Its successor may have been seen before the answer.
        self.check_loop(key.target, &key.object, None);
    }

    /// Notes if the object that is known under this name, and maybe has this text, closes a loop.
    pub(super) fn check_loop(&mut self, target: TargetId, object: &ObjectKey, text: Option<&str>) {
        let key = Key { target, object: object.clone() };
        let Some((kind, policies)) = self.kinds.get_mut(target.0).map(|kind| {
            let policies = kind.there(&mut self.namespaces, &object.namespace);
            (&*kind, policies)
        }) else {
            return;
        };
        let Some(known) = kind.objects.get(object) else { return };
        if !self.recreations.seen(&key, &known.facts.uid, known.facts.created) {
            return;
        }
        if let Some(governed) = policies.governing(&known.facts) {
            let policy = governed.policy.reference();
            let origin = origin(&known.facts, text);
            let (uid, what) = (known.facts.uid.clone(), What::RecreateLoop(origin));
            self.news.add(ObjectNews { key, uid, policy, what });
        }
    }
}

#[derive(Deserialize)]
struct Bare {
    metadata: ObjectMeta,
}

/// Who made an object: its text tells, and without that, its facts may.
fn origin(facts: &Facts, text: Option<&str>) -> Origin {
    let bare = text.and_then(|text| serde_json::from_str::<Bare>(text).ok());
    let owner = facts
        .controller()
        .map(|owner| Origin::Owner { kind: owner.kind.to_string(), name: owner.name.to_string() });
    bare.map(|bare| Origin::of(&bare.metadata)).or(owner).unwrap_or(Origin::Unknown)
}
