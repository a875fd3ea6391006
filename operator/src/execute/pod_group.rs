//! PodGroups, of either scheduler.

use kube::{
    Resource,
    api::{Patch, PatchParams, Preconditions, PropagationPolicy},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use trainjob_api::{
    constants::FIELD_MANAGER,
    podgroup::{CoschedulingPodGroup, VolcanoPodGroup},
};
use trainjob_core::{
    facts::{PodGroupFacts, PodGroupSpec, Scheduler},
    observed::Reading,
    runtime::PodGroup,
};

use super::{Executor, Pass, create, delete_params, post_params, request};
use crate::{
    cache::Source,
    error::{Class, RequestError},
};

/// A kind of PodGroup.
trait Kind: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static {
    const SCHEDULER: Scheduler;

    fn facts(self) -> PodGroupFacts;
}

impl Kind for CoschedulingPodGroup {
    const SCHEDULER: Scheduler = Scheduler::Coscheduling;

    fn facts(self) -> PodGroupFacts {
        PodGroupFacts::of(&self.metadata, PodGroupSpec::Coscheduling(self.spec))
    }
}

impl Kind for VolcanoPodGroup {
    const SCHEDULER: Scheduler = Scheduler::Volcano;

    fn facts(self) -> PodGroupFacts {
        PodGroupFacts::of(&self.metadata, PodGroupSpec::Volcano(self.spec))
    }
}

impl Executor {
    pub(super) async fn create_pod_group(
        &self,
        pass: Pass<'_>,
        group: &PodGroup,
    ) -> Result<(), RequestError> {
        let PodGroup { metadata, spec } = group.clone();
        match spec {
            PodGroupSpec::Coscheduling(spec) => {
                self.create_group(pass, &CoschedulingPodGroup { metadata, spec }).await
            }
            PodGroupSpec::Volcano(spec) => {
                self.create_group(pass, &VolcanoPodGroup { metadata, spec }).await
            }
        }
    }

    pub(super) async fn update_pod_group(
        &self,
        pass: Pass<'_>,
        scheduler: Scheduler,
        fence: (&str, &str),
        spec: &Value,
    ) -> Result<(), RequestError> {
        match scheduler {
            Scheduler::Coscheduling => {
                self.update_group::<CoschedulingPodGroup>(pass, fence, spec).await
            }
            Scheduler::Volcano => self.update_group::<VolcanoPodGroup>(pass, fence, spec).await,
        }
    }

    pub(super) async fn delete_pod_group(
        &self,
        pass: Pass<'_>,
        scheduler: Scheduler,
        uid: &str,
    ) -> Result<(), RequestError> {
        match scheduler {
            Scheduler::Coscheduling => self.delete_group::<CoschedulingPodGroup>(pass, uid).await,
            Scheduler::Volcano => self.delete_group::<VolcanoPodGroup>(pass, uid).await,
        }
    }

    /// One that is there is taken in, and judged by its owner when the job is planned again.
    async fn create_group<K: Kind + serde::Serialize>(
        &self,
        pass: Pass<'_>,
        group: &K,
    ) -> Result<(), RequestError> {
        let request = create(&request::<K>(pass.job), &post_params(), group)?;
        match self.send::<K>(pass, Ok(request)).await {
            Ok(created) => {
                self.saw_group(pass, created);
                Ok(())
            }
            Err(error) if error.class() == Class::Exists => {
                if let Reading::Found(there) = self.read::<K>(pass, &pass.job.key.name).await? {
                    self.saw_group(pass, there);
                }
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn update_group<K: Kind>(
        &self,
        pass: Pass<'_>,
        (uid, resource_version): (&str, &str),
        spec: &Value,
    ) -> Result<(), RequestError> {
        let patch = json!({
            "metadata": { "uid": uid, "resourceVersion": resource_version },
            "spec": spec,
        });
        let request = request::<K>(pass.job).patch(
            &pass.job.key.name,
            &PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() },
            &Patch::Merge(patch),
        );
        let updated = self.send::<K>(pass, request).await?;
        self.saw_group(pass, updated);
        Ok(())
    }

    async fn delete_group<K: Kind>(&self, pass: Pass<'_>, uid: &str) -> Result<(), RequestError> {
        let preconditions = Preconditions { uid: Some(uid.into()), resource_version: None };
        let params = delete_params(PropagationPolicy::Background, preconditions);
        let request = request::<K>(pass.job).delete(&pass.job.key.name, &params);
        match self.delete::<K>(pass, request).await? {
            Some(terminating) => self.saw_group(pass, terminating),
            None => self.cache.forget_pod_group(K::SCHEDULER, &pass.job.key, uid),
        }
        Ok(())
    }

    fn saw_group<K: Kind>(&self, pass: Pass<'_>, group: K) {
        let lists = match K::SCHEDULER {
            Scheduler::Coscheduling => pass.lists.coscheduling,
            Scheduler::Volcano => pass.lists.volcano,
        };
        let source = Source::Reply { lists };
        self.cache.put_pod_group(K::SCHEDULER, &pass.job.key, group.facts(), source);
    }
}
