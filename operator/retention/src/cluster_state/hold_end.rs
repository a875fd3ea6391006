//! The end of a hold, which comes by time alone, and what it changes for others (`docs/retention.md`, R21).

use trainjob_api::time::Timestamp;
use trainjob_core::facts::ObjectKey;
use trainjob_retention_core::{breaker::DueObject, policies::NamespacePolicies};

use super::{breakers::Breakers, kind::Kind};

impl Kind {
    /// Lets an object whose hold has ended take its place in its group. Others that this lets go are looked at with the next
    /// evaluation.
    ///
    /// The breaker is told of them at once. They are due since the end of the hold, so if everything counted as looked at in
    /// between, it would take that for an edit (R41).
    pub(super) fn note_end_of_hold(
        &mut self,
        key: &ObjectKey,
        policies: &NamespacePolicies,
        breakers: &mut Breakers,
        now: Timestamp,
    ) {
        if self.objects.get(key).is_none_or(|object| object.facts.wishes.hold.is_none()) {
            return;
        }
        let concerned = self.place(key, policies, now);
        if self.evaluation.is_judged() {
            for other in &concerned {
                self.observe(other, policies, breakers, now);
            }
        }
        self.stale.add_objects(concerned);
    }

    /// Tells the breaker whether an object is due, in a namespace with these policies.
    pub(super) fn observe(
        &mut self,
        key: &ObjectKey,
        policies: &NamespacePolicies,
        breakers: &mut Breakers,
        now: Timestamp,
    ) {
        let Some(object) = self.objects.get_mut(key) else { return };
        let answers = object.known_answers();
        let governed = policies.governing(&object.facts);
        let plan = governed.map(|governed| governed.plan(&answers, &self.groups, now));
        let due = plan.as_ref().and_then(|plan| {
            let due = DueObject::of(plan, &key.namespace, now)?;
            Some((&plan.policy.uid, due))
        });
        breakers.observe(object, due, now);
    }
}
