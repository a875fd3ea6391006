//! The finished objects of one target kind, and what policies say of them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use trainjob_api::time::Timestamp;
use trainjob_core::facts::ObjectKey;
use trainjob_retention_core::{
    facts::{Facts, Finished, Reader},
    interner::Interner,
    keep_last::Groups,
    kind::{BuiltIn, GroupKind},
    labels::LabelKeys,
    policies::{Governed, NamespacePolicies, Policies},
    policy::{Lifetime, RuleAction},
    selection::Selection,
    uid::Uid,
};

use super::{
    breakers::Counted,
    found::Found,
    namespaces::Namespaces,
    object::{Object, Place},
    objects::Objects,
    rights::Resource,
    stale::Stale,
    surveys::Surveys,
};
use crate::config::Target;

/// How far a kind is evaluated: every object is looked at after each change of policies or of everything that is known,
/// and before that nothing is deleted (`docs/retention.md`, R63 and R64).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Evaluation {
    /// It is under way.
    Under {
        /// What is done with each object.
        round: Round,
        /// Up to which object it was done; `None`: with none.
        after: Option<ObjectKey>,
    },
    /// All objects were looked at.
    Done,
}

/// A round of an evaluation.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) enum Round {
    /// Places in groups are noted.
    #[default]
    Placing,
    /// What is due is counted, for each policy.
    Counting(BTreeMap<Uid, Counted>),
    /// What is due is queued. Policies are judged by now, so it may be deleted.
    Queueing,
}

impl Evaluation {
    /// This round, from the first object on.
    pub(super) const fn begins(round: Round) -> Self {
        Self::Under { round, after: None }
    }

    /// What is due is to be queued again, if it was queued before.
    pub(super) fn queue_again(&mut self) {
        if self.is_judged() {
            *self = Self::begins(Round::Queueing);
        }
    }

    /// An object is gone: if it was counted as due, it is not any more.
    fn uncount(&mut self, uid: &Uid) {
        if let Self::Under { round: Round::Counting(counted), .. } = self {
            for counted in counted.values_mut() {
                counted.due.remove(uid);
            }
        }
    }

    /// Whether objects may be deleted.
    pub(super) const fn is_judged(&self) -> bool {
        matches!(self, Self::Done | Self::Under { round: Round::Queueing, .. })
    }
}

/// How far it is known which objects of a kind have Pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum PodsKnown {
    /// No rule asks for that.
    #[default]
    NotNeeded,
    /// Pods have to be listed.
    Needed,
    /// They are being listed.
    UnderWay,
    /// They were.
    Done,
}

/// A target kind.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) target: GroupKind,
    pub(super) resource: Resource,
    built_in: Option<BuiltIn>,
    reader: Reader,
    /// What the reader reads.
    definitions: usize,
    /// What of the kind has to be read.
    pub(super) selection: Selection,
    label_keys: LabelKeys,
    pub(super) policies: Policies,
    /// Whether any policy is about it.
    pub(super) is_wanted: bool,
    /// How often the reader has changed. What an older one has read does not count.
    pub(super) epoch: u64,
    there: HashMap<Arc<str>, Arc<NamespacePolicies>>,
    pub(super) objects: Objects,
    by_uid: HashMap<Uid, ObjectKey>,
    pub(super) groups: Groups,
    interner: Interner,
    /// The number of the last list.
    list: u32,
    /// What had to be read when it began.
    list_epoch: u64,
    /// Whether a whole list was read by the present reader.
    pub(super) is_listed: bool,
    pub(super) evaluation: Evaluation,
    /// How many objects of the last list could not be read.
    pub(super) skipped: u64,
    /// How far it is known which objects have Pods.
    pub(super) pods_known: PodsKnown,
    /// Namespaces that have to be looked at again.
    pub(super) stale: Stale,
    /// What its surveys need.
    pub(super) surveys: Surveys,
}

