//! Whether a deletion that takes some requests is still wanted right before the last of them (`docs/retention.md`, R4).

use std::time::Duration;

use trainjob_core::Now;

use super::{
    ClusterState,
    look::{deletion, due_of},
    object::Progress,
    step::{Deletion, Step},
};
use crate::key::Key;

impl ClusterState {
    /// Whether a deletion for which [`look`](Self::look) has given leave would be planned the same on all that is known at
    /// this moment. Changes nothing.
    #[must_use]
    pub fn still_wants(
        &mut self,
        key: &Key,
        wanted: &Deletion,
        now: Now,
        monotonic: Duration,
    ) -> bool {
        let is_live = self.liveness.is_live(Self::sources(key.target), monotonic);
        let is_known = self.book.is_listed() && self.namespaces.is_listed();
        let Some(kind) = self.kinds.get_mut(key.target.0) else { return false };
        if !is_live || !is_known || !kind.is_listed || !kind.evaluation.is_judged() {
            return false;
        }
        let policies = kind.there(&mut self.namespaces, &key.object.namespace);
        let Some(object) = kind.objects.get(&key.object) else { return false };
        let (Some(reached), Some(governed)) = (now.reached(), policies.governing(&object.facts))
        else {
            return false;
        };
        let plan = governed.plan(&object.answers(monotonic), &kind.groups, reached);
        let policy = &governed.policy.uid;
        let planned = due_of(&plan).and_then(|due| deletion(&governed, &plan, due));
        object.progress == Progress::HasLeave
            && !self.rights.is_paused(policy)
            && self.breakers.may_delete(policy, &object.facts.uid) == Some(Ok(()))
            && matches!(planned, Some(Step::Delete(planned)) if *planned == *wanted)
    }
}
