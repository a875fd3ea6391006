//! PodGroups, of whatever scheduler.

use kube::api::{Patch, PatchParams, Preconditions, PropagationPolicy};
use serde_json::{Value, json};
use trainjob_api::{constants::FIELD_MANAGER, podgroup};
use trainjob_core::{
    build::PodGroup,
    facts::PodGroupFacts,
    observed::Reading,
    pass::Reply,
    scheduler::{PodGroupKind, Scheduler},
    with_scheduler,
};
use trainjob_engine::{error::RequestError, versions::Source};

use super::{Context, Executor, delete_params, request};

impl Executor {
    pub(super) async fn create_pod_group(
        &self,
        of: Context<'_>,
        group: &PodGroup,
    ) -> Result<(), RequestError> {
        let PodGroup { metadata, spec } = group.clone();
        with_scheduler!(spec, S(spec) => {
            let group = podgroup::PodGroup::<S>::new(metadata, spec);
            let created = self.create(of, &group).await?;
            self.saw_group(of, created);
        });
        Ok(())
    }

    pub(super) async fn update_pod_group(
        &self,
        of: Context<'_>,
        scheduler: Scheduler,
        fence: (&str, &str),
        spec: &Value,
    ) -> Result<(), RequestError> {
        with_scheduler!(scheduler, S => self.update_group::<S>(of, fence, spec).await)
    }

    pub(super) async fn delete_pod_group(
        &self,
        of: Context<'_>,
        scheduler: Scheduler,
        uid: &str,
    ) -> Result<(), RequestError> {
        with_scheduler!(scheduler, S => self.delete_group::<S>(of, uid).await)
    }

    /// One that is there is taken in, and judged by its owner when the job is planned again.
    pub(super) async fn read_pod_group(
        &self,
        of: Context<'_>,
        group: &PodGroup,
    ) -> Result<Reply, RequestError> {
        with_scheduler!(group.spec.scheduler(), S => self.read_group::<S>(of).await?);
        Ok(Reply::Done)
    }

    async fn read_group<S: PodGroupKind>(&self, of: Context<'_>) -> Result<(), RequestError> {
        let read = self.read::<podgroup::PodGroup<S>>(of, &of.job.key.name).await?;
        if let Reading::Found(there) = read {
            self.saw_group(of, there);
        }
        Ok(())
    }

    async fn update_group<S: PodGroupKind>(
        &self,
        of: Context<'_>,
        (uid, resource_version): (&str, &str),
        spec: &Value,
    ) -> Result<(), RequestError> {
        let patch = json!({
            "metadata": { "uid": uid, "resourceVersion": resource_version },
            "spec": spec,
        });
        let request = request::<podgroup::PodGroup<S>>(of.job).patch(
            &of.job.key.name,
            &PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() },
            &Patch::Merge(patch),
        );
        let updated = self.send::<podgroup::PodGroup<S>>(of, request).await?;
        self.saw_group(of, updated);
        Ok(())
    }

    async fn delete_group<S: PodGroupKind>(
        &self,
        of: Context<'_>,
        uid: &str,
    ) -> Result<(), RequestError> {
        let preconditions = Preconditions { uid: Some(uid.into()), resource_version: None };
        let params = delete_params(PropagationPolicy::Background, preconditions);
        let request = request::<podgroup::PodGroup<S>>(of.job).delete(&of.job.key.name, &params);
        match self.delete::<podgroup::PodGroup<S>>(of, request).await? {
            Some(terminating) => self.saw_group(of, terminating),
            None => self.cache.forget_pod_group(S::SCHEDULER, &of.job.key, uid),
        }
        Ok(())
    }

    fn saw_group<S: PodGroupKind>(&self, of: Context<'_>, group: podgroup::PodGroup<S>) {
        let source = Source::Reply { lists: *of.lists.pod_groups.of(S::SCHEDULER) };
        let facts = PodGroupFacts::of(&group.metadata, group.spec.into());
        self.cache.put_pod_group(S::SCHEDULER, &of.job.key, facts, source);
    }
}
