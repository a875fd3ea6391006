//! PodGroups, of either scheduler.

use kube::api::{Patch, PatchParams, Preconditions, PropagationPolicy};
use serde_json::{Value, json};
use trainjob_api::{
    constants::FIELD_MANAGER,
    podgroup::{CoschedulingPodGroup, VolcanoPodGroup},
};
use trainjob_core::{
    build::PodGroup,
    facts::{PodGroupSpec, Scheduler},
    observed::Reading,
    pass::Reply,
};
use trainjob_engine::{error::RequestError, versions::Source};

use super::{Context, Executor, delete_params, request};
use crate::kinds::PodGroupKind;

impl Executor {
    pub(super) async fn create_pod_group(
        &self,
        of: Context<'_>,
        group: &PodGroup,
    ) -> Result<(), RequestError> {
        let PodGroup { metadata, spec } = group.clone();
        match spec {
            PodGroupSpec::Coscheduling(spec) => {
                let created = self.create(of, &CoschedulingPodGroup { metadata, spec }).await?;
                self.saw_group(of, created);
            }
            PodGroupSpec::Volcano(spec) => {
                let created = self.create(of, &VolcanoPodGroup { metadata, spec }).await?;
                self.saw_group(of, created);
            }
        }
        Ok(())
    }

    pub(super) async fn update_pod_group(
        &self,
        of: Context<'_>,
        scheduler: Scheduler,
        fence: (&str, &str),
        spec: &Value,
    ) -> Result<(), RequestError> {
        match scheduler {
            Scheduler::Coscheduling => {
                self.update_group::<CoschedulingPodGroup>(of, fence, spec).await
            }
            Scheduler::Volcano => self.update_group::<VolcanoPodGroup>(of, fence, spec).await,
        }
    }

    pub(super) async fn delete_pod_group(
        &self,
        of: Context<'_>,
        scheduler: Scheduler,
        uid: &str,
    ) -> Result<(), RequestError> {
        match scheduler {
            Scheduler::Coscheduling => self.delete_group::<CoschedulingPodGroup>(of, uid).await,
            Scheduler::Volcano => self.delete_group::<VolcanoPodGroup>(of, uid).await,
        }
    }

    /// One that is there is taken in, and judged by its owner when the job is planned again.
    pub(super) async fn read_pod_group(
        &self,
        of: Context<'_>,
        group: &PodGroup,
    ) -> Result<Reply, RequestError> {
        match group.spec.scheduler() {
            Scheduler::Coscheduling => self.read_group::<CoschedulingPodGroup>(of).await?,
            Scheduler::Volcano => self.read_group::<VolcanoPodGroup>(of).await?,
        }
        Ok(Reply::Done)
    }

    async fn read_group<K: PodGroupKind>(&self, of: Context<'_>) -> Result<(), RequestError> {
        if let Reading::Found(there) = self.read::<K>(of, &of.job.key.name).await? {
            self.saw_group(of, there);
        }
        Ok(())
    }

    async fn update_group<K: PodGroupKind>(
        &self,
        of: Context<'_>,
        (uid, resource_version): (&str, &str),
        spec: &Value,
    ) -> Result<(), RequestError> {
        let patch = json!({
            "metadata": { "uid": uid, "resourceVersion": resource_version },
            "spec": spec,
        });
        let request = request::<K>(of.job).patch(
            &of.job.key.name,
            &PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() },
            &Patch::Merge(patch),
        );
        let updated = self.send::<K>(of, request).await?;
        self.saw_group(of, updated);
        Ok(())
    }

    async fn delete_group<K: PodGroupKind>(
        &self,
        of: Context<'_>,
        uid: &str,
    ) -> Result<(), RequestError> {
        let preconditions = Preconditions { uid: Some(uid.into()), resource_version: None };
        let params = delete_params(PropagationPolicy::Background, preconditions);
        let request = request::<K>(of.job).delete(&of.job.key.name, &params);
        match self.delete::<K>(of, request).await? {
            Some(terminating) => self.saw_group(of, terminating),
            None => self.cache.forget_pod_group(K::SCHEDULER, &of.job.key, uid),
        }
        Ok(())
    }

    fn saw_group<K: PodGroupKind>(&self, of: Context<'_>, group: K) {
        let source = Source::Reply { lists: *of.lists.pod_groups.of(K::SCHEDULER) };
        self.cache.put_pod_group(K::SCHEDULER, &of.job.key, group.facts(), source);
    }
}
