//! Pods: whether a job still has running ones.
//!
//! One that counts is enough to know that a job is not released, so pages are small: the first has one Pod. They grow
//! only while they show Pods that do not count. Everything about a Pod is asked for only when users are to be told of it.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ListParams, PartialObjectMeta},
};
use trainjob_api::{
    constants::{JOBSET_NAME_LABEL, JOBSET_UID_LABEL},
    time::Timestamp,
};
use trainjob_core::{
    facts::ObjectKey,
    pass::Reply,
    running_pods::{Maker, PodCheck, RunningPod, RunningPods},
};
use trainjob_engine::{
    answer::{Answer, or_later},
    clock::Clock,
    error::RequestError,
};

use super::{Context, Executor, Replied};

/// Pods that still hold resources.
pub const RUNNING: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// How many times larger each page is than the one before, and the largest.
const GROWTH: u32 = 8;
const LARGEST: u32 = 500;
/// How many Pods are looked at for what users are told.
const LOOK_AT: u32 = 10;

impl Executor {
    /// Asks whether Pods run that a JobSet of the job made. `foreign` is the UID of a JobSet of the job's name that is
    /// not the job's.
    pub(super) async fn check_pods(
        &self,
        of: Context<'_>,
        foreign: Option<&str>,
        name_them: bool,
    ) -> Result<Replied, RequestError> {
        let check = Check {
            client: self.client.clone(),
            clock: self.clock.clone(),
            key: of.job.key.clone(),
            foreign: foreign.map(str::to_owned),
        };
        let check = self.admitted(of, check.run(name_them)).await?;
        Ok(match or_later(check).await? {
            Answer::Now(found) => Replied::Now(Reply::Pods(found)),
            Answer::Later(answer) => Replied::Later(answer),
        })
    }
}

/// The check of one job's Pods.
struct Check {
    client: Client,
    clock: Clock,
    key: ObjectKey,
    foreign: Option<String>,
}

impl Check {
    async fn run(self, name_them: bool) -> Result<PodCheck, kube::Error> {
        let mut found = PodCheck::default();
        let Some(first) = self.first(&mut found.stray).await? else { return Ok(found) };
        found.running =
            Some(if name_them { self.named(first).await? } else { RunningPods::unnamed() });
        Ok(found)
    }

    /// The metadata of the first Pod that counts.
    async fn first(
        &self,
        stray: &mut Option<String>,
    ) -> Result<Option<PartialObjectMeta<Pod>>, kube::Error> {
        let api: Api<PartialObjectMeta<Pod>> =
            Api::namespaced(self.client.clone(), &self.key.namespace);
        let mut size = 1;
        let mut params = self.params();
        loop {
            let page = api.list(&params.clone().limit(size)).await?;
            for pod in page.items {
                match Maker::of(&pod.metadata, self.foreign.as_deref()) {
                    Maker::JobSet => return Ok(Some(pod)),
                    Maker::ForeignJobSet => {}
                    Maker::Somebody => *stray = stray.take().or(pod.metadata.name),
                }
            }
            let token = page.metadata.continue_.filter(|token| !token.is_empty());
            let Some(token) = token else { return Ok(None) };
            params.continue_token = Some(token);
            size = size.saturating_mul(GROWTH).min(LARGEST);
        }
    }

    /// What is to be said of the running Pods, of which `first` is one.
    async fn named(&self, first: PartialObjectMeta<Pod>) -> Result<RunningPods, kube::Error> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &self.key.namespace);
        let page = api.list(&self.params().limit(LOOK_AT)).await?;
        let more = page.metadata.continue_.is_some_and(|token| !token.is_empty());
        let now = Timestamp::from(self.clock.likely());
        let found = RunningPods::among(&page.items, self.foreign.as_deref(), more, now);
        Ok(found.unwrap_or_else(|| {
            let bare = Pod { metadata: first.metadata, ..Pod::default() };
            RunningPods { named: vec![RunningPod::of(&bare, now)], more }
        }))
    }

    /// All running Pods that have the label of the job's JobSet, but for those that are known to be a foreign one's.
    fn params(&self) -> ListParams {
        let mut labels = format!("{JOBSET_NAME_LABEL}={}", self.key.name);
        if let Some(foreign) = &self.foreign {
            labels = format!("{labels},{JOBSET_UID_LABEL}!={foreign}");
        }
        ListParams::default().labels(&labels).fields(RUNNING)
    }
}
