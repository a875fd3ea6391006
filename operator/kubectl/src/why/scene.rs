//! Everything that an answer is made of.

use k8s_openapi::{
    api::core::v1::{Event, Pod},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{Client, api::DynamicObject};
use trainjob_api::{
    TrainJob, conditions, jobset::JobSetView, time::Timestamp, v1alpha1::TRAIN_JOB_KIND,
};
use trainjob_core::{
    facts::{JobFacts, ObjectKey},
    lifecycle::deadline::Clock,
    running_pods::Maker,
};

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
    /// The Pods that have the label of its JobSet, by name.
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
        let job_set = match seen(job_set, "JobSets") {
            Seen::There(Some(found)) if is_owned_by(&found, &facts.uid) => Seen::There(found),
            Seen::There(_) | Seen::Absent => Seen::Absent,
            Seen::Unknown(why) => Seen::Unknown(why),
        };
        let workloads = seen(workloads, "Workloads of Kueue");
        let pods = seen(pods, "Pods");
        let unknown = [workloads.unread(), pods.unread()];
        let mut unread: Vec<String> = unknown.into_iter().flatten().map(str::to_owned).collect();
        let mut events = or_none(seen(events, "events"), &mut unread);
        events.retain(|event| !is_of_another(event, &facts.uid));
        if facts.finished.is_none() && !facts.suspend && none_runs(&pods) {
            events.extend(refusals(client, &facts, &job_set).await);
        }
        events.sort_by_key(time_of);
        Ok(Self { job, facts, job_set, pods, events, workloads, unread, now, clock })
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

    /// The Pods that have the label of its JobSet; none if they could not be read.
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

fn is_owned_by(job_set: &JobSetView, uid: &str) -> bool {
    let mut owners = job_set.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.uid == uid && owner.controller == Some(true))
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

/// Whether an event is about an earlier TrainJob of the same name: events outlive what they are about.
fn is_of_another(event: &Event, uid: &str) -> bool {
    let about = &event.involved_object;
    let is_another = about.uid.as_deref().is_some_and(|it| !it.is_empty() && it != uid);
    is_another && about.kind.as_deref() == Some(TRAIN_JOB_KIND)
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

/// Whether a Job has the name that a JobSet gives its Jobs: its own, that of the replicated job, and a number. Without
/// the names of the replicated jobs nobody can tell the Jobs of `llm` from those of `llm-large`.
fn is_job_of(job_set: &str, replicated_jobs: &[&str], job: &str) -> bool {
    let rest = job.strip_prefix(job_set).and_then(|rest| rest.strip_prefix('-'));
    rest.and_then(|rest| rest.rsplit_once('-')).is_some_and(|(replicated_job, index)| {
        let is_known = replicated_jobs.is_empty() || replicated_jobs.contains(&replicated_job);
        is_known && index.parse::<u32>().is_ok()
    })
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
    fn events_about_an_earlier_job_of_the_same_name_are_not_heard() {
        for (about, expected) in [
            (json!({"kind": "TrainJob", "name": "llm", "uid": "U"}), false),
            (json!({"kind": "TrainJob", "name": "llm", "uid": "earlier"}), true),
            (json!({"kind": "TrainJob", "name": "llm", "uid": ""}), false),
            (json!({"kind": "TrainJob", "name": "llm"}), false),
            (json!({"kind": "JobSet", "name": "llm", "uid": "J"}), false),
        ] {
            let event = json!({"metadata": {"name": "e"}, "involvedObject": about});
            let event: Event = serde_json::from_value(event).unwrap();
            assert_eq!(is_of_another(&event, "U"), expected, "{about}");
        }
    }

    #[test]
    fn a_job_is_told_by_its_name_from_those_of_longer_named_train_jobs() {
        let both: &[&str] = &["node", "dataset-initializer"];
        let unknown: &[&str] = &[];
        for (replicated_jobs, name, expected) in [
            (both, "llm-node-0", true),
            (both, "llm-dataset-initializer-12", true),
            (both, "llm-large-node-0", false),
            (both, "llm-node-node-0", false),
            (both, "llm-node", false),
            (both, "llm-node-0-0", false),
            (both, "llmnode-0", false),
            (both, "other-node-0", false),
            (unknown, "llm-node-0", true),
            (unknown, "llm-large-node-0", true),
            (unknown, "llm-nightly", false),
        ] {
            assert_eq!(is_job_of("llm", replicated_jobs, name), expected, "{name}");
        }
    }

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
