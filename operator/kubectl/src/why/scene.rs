//! Everything that an answer is made of.

use k8s_openapi::{
    api::core::v1::{Event, Pod},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{Client, api::DynamicObject};
use trainjob_api::{TrainJob, conditions, jobset::JobSetView, time::Timestamp};
use trainjob_core::{
    facts::{JobFacts, ObjectKey},
    lifecycle::deadline::Clock,
    running_pods::Maker,
};

use super::own::{is_job_of, is_of_another, is_owned_by};
use crate::{access::Access, failure::Failure, gpus::has_ended, phase, read};

/// The reason of the event that what a job needs cannot be made.
pub(super) const CREATION_FAILED: &str = "TrainJobResourcesCreationFailed";

/// What a question about one kind has shown.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen<T> {
    /// It is there.
    There(T),
    /// It is not.
    Absent,
    /// It could not be read; says so in a whole sentence.
    Unknown(String),
}

impl<T> Seen<T> {
    /// What is there.
    #[must_use]
    pub const fn there(&self) -> Option<&T> {
        match self {
            Self::There(found) => Some(found),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// That it could not be read.
    #[must_use]
    pub fn unread(&self) -> Option<&str> {
        match self {
            Self::Unknown(why) => Some(why),
            Self::There(_) | Self::Absent => None,
        }
    }
}

/// Everything that an answer is made of.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The TrainJob.
    pub job: TrainJob,
    /// The facts about it.
    pub facts: JobFacts,
    /// Its own JobSet.
    pub job_set: Seen<JobSetView>,
    /// A JobSet of its name that is not its own.
    pub foreign_job_set: Option<JobSetView>,
    /// The Pods that have the label of its JobSet, by name, without those of a foreign one.
    pub pods: Seen<Vec<Pod>>,
    /// The events about it and about what has its name, and those of its Jobs that say why no Pod runs; the oldest first.
    pub events: Vec<Event>,
    /// Kueue's Workloads of it, if it has a queue.
    pub workloads: Seen<Vec<DynamicObject>>,
    /// What could not be read of Pods, events and Workloads, in whole sentences.
    pub unread: Vec<String>,
    /// The time of the API server.
    pub now: Timestamp,
    /// What deadlines of the cluster count from, if it is known.
    pub clock: Option<Clock>,
}

impl Scene {
    /// Asks for everything. Only the TrainJob itself has to be readable.
    ///
    /// # Errors
    ///
    /// There is no such TrainJob, or the API server refuses or does not answer.
    pub async fn read(access: &Access, name: &str, clock: Option<Clock>) -> Result<Self, Failure> {
        let (client, namespace) = (&access.client, &access.namespace);
        let job = read::train_job(client, namespace, name);
        let (job, now) = tokio::join!(job, access.now());
        let job = job?;
        let facts = JobFacts::of(&job);
        let own_events = format!("involvedObject.name={name}");
        let (job_set, pods, events, workloads) = tokio::join!(
            read::job_set(client, &facts.key),
            read::pods(client, &facts.key),
            read::events(client, namespace, &own_events),
            async {
                match phase::queue(&job) {
                    Some(_) => read::workloads(client, namespace, &facts.uid).await,
                    None => Ok(Vec::new()),
                }
            },
        );
        let (job_set, foreign_job_set) = own_or_foreign(seen(job_set, "JobSets"), &facts.uid);
        let workloads = seen(workloads, "Workloads of Kueue");
        let pods = without_those_of(foreign_job_set.as_ref(), seen(pods, "Pods"));
        let unknown = [workloads.unread(), pods.unread()];
        let mut unread: Vec<String> = unknown.into_iter().flatten().map(str::to_owned).collect();
        let mut events = or_none(seen(events, "events"), &mut unread);
        events.retain(|event| !is_of_another(event, &facts.uid));
        let is_to_run = facts.finished.is_none() && !facts.suspend && foreign_job_set.is_none();
        if is_to_run && none_runs(&pods) {
            events.extend(refusals(client, &facts, &job_set).await);
        }
        events.sort_by_key(time_of);
        Ok(Self {
            job,
            facts,
            job_set,
            foreign_job_set,
            pods,
            events,
            workloads,
            unread,
            now,
            clock,
        })
    }

    /// Its namespace and name.
    #[must_use]
    pub const fn key(&self) -> &ObjectKey {
        &self.facts.key
    }

