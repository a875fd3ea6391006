//! What watches tell: policies, namespaces and objects.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use trainjob_core::{Now, facts::ObjectKey};
use trainjob_retention_core::{breaker::Record, facts::Finished, metadata::Metadata, policy::Mode};

use super::{
    ClusterState, Effects,
    book::{Affected, PolicyKey, Stored},
    kind::Kind,
    looked_at, pods,
    source::Source,
};
use crate::key::{Key, TargetId};

impl ClusterState {
    /// A watch has shown that it is live.
    pub fn heard(&mut self, source: Source, now: Duration) {
        self.liveness.heard(source, now);
    }

    /// A list of this begins.
    pub fn list_begins(&mut self, source: Source) {
        match source {
            Source::Policies(kind) => self.book.list_begins(kind),
            Source::Namespaces => self.namespaces.list_begins(),
            Source::Target(target) => {
                if let Some(kind) = self.kinds.get_mut(target.0) {
                    kind.list_begins();
                }
            }
        }
    }

    /// Everything of this was listed.
    pub fn list_ends(&mut self, source: Source, now: Duration) -> Effects {
        self.liveness.heard(source, now);
        match source {
            Source::Policies(kind) => {
                let was_listed = self.book.is_listed();
                let (_, affected) = self.book.list_ends(kind);
                let affected = if was_listed { affected } else { Affected::All };
                self.policies_changed(&affected, now)
            }
            Source::Namespaces => {
                let was_listed = self.namespaces.is_listed();
                let gone = self.namespaces.list_ends();
                if was_listed {
                    return self.namespaces_changed(&gone);
                }
                self.kinds.iter_mut().for_each(Kind::evaluate_anew);
                Effects { evaluate: true, ..Effects::default() }
            }
            Source::Target(target) => {
                let Some(kind) = self.kinds.get_mut(target.0) else { return Effects::default() };
                let was_listed = kind.is_listed;
                for object in kind.unseen() {
                    self.breakers.forget(object);
                }
                let look = kind.list_ends();
                Effects { evaluate: !was_listed, ..looked_at(target, look) }
            }
        }
    }

    /// A policy is there, in this version, with this in its status for the breaker.
    pub fn policy(
        &mut self,
        key: PolicyKey,
        stored: Stored,
        record: Option<Record>,
        now: Duration,
    ) -> Effects {
        let understood = stored.as_ref();
        let is_outdated =
            understood.is_ok_and(|stored| self.breakers.read(&stored.policy.uid, record));
        let (target, _) = self.kind_of(&stored);
        let affected = self.book.seen(key, stored);
        let mut effects = self.policies_changed(&affected, now);
        let kind = target.filter(|_| is_outdated).and_then(|target| self.kinds.get_mut(target.0));
        if let Some(kind) = kind {
            kind.evaluate_anew();
            effects.evaluate = true;
        }
        effects
    }

    /// A policy is gone.
    pub fn policy_gone(&mut self, key: &PolicyKey, now: Duration) -> Effects {
        let affected = self.book.gone(key);
        self.policies_changed(&affected, now)
    }

    /// A namespace is there, in this version.
    pub fn namespace(&mut self, metadata: Metadata) -> Effects {
        let changed = self.namespaces.seen(metadata);
        self.namespaces_changed(&changed.into_iter().collect())
    }

    /// A namespace is gone.
    pub fn namespace_gone(&mut self, name: &str) -> Effects {
        self.namespaces.gone(name);
        self.flows.forget_namespace(name);
        self.namespaces_changed(&[Arc::from(name)].into())
    }

