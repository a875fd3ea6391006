//! Pods that go before their objects (`docs/retention.md`, R22).
//!
//! Which of the objects have Pods at all is found out with one list, before anything is judged: else, after each start, the
//! Pods of all objects would seem to be due whose Pods went long ago. From then on each object is asked for by itself, when
//! its Pods are due.

use std::time::Duration;

use trainjob_core::Now;
use trainjob_retention_core::{
    pod_label::PodLabel, policy::RuleAction, stored::StoredPolicy, uid::Uid,
};

use super::{
    ClusterState, Effects, PodsReplied,
    flows::Flow,
    kind::{Kind, PodsKnown},
    looked_at,
    object::{ObjectPods, Progress},
    pod_hints::{PodHints, PodsLeft, PodsReply, PodsToList},
    step::{PodsDeletion, Step},
};
use crate::key::{Key, TargetId};

/// First and longest wait for Pods that may not go yet: they run, or have a hold of their own.
const ASKED_AGAIN: (Duration, Duration) = (Duration::from_mins(1), Duration::from_mins(30));

impl ClusterState {
    /// The lists of Pods that are needed now, before anything of their kind is deleted. They are under way then.
    pub fn pods_to_list(&mut self) -> Vec<PodsToList> {
        let kinds = self.kinds.iter_mut().enumerate();
        let needed = kinds.filter_map(|(index, kind)| {
            let label = PodLabel::of(&kind.target.group, &kind.target.kind)?;
            kind.begin_pods_list().then_some(PodsToList { target: TargetId(index), label })
        });
        if self.leads { needed.collect() } else { Vec::new() }
    }

    /// The Pods of a kind were listed; `None`: they could not be, and have to be once more.
    pub fn pods_listed(&mut self, list: &PodsToList, hints: Option<&PodHints>) -> Effects {
        let Some(kind) = self.kinds.get_mut(list.target.0) else { return Effects::default() };
        kind.end_pods_list(list, hints);
        Effects { evaluate: hints.is_some(), ..Effects::default() }
    }

    /// Whether the same Pods of the same object would be deleted at this moment (R4 and R34).
    pub fn may_delete_pods(
        &mut self,
        key: &Key,
        wanted: &PodsDeletion,
        now: Now,
        monotonic: Duration,
    ) -> bool {
        let planned = self.look(key, now, monotonic);
        let is_it = |it: &PodsDeletion| it.of.uid == wanted.of.uid && it.pods == wanted.pods;
        matches!(planned, Step::DeletePods(planned) if is_it(&planned))
    }

    /// Takes in what came of the deletion of the Pods of the object with this UID.
    pub fn pods_replied(
        &mut self,
        key: &Key,
        uid: &Uid,
        reply: PodsReply,
        monotonic: Duration,
    ) -> PodsReplied {
        let flow = Flow::of(key, true);
        let answer = reply.answer();
        let may_others_go =
            answer.is_some_and(|answer| self.flows.replied(&flow, &key.object, answer, monotonic));
        let Some(kind) = self.kinds.get_mut(key.target.0) else { return PodsReplied::default() };
        if may_others_go {
            kind.stale.add([&*key.object.namespace]);
        }
        let policies = kind.there(&mut self.namespaces, &key.object.namespace);
        let object = kind.objects.get_mut(&key.object).filter(|object| object.facts.uid == *uid);
        let Some(object) = object else { return PodsReplied::default() };
        if let Some(governed) = policies.governing(&object.facts) {
            // Leave was given for one.
            self.rates.spend_more(&governed.policy.uid, reply.deleted.saturating_sub(1));
        }
        object.progress = Progress::None;
        let (before, times) = match object.pods {
            ObjectPods::Some(before) => (before, 0),
            ObjectPods::Later(_, times) => (0, times),
            ObjectPods::Unknown | ObjectPods::None => (0, 0),
        };
        let deleted = before.saturating_add(reply.deleted);
        let again = || looked_at(key.target, [key.object.clone()]);
        match reply.left {
            PodsLeft::None => {
                object.pods = ObjectPods::None;
                object.has_not_failed();
                PodsReplied { wait: None, told: deleted, effects: again() }
            }
            PodsLeft::Due => {
                object.pods = ObjectPods::Some(deleted);
                object.has_not_failed();
                PodsReplied { wait: None, told: 0, effects: again() }
            }
            PodsLeft::Later => {
                let wait = ASKED_AGAIN.0.saturating_mul(1 << times.min(10)).min(ASKED_AGAIN.1);
                object.has_not_failed();
                object.pods = ObjectPods::later(wait, times.saturating_add(1), monotonic);
                PodsReplied { wait: Some(wait), told: deleted, effects: Effects::default() }
            }
            PodsLeft::Unknown(reply) => {
                object.pods = ObjectPods::Some(deleted);
                let wait = object.failed(reply.wait(), monotonic);
                PodsReplied { wait: Some(wait), told: 0, effects: Effects::default() }
            }
        }
    }
}

impl Kind {
    /// Takes in whether rules delete Pods before their objects.
    pub(super) fn need_pods(&mut self, are_needed: bool) {
        if !are_needed {
            self.pods_known = PodsKnown::NotNeeded;
        } else if self.pods_known == PodsKnown::NotNeeded {
            self.list_pods();
        }
    }

    /// Pods have to be listed anew, if rules delete any.
    pub(super) fn list_pods_again(&mut self) {
        if self.pods_known != PodsKnown::NotNeeded {
            self.list_pods();
            self.evaluate_anew();
        }
    }

    fn list_pods(&mut self) {
        self.pods_known = PodsKnown::Needed;
        for object in self.objects.iter_mut() {
            object.pods = ObjectPods::Unknown;
        }
    }

    /// Whether Pods have to be listed now. Before the objects are known nobody can tell which of them have finished by then.
    fn begin_pods_list(&mut self) -> bool {
        let begins = self.is_listed && self.pods_known == PodsKnown::Needed;
        if begins {
            self.pods_known = PodsKnown::UnderWay;
        }
        begins
    }

    fn end_pods_list(&mut self, list: &PodsToList, hints: Option<&PodHints>) {
        if self.pods_known != PodsKnown::UnderWay {
            return;
        }
        let Some(hints) = hints else {
            self.pods_known = PodsKnown::Needed;
            return;
        };
        self.pods_known = PodsKnown::Done;
        for object in self.objects.iter_mut() {
            if object.pods == ObjectPods::Unknown {
                let has = hints.has(list.label.value(), &object.key, &object.facts.uid);
                object.pods = if has { ObjectPods::Some(0) } else { ObjectPods::None };
            }
        }
    }

    /// What is known of the Pods of an object that was not known before.
    pub(super) const fn pods_of_new(&self) -> ObjectPods {
        match self.pods_known {
            PodsKnown::NotNeeded | PodsKnown::Needed => ObjectPods::Unknown,
            // The list was made before it had ended.
            PodsKnown::UnderWay | PodsKnown::Done => ObjectPods::Some(0),
        }
    }

    /// Whether it is known which objects have Pods, as far as that is needed.
    pub(super) const fn knows_pods(&self) -> bool {
        matches!(self.pods_known, PodsKnown::NotNeeded | PodsKnown::Done)
    }
}

/// Whether a rule of these policies deletes Pods before their objects.
pub(super) fn are_needed<'s>(policies: impl Iterator<Item = &'s StoredPolicy>) -> bool {
    let mut rules = policies.flat_map(|stored| stored.policy.rules.iter());
    rules.any(|rule| match &rule.action {
        RuleAction::Decide(decide) => decide.pods().is_some(),
        RuleAction::Defer => false,
    })
}