    /// Its conditions.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        let status = self.job.status.as_ref();
        status.and_then(|status| status.conditions.as_deref()).unwrap_or_default()
    }

    /// Its condition of this type, if it is True.
    #[must_use]
    pub fn holds(&self, kind: &str) -> Option<&Condition> {
        conditions::find_true(self.conditions(), kind)
    }

    /// The Pods that have the label of its JobSet, without those of a foreign one; none if they could not be read.
    #[must_use]
    pub fn labelled(&self) -> &[Pod] {
        self.pods.there().map(Vec::as_slice).unwrap_or_default()
    }

    /// The Pods that its JobSet made and that have not ended, as far as they could be read.
    #[must_use]
    pub fn running(&self) -> Vec<&Pod> {
        self.labelled().iter().filter(|pod| runs(pod)).collect()
    }

    /// Whether Pods that its JobSet made have ended, as far as they could be read.
    #[must_use]
    pub fn has_ended_pods(&self) -> bool {
        self.labelled().iter().any(|pod| is_own(pod) && has_ended(pod))
    }

    /// Whether it is known that none of its Pods runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        none_runs(&self.pods)
    }

    /// What the newest event with this reason says.
    #[must_use]
    pub fn told(&self, reason: &str) -> Option<&str> {
        let newest = self.events.iter().rev();
        let mut fitting = newest.filter(|event| event.reason.as_deref() == Some(reason));
        fitting.find_map(|event| event.message.as_deref())
    }
}

/// Tells the JobSet of a job from one that has its name and is somebody else's.
fn own_or_foreign(
    found: Seen<Option<JobSetView>>,
    uid: &str,
) -> (Seen<JobSetView>, Option<JobSetView>) {
    match found {
        Seen::There(Some(job_set)) if is_owned_by(&job_set, uid) => (Seen::There(job_set), None),
        Seen::There(foreign) => (Seen::Absent, foreign),
        Seen::Absent => (Seen::Absent, None),
        Seen::Unknown(why) => (Seen::Unknown(why), None),
    }
}

/// The Pods that have the label of a job's JobSet, without those of a foreign one: the label has only its name.
pub(super) fn without_those_of(
    foreign: Option<&JobSetView>,
    pods: Seen<Vec<Pod>>,
) -> Seen<Vec<Pod>> {
    let uid = foreign.and_then(|job_set| job_set.metadata.uid.as_deref());
    match pods {
        Seen::There(mut pods) => {
            pods.retain(|pod| Maker::of(&pod.metadata, uid) != Maker::ForeignJobSet);
            Seen::There(pods)
        }
        Seen::Absent | Seen::Unknown(_) => pods,
    }
}

fn none_runs(pods: &Seen<Vec<Pod>>) -> bool {
    pods.there().is_some_and(|pods| !pods.iter().any(runs))
}

fn runs(pod: &Pod) -> bool {
    is_own(pod) && !has_ended(pod)
}

/// Whether its JobSet made a Pod that has the label.
fn is_own(pod: &Pod) -> bool {
    Maker::of(&pod.metadata, None) == Maker::JobSet
}

/// The events that say why Pods of a job cannot be made; none if they cannot be read.
async fn refusals(client: &Client, job: &JobFacts, job_set: &Seen<JobSetView>) -> Vec<Event> {
    let of_jobs = "involvedObject.kind=Job,reason=FailedCreate";
    let found = read::events(client, &job.key.namespace, of_jobs).await.unwrap_or_default();
    let replicated_jobs = replicated_jobs(job, job_set);
    let is_its = |event: &Event| {
        let name = event.involved_object.name.as_deref().unwrap_or_default();
        is_job_of(&job.key.name, &replicated_jobs, name)
    };
    found.into_iter().filter(is_its).collect()
}

/// The names of the replicated jobs, as the status of the JobSet has them, or else that of the TrainJob.
fn replicated_jobs<'a>(job: &'a JobFacts, job_set: &'a Seen<JobSetView>) -> Vec<&'a str> {
    let of_job_set = job_set.there().into_iter().flat_map(|it| &it.status.replicated_jobs_status);
    let of_job = job.jobs_status.iter().map(|it| it.name.as_str());
    of_job_set.map(|it| it.name.as_str()).chain(of_job).collect()
}

