//! What users are to be told of objects (`docs/retention.md`, R36, R47 and R52).
//!
//! Looks and the watch find what there is to tell, and whoever asked for them takes it from here. Each object remembers what
//! was told of it, so that this is told once.

use std::{mem, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use trainjob_api::time::Timestamp;
use trainjob_core::{facts::ObjectKey, recreation::Origin};
use trainjob_retention_core::{
    facts::Facts,
    plan::{Notice, Plan},
    policies::Governed,
    uid::Uid,
};

use super::{ClusterState, object::Object};
use crate::key::{Key, TargetId};

/// More than that is not remembered for anybody to take.
const MOST: usize = 1_000;

/// Something to tell the users of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectNews {
    /// The object.
    pub key: Key,
    /// Which of all objects of the name.
    pub uid: Uid,
    /// The policy that governs it.
    pub policy: Arc<str>,
    /// What to tell.
    pub what: What,
}

/// What is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// What follows from its plan.
    Notice(Notice),
    /// It was made again after a policy had deleted one of its name, the third time within an hour; says by whom.
    RecreateLoop(Origin),
}

/// What there is to tell that nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct News(Vec<ObjectNews>);

impl News {
    fn add(&mut self, news: ObjectNews) {
        if self.0.len() < MOST {
            self.0.push(news);
        }
    }
}

/// What follows from a plan for what users are told.
pub(super) struct Told {
    untold: Vec<Notice>,
    all: Box<[Notice]>,
    /// When there is more to tell.
    pub(super) next: Option<Timestamp>,
}

impl Told {
    pub(super) fn of(
        governed: &Governed<'_, '_>,
        plan: &Plan<'_>,
        object: &Object,
        now: Timestamp,
    ) -> Self {
        let (told, edited) = (&object.told, object.wishes_edited);
        Self {
            untold: governed.untold(plan, told, edited, now),
            all: governed.notices(plan, now),
            next: governed.next_notice(plan, now),
        }
    }

    /// Whether there is anything to tell now.
    pub(super) const fn is_news(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Hands it on, and remembers that.
    pub(super) fn tell(self, object: &mut Object, (key, policy): (&Key, &Arc<str>), to: &mut News) {
        for notice in self.untold {
            let (uid, what) = (object.facts.uid.clone(), What::Notice(notice));
            to.add(ObjectNews { key: key.clone(), uid, policy: Arc::clone(policy), what });
        }
        (object.told, object.wishes_edited) = (self.all, false);
    }
}

impl ClusterState {
    /// What users are to be told of objects, each once.
    pub fn take_news(&mut self) -> Vec<ObjectNews> {
        mem::take(&mut self.news.0)
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
            let policy = Arc::clone(&governed.policy.name);
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