    /// An object is there, in this version. `listed` says that a list has shown it, so that nothing needs to be forgotten
    /// if it has not finished.
    pub fn object(
        &mut self,
        target: TargetId,
        text: &str,
        key: Option<&ObjectKey>,
        now: Now,
    ) -> Effects {
        let Some(kind) = self.kinds.get_mut(target.0).filter(|kind| kind.is_wanted) else {
            return Effects::default();
        };
        let Some(Finished { namespace, name, facts }) = kind.read(text) else {
            return key.map_or_else(Effects::default, |key| self.object_gone(target, key));
        };
        let named = ObjectKey::within(self.of_keys.the(&namespace), &*name);
        let known = kind.objects.get(&named).map(|known| known.facts.uid == facts.uid);
        if known == Some(false) {
            // Another object of the name.
            self.object_gone(target, &named);
        }
        let Some(kind) = self.kinds.get_mut(target.0) else { return Effects::default() };
        if !kind.insert(&named, facts) || !self.book.is_listed() || !self.namespaces.is_listed() {
            return Effects::default();
        }
        if known != Some(true) {
            self.check_loop(target, &named, Some(text));
        }
        let Some(kind) = self.kinds.get_mut(target.0) else { return Effects::default() };
        let policies = kind.there(&mut self.namespaces, &named.namespace);
        let mut look = kind.place(&named, &policies, now.reached().unwrap_or(now.stamp()));
        let (is_listed, is_judged) = (kind.is_listed, kind.evaluation.is_judged());
        if is_listed && key.is_some() && known.is_none() {
            // Also while an evaluation is under way, which cannot tell that it has just ended.
            if let Some(object) = kind.objects.get_mut(&named) {
                object.end_is_news = true;
            }
            self.observe(&Key { target, object: named.clone() }, now);
        }
        if !is_listed || !is_judged {
            // The evaluation looks at everything.
            return Effects::default();
        }
        look.push(named);
        looked_at(target, look)
    }

    /// An object is gone.
    pub fn object_gone(&mut self, target: TargetId, key: &ObjectKey) -> Effects {
        let Some(kind) = self.kinds.get_mut(target.0) else { return Effects::default() };
        if let Some(object) = kind.objects.get_mut(key) {
            self.breakers.forget(object);
        }
        let mut look = kind.remove(key);
        look.push(key.clone());
        looked_at(target, look)
    }

    /// A kind is not served any more, or in another version: what is known of its objects does not count.
    pub fn kind_gone(&mut self, target: TargetId) {
        if let Some(kind) = self.kinds.get_mut(target.0) {
            kind.forget_all();
            self.breakers.forget_kind(target);
            self.flows.forget_kind(target);
        }
    }

    fn policies_changed(&mut self, affected: &Affected, now: Duration) -> Effects {
        if *affected == Affected::None || !self.book.is_listed() {
            return Effects::default();
        }
        let policies = self.book.uids();
        self.breakers.retain(&policies);
        self.rates.retain(&policies);
        self.rights.retain(&policies);
        let mut watches = false;
        for (index, kind) in self.kinds.iter_mut().enumerate() {
            if !affected.includes(&kind.target) {
                continue;
            }
            let mut is_wanted = false;
            for stored in self.book.about(&kind.target) {
                is_wanted = true;
                let per_second = stored.deletes_per_second.map(|rate| rate.get().into());
                self.rates.set(&stored.policy.uid, per_second, now);
                self.rights.need(TargetId(index), &kind.resource, stored, now);
                if stored.policy.mode == Mode::Audit {
                    self.breakers.remove(&stored.policy.uid);
                }
            }
            if !is_wanted {
                self.breakers.forget_kind(TargetId(index));
            }
            kind.need_pods(pods::are_needed(self.book.about(&kind.target)));
            let epoch = kind.epoch;
            kind.take_over(self.book.policies(&kind.target, kind.built_in()), is_wanted);
            watches |= kind.epoch != epoch;
        }
        Effects { look: Vec::new(), evaluate: true, watches }
    }

    fn namespaces_changed(&mut self, changed: &BTreeSet<Arc<str>>) -> Effects {
        for kind in &mut self.kinds {
            for namespace in changed {
                kind.forget_namespace(namespace);
            }
            kind.stale.add(changed);
        }
        Effects { evaluate: !changed.is_empty(), ..Effects::default() }
    }
}