/// When an event was last seen.
pub(super) fn time_of(event: &Event) -> Timestamp {
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
    let precise = series.or(event.event_time.as_ref()).map(|time| Timestamp(time.0.as_second()));
    let whole = event.last_timestamp.as_ref().or(event.metadata.creation_timestamp.as_ref());
    precise.max(whole.map(Timestamp::from)).unwrap_or_default()
}

fn seen<T>(answer: kube::Result<T>, what: &str) -> Seen<T> {
    match answer {
        Ok(found) => Seen::There(found),
        Err(error) => {
            let why = Failure::of_request(format!("list {what}"), error);
            Seen::Unknown(format!("This answer lacks what the {what} would tell: {why}."))
        }
    }
}

fn or_none<T>(seen: Seen<Vec<T>>, unread: &mut Vec<String>) -> Vec<T> {
    match seen {
        Seen::There(found) => found,
        Seen::Absent => Vec::new(),
        Seen::Unknown(why) => {
            unread.push(why);
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::why::testing::scene;

    #[test]
    fn replicated_jobs_are_those_of_the_jobset_or_else_of_the_status() {
        let bare = || scene(&json!({}), &json!({}), &json!([]));
        let known =
            bare().with_job_set(&json!({"status": {"replicatedJobsStatus": [{"name": "node"}]}}));
        assert_eq!(replicated_jobs(&known.facts, &known.job_set), ["node"]);
        let counts = json!({"name": "init", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0});
        let mut counted = bare();
        counted.facts.jobs_status = vec![serde_json::from_value(counts).unwrap()];
        assert_eq!(replicated_jobs(&counted.facts, &counted.job_set), ["init"]);
        let unknown = bare();
        assert!(replicated_jobs(&unknown.facts, &unknown.job_set).is_empty());
    }

    #[test]
    fn a_jobset_of_the_jobs_name_is_its_own_if_the_job_controls_it() {
        let owner = |uid: &str, controller: bool| json!([{"apiVersion": "v", "kind": "k", "name": "llm", "uid": uid, "controller": controller}]);
        for (owners, is_own) in [
            (owner("U", true), true),
            (owner("U", false), false),
            (owner("earlier", true), false),
            (json!([]), false),
        ] {
            let job_set = json!({"metadata": {"name": "llm", "ownerReferences": owners}});
            let job_set: JobSetView = serde_json::from_value(job_set).unwrap();
            let found = own_or_foreign(Seen::There(Some(job_set.clone())), "U");
            let expected =
                if is_own { (Seen::There(job_set), None) } else { (Seen::Absent, Some(job_set)) };
            assert_eq!(found, expected, "{owners}");
        }
        assert_eq!(own_or_foreign(Seen::There(None), "U"), (Seen::Absent, None));
        let unknown = || "forbidden".to_owned();
        let found = own_or_foreign(Seen::Unknown(unknown()), "U");
        assert_eq!(found, (Seen::Unknown(unknown()), None));
    }

    #[test]
    fn pods_of_a_foreign_jobset_are_not_among_those_of_the_job() {
        let foreign = |uid: &str| json!({"metadata": {"name": "llm", "uid": uid}});
        for (uid, phase, is_among) in [
            ("J", "Running", false),
            ("J", "Pending", false),
            ("J", "Succeeded", false),
            // Those of an earlier JobSet of the job.
            ("other", "Running", true),
        ] {
            let job = scene(&json!({}), &json!({}), &json!([]))
                .with_pod("p", Some("n"), &json!({"phase": phase}))
                .with_foreign_job_set(&foreign(uid));
            assert_eq!(!job.labelled().is_empty(), is_among, "{uid} {phase}");
            assert_eq!(job.is_idle(), !is_among, "{uid} {phase}");
        }
    }

    #[test]
    fn a_job_is_idle_if_its_pods_are_known_and_none_of_them_runs() {
        let bare = || scene(&json!({}), &json!({}), &json!([]));
        let mut blind = bare();
        blind.pods = Seen::Unknown("forbidden".to_owned());
        for (scene, is_idle, has_ended_pods) in [
            (bare(), true, false),
            (bare().with_pod("p", Some("n"), &json!({"phase": "Succeeded"})), true, true),
            (bare().with_pod("p", None, &json!({"phase": "Pending"})), false, false),
            (blind, false, false),
        ] {
            assert_eq!(scene.is_idle(), is_idle, "{:?}", scene.pods);
            assert_eq!(scene.has_ended_pods(), has_ended_pods, "{:?}", scene.pods);
        }
    }
}