impl Kind {
    pub(super) fn new(target: &Target) -> Self {
        let Target { api_group, kind, resource, .. } = target;
        let group: Arc<str> = api_group.as_str().into();
        let target = GroupKind { group: Arc::clone(&group), kind: kind.as_str().into() };
        let built_in = target.built_in();
        Self {
            reader: Reader::new(built_in, Vec::new(), LabelKeys::default()),
            definitions: 0,
            selection: Selection::default(),
            label_keys: LabelKeys::default(),
            policies: Policies::new(built_in, Vec::new(), Vec::new()),
            is_wanted: false,
            epoch: 0,
            there: HashMap::new(),
            objects: Objects::default(),
            by_uid: HashMap::new(),
            groups: Groups::default(),
            interner: Interner::default(),
            list: 0,
            list_epoch: 0,
            is_listed: false,
            evaluation: Evaluation::begins(Round::Placing),
            skipped: 0,
            pods_known: PodsKnown::default(),
            stale: Stale::default(),
            surveys: Surveys::default(),
            target,
            resource: Resource { group, name: resource.as_str().into() },
            built_in,
        }
    }

    pub(super) const fn built_in(&self) -> Option<BuiltIn> {
        self.built_in
    }

    /// Takes over other policies. Everything is evaluated anew; if they read what was not read, it is listed anew, too.
    pub(super) fn take_over(&mut self, policies: Policies, is_wanted: bool) {
        let definitions = policies.definitions();
        let read_all = self.label_keys.include(policies.label_keys())
            && definitions.len() == self.definitions
            && definitions == self.policies.definitions();
        if !read_all || is_wanted != self.is_wanted {
            self.definitions = definitions.len();
            self.selection = Selection::of(definitions.iter().map(|definition| &**definition));
            self.label_keys = policies.label_keys().clone();
            self.reader = Reader::new(self.built_in, definitions, self.label_keys.clone());
            self.epoch += 1;
            self.is_listed = false;
        }
        (self.policies, self.is_wanted) = (policies, is_wanted);
        if !is_wanted {
            self.forget_all();
        }
        self.evaluate_anew();
    }

    /// Nothing is known any more.
    pub(super) fn forget_all(&mut self) {
        self.objects.clear();
        self.by_uid.clear();
        self.groups = Groups::default();
        self.interner.forget_unused();
        self.is_listed = false;
        self.list_pods_again();
        self.evaluate_anew();
    }

    pub(super) fn evaluate_anew(&mut self) {
        self.there.clear();
        self.surveys.forget_found();
        self.stale.clear();
        self.evaluation = Evaluation::begins(Round::Placing);
    }

    /// The policies that apply in a namespace have changed.
    pub(super) fn forget_namespace(&mut self, namespace: &str) {
        self.there.remove(namespace);
        self.surveys.forget_found();
    }

    pub(super) fn list_begins(&mut self) {
        self.list = self.list.wrapping_add(1);
        (self.list_epoch, self.skipped) = (self.epoch, 0);
    }

    /// What the list that has ended did not show.
    pub(super) fn unseen(&mut self) -> impl Iterator<Item = &mut Object> {
        let (list, counts) = (self.list, self.list_epoch == self.epoch);
        self.objects.iter_mut().filter(move |object| counts && object.list != list)
    }

    /// A list has ended: what it did not show is gone.
    pub(super) fn list_ends(&mut self) -> BTreeSet<ObjectKey> {
        if self.list_epoch != self.epoch {
            // Some of it was read for other policies. Another list follows.
            return BTreeSet::new();
        }
        let list = self.list;
        let gone = self.objects.iter().filter(|object| object.list != list);
        let gone: Vec<_> = gone.map(|object| object.key.clone()).collect();
        let looked_at = gone.iter().flat_map(|key| self.remove(key)).collect();
        if !self.is_listed {
            self.is_listed = true;
            self.evaluate_anew();
        }
        looked_at
    }

    /// Up to so many objects after this one.
    pub(super) fn slice(&self, after: Option<&ObjectKey>, count: usize) -> Vec<ObjectKey> {
        self.objects.after(after).take(count).map(|object| object.key.clone()).collect()
    }

