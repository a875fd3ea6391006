//! The deletion of an object, or of its owner in its place.

use std::sync::Arc;

use trainjob_engine::{controller::Passed, error::RequestError, shares::Flow};
use trainjob_process::server_time::boot_time;
use trainjob_retention_core::facts;

use super::{
    Place, Remover, events,
    owners::{self, Current},
    path::{Collection, collection},
    requests::{self, Fence, delete_fenced},
    served::Served,
};
use crate::{
    cluster_state::{Deletion, Reply},
    key::Key,
};

/// What came of a deletion that was not refused.
enum Outcome {
    /// It was accepted.
    Accepted,
    /// It was not sent: the object has changed, or is not to go any more.
    Outdated,
}

impl Remover {
    pub(super) async fn delete(&self, key: &Key, deletion: &Deletion, place: &Place) -> Passed {
        let Some(served) = self.target(key.target) else { return Passed::Gone };
        let flow =
            Flow { namespace: Arc::clone(&key.object.namespace), operation: served.operation };
        if !place.enter(&flow) {
            return Passed::WaitsFor(served.operation);
        }
        let sent = place.ask().answer(self.send(key, &served, deletion)).await.flatten();
        let reply = match &sent {
            Ok(Outcome::Accepted) => Reply::Accepted,
            Ok(Outcome::Outdated) => Reply::Conflict,
            Err(error) => requests::reply(error),
        };
        let (wait, effects) = self.state().replied(key, &deletion.uid, reply, boot_time());
        self.apply(effects);
        self.queue.retry(key, wait);
        match sent {
            Ok(Outcome::Accepted) => {
                self.metrics.deleted(&served.target.kind, deletion, self.clock.likely());
                self.events.record(events::deleted(key, &served, deletion));
                Passed::Settled
            }
            Ok(Outcome::Outdated) => Passed::Settled,
            Err(error) => {
                self.metrics.failed(&served.target.kind, &error);
                tracing::debug!(object = %key.object, %error, "not deleted");
                if requests::is_forbidden(&error) {
                    self.doubt_right_to_delete(key, &served, deletion).await;
                }
                if let Some(event) = events::failed(key, &served, deletion, &error) {
                    self.events.record(event);
                }
                Passed::Failed
            }
        }
    }

    async fn send(
        &self,
        key: &Key,
        served: &Served,
        deletion: &Deletion,
    ) -> Result<Outcome, RequestError> {
        let Some(version) = &served.version else {
            return Err(RequestError::Unbuildable("the kind is not served".into()));
        };
        let target = &served.target;
        let objects = collection(&target.api_group, version, &target.resource);
        let objects = objects.in_namespace(&key.object.namespace);
        let Some(owner) = &deletion.owner else {
            self.leader.check()?;
            requests::delete(&self.client, &objects, &key.object.name, deletion).await?;
            return Ok(Outcome::Accepted);
        };
        if !target.owner_delete {
            let denied = "the configuration lets no owner be deleted";
            return Err(RequestError::Unbuildable(denied.into()));
        }
        self.delete_owner(key, &objects, deletion, owner).await
    }

    /// Deletes the owner, if the object is still in the version that the deletion was planned on, and is still to go by
    /// how the owner is now: it may have a hold that it had not then (R25).
    ///
    /// The version of the owner is read before the object. Whatever runs the owner again changes the object first, as Kueue
    /// admits a Workload before it resumes the job: if the object has not changed by then, the owner was not running in the
    /// version that was read, and in a later one the DELETE is refused.
    async fn delete_owner(
        &self,
        key: &Key,
        objects: &Collection,
        deletion: &Deletion,
        owner: &facts::Controller,
    ) -> Result<Outcome, RequestError> {
        let namespace = &key.object.namespace;
        let Current { path, fence, answer } = owners::read(&self.client, namespace, owner).await?;
        let found = requests::fence_of(&self.client, objects, &key.object.name).await?;
        let is_unchanged = found.is_some_and(|found| found == Fence::of(deletion));
        let is_wanted = || {
            let (mut state, now, monotonic) = (self.state(), self.clock.now(), boot_time());
            state.answered(key, &owner.uid, answer, now, monotonic);
            state.still_wants(key, deletion, now, monotonic)
        };
        if !is_unchanged || !is_wanted() {
            return Ok(Outcome::Outdated);
        }
        self.leader.check()?;
        delete_fenced(&self.client, &path, &owner.name, fence, deletion.propagation).await?;
        Ok(Outcome::Accepted)
    }
}
