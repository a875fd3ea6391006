//! What people do: they edit objects, namespaces and policies, and acknowledge trips.

use super::{
    super::{
        cluster::{Id, NAMESPACES, POLICIES},
        oracle::Cause,
    },
    Count, MOST_OBJECTS, TTLS, World,
};

impl World {
    pub(super) fn people(&mut self) {
        let what = self.random.range(0, 1_000);
        if what >= 260 {
            return;
        }
        let before = self.cluster.due(self.now);
        let policy = self.random.index(POLICIES);
        let cause = match what {
            0..60 => {
                let few = usize::try_from(self.random.range(1, 4)).unwrap();
                self.edit_some(few)
            }
            60..90 => self.edit_some(MOST_OBJECTS),
            90..96 => {
                let ids: Vec<Id> = self.cluster.objects.keys().copied().collect();
                self.edit(&ids)
            }
            96..110 => {
                let namespace = self.random.index(NAMESPACES);
                let namespace = &mut self.cluster.namespaces[namespace];
                namespace.selected[policy] = !namespace.selected[policy];
                Cause::Edit
            }
            110..125 => {
                let ttl = TTLS[self.random.index(TTLS.len())];
                self.cluster.edit_policy(policy, |policy| {
                    policy.ttl = ttl;
                    policy.edition += 1;
                });
                Cause::Policy(policy)
            }
            125..135 => {
                self.cluster.edit_policy(policy, |policy| policy.enforces = !policy.enforces);
                Cause::Policy(policy)
            }
            135..150 => {
                let chance = self.random.range(1, 60);
                let random = &mut self.random;
                self.cluster.objects.retain(|_, _| !random.percent(chance));
                Cause::Edit
            }
            150..210 => {
                self.keep_or_release();
                Cause::Edit
            }
            _ => return self.annotate(policy),
        };
        self.count(Count::Edits, 1);
        self.changed(&before, cause);
    }

    /// Edits objects of one namespace.
    fn edit_some(&mut self, most: usize) -> Cause {
        let namespace = self.random.index(NAMESPACES);
        let objects = self.cluster.objects.iter();
        let within = objects.filter(|(_, object)| object.namespace == namespace);
        let ids: Vec<Id> = within.map(|(id, _)| *id).take(most).collect();
        self.edit(&ids)
    }

    fn edit(&mut self, ids: &[Id]) -> Cause {
        let policy = self.random.index(POLICIES);
        let ttl = TTLS[self.random.index(TTLS.len())];
        match self.random.range(0, 5) {
            0 | 1 => self.cluster.edit(ids, |object| object.selected[policy] = true),
            2 => self.cluster.edit(ids, |object| object.selected[policy] = false),
            3 => self.cluster.edit(ids, |object| object.ttl = Some(ttl)),
            _ => self
                .cluster
                .edit(ids, |object| (object.selected, object.ttl) = ([true; 2], Some(0))),
        }
        Cause::Edit
    }

    fn keep_or_release(&mut self) {
        let ids: Vec<Id> = self.cluster.objects.keys().copied().collect();
        let keep = self.random.percent(40);
        let chance = if keep { 10 } else { 70 };
        let ids: Vec<Id> = ids.into_iter().filter(|_| self.random.percent(chance)).collect();
        self.cluster.edit(&ids, |object| object.kept = keep);
    }

    /// Somebody acknowledges: what the status says, or something of before.
    fn annotate(&mut self, policy: usize) {
        let current = self.trip_id(policy).filter(|_| self.random.percent(60));
        let id = current.or_else(|| {
            let length = self.ids.len();
            (length > 0).then(|| self.ids[self.random.index(length)].clone())
        });
        let Some(id) = id else { return };
        let policy = &mut self.cluster.policies[policy];
        policy.annotation = Some(id);
        policy.version += 1;
    }

    pub(super) fn acknowledge_all(&mut self) {
        for policy in 0..POLICIES {
            if let Some(id) = self.trip_id(policy) {
                let policy = &mut self.cluster.policies[policy];
                policy.annotation = Some(id);
                policy.version += 1;
            }
        }
    }

    pub(super) fn trip_id(&self, policy: usize) -> Option<String> {
        let status = self.cluster.policies[policy].status.as_ref()?;
        status.trip.as_ref().map(|trip| trip.id.to_string())
    }
}
