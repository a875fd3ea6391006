//! What users are to be told of objects (`docs/retention.md`, R36, R47 and R52).
//!
//! Looks and the watch find what there is to tell, and whoever asked for them takes it from here. Each object remembers what
//! was told of it, so that this is told once.

use std::mem;

use trainjob_api::time::Timestamp;
use trainjob_core::recreation::Origin;
use trainjob_retention_core::{
    plan::{Notice, Plan},
    policies::Governed,
    policy::PolicyReference,
    uid::Uid,
};

use super::object::Object;
use crate::key::Key;

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
    pub policy: PolicyReference,
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
    /// All of it; from here on it is somebody else's.
    pub(super) fn take(&mut self) -> Vec<ObjectNews> {
        mem::take(&mut self.0)
    }

    pub(super) fn add(&mut self, news: ObjectNews) {
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
        let (told, edited) = (object.told(), object.wishes_edited);
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
    pub(super) fn tell(
        self,
        object: &mut Object,
        (key, policy): (&Key, PolicyReference),
        to: &mut News,
    ) {
        for notice in self.untold {
            let (uid, what) = (object.facts.uid.clone(), What::Notice(notice));
            to.add(ObjectNews { key: key.clone(), uid, policy: policy.clone(), what });
        }
        object.tell(self.all);
    }
}