    /// Reads an object; `None` if it has not finished, or cannot be read.
    pub(super) fn read(&mut self, text: &str) -> Option<Finished> {
        match self.reader.read(text, &mut self.interner) {
            Ok(finished) => finished,
            Err(error) => {
                self.skipped += 1;
                tracing::debug!(kind = %self.target.kind, %error, "an object cannot be read");
                None
            }
        }
    }

    /// Remembers an object. False if this version is known.
    pub(super) fn insert(&mut self, key: &ObjectKey, facts: Facts) -> bool {
        let (list, pods) = (self.list, self.pods_of_new());
        match self.objects.get_mut(key) {
            Some(known) if known.facts == facts => {
                known.list = list;
                false
            }
            Some(known) => {
                known.changed(facts, list, pods);
                true
            }
            None => {
                self.objects.insert(Object::new(key.clone(), facts, list, pods));
                true
            }
        }
    }

    /// Forgets an object. Returns the objects that have to be looked at because of that.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> Vec<ObjectKey> {
        let Some(object) = self.objects.remove(key) else { return Vec::new() };
        self.evaluation.uncount(&object.facts.uid);
        self.leave(&object.places, &object.facts.uid)
    }

    fn leave(&mut self, places: &[Place], uid: &Uid) -> Vec<ObjectKey> {
        self.by_uid.remove(uid);
        for place in places {
            self.groups.leave(&place.candidate);
        }
        let groups = places.iter().map(|place| (&place.candidate.group, place.count));
        groups.flat_map(|(group, count)| self.concerned(group, count)).collect()
    }

    /// The objects with these UIDs.
    pub(super) fn named<'u>(&self, uids: impl Iterator<Item = &'u Uid>) -> Vec<ObjectKey> {
        uids.filter_map(|uid| self.by_uid.get(uid).cloned()).collect()
    }

    /// The policies that apply in a namespace.
    pub(super) fn there(
        &mut self,
        namespaces: &mut Namespaces,
        namespace: &Arc<str>,
    ) -> Arc<NamespacePolicies> {
        if let Some(known) = self.there.get(namespace) {
            return Arc::clone(known);
        }
        let keys = self.policies.namespace_label_keys();
        let found = self.policies.in_namespace(&namespaces.get(namespace, keys));
        let found = Arc::new(found);
        self.there.insert(Arc::clone(namespace), Arc::clone(&found));
        found
    }

    /// Notes the places of an object in groups. Returns the objects that have to be looked at because these have changed.
    pub(super) fn place(
        &mut self,
        key: &ObjectKey,
        policies: &NamespacePolicies,
        now: Timestamp,
    ) -> Vec<ObjectKey> {
        let Some(object) = self.objects.get(key) else { return Vec::new() };
        let answers = object.known_answers();
        let governing = policies.governing(&object.facts).into_iter();
        let governed = governing.chain(policies.audited(&object.facts));
        let places = governed.filter_map(|governed| {
            let candidate = governed.candidate(&answers, now)?;
            Some(Place { candidate, count: kept(&governed) })
        });
        let places: Box<[Place]> = places.collect();
        if places == object.places {
            return Vec::new();
        }
        let (old, uid) = (object.places.clone(), object.facts.uid.clone());
        let mut looked_at = self.leave(&old, &uid);
        for place in &places {
            self.groups.enter(&place.candidate);
        }
        if !places.is_empty() {
            self.by_uid.insert(uid, key.clone());
        }
        for place in &places {
            looked_at.extend(self.concerned(&place.candidate.group, place.count));
        }
        if let Some(object) = self.objects.get_mut(key) {
            (object.places, object.found) = (places, Found::default());
        }
        looked_at
    }
}

/// How many objects of a group the rule that matches keeps.
fn kept(governed: &Governed<'_, '_>) -> u16 {
    let RuleAction::Decide(decide) = &governed.rule.action else { return 0 };
    match decide.lifetime() {
        Lifetime::KeepLast(keep_last) => keep_last.count(),
        Lifetime::Ttl(_) | Lifetime::Never => 0,
    }
}
