//! Everything that an answer is made of.

use k8s_openapi::{
    api::core::v1::{Event, Pod},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::api::DynamicObject;
use trainjob_api::{TrainJob, conditions, jobset::JobSetView, time::Timestamp};
use trainjob_core::{
    facts::{JobFacts, ObjectKey},
    lifecycle::deadline::Clock,
    running_pods::Maker,
};

use crate::{access::Access, failure::Failure, gpus::has_ended, phase, read};

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
    pub pods: Vec<Pod>,
    /// The events about it and about what has its name, and those of its Jobs that say why there are no Pods; the oldest
    /// first.
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
        let mut unread: Vec<String> = workloads.unread().into_iter().map(str::to_owned).collect();
        let pods = or_none(seen(pods, "Pods"), &mut unread);
        let mut events = or_none(seen(events, "events"), &mut unread);
        if pods.is_empty() && facts.finished.is_none() {
            let of_jobs = "involvedObject.kind=Job,reason=FailedCreate";
            let found = read::events(client, namespace, of_jobs).await.unwrap_or_default();
            let prefix = format!("{name}-");
            events.extend(found.into_iter().filter(|event| {
                event.involved_object.name.as_deref().is_some_and(|it| it.starts_with(&prefix))
            }));
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

    /// The Pods that its JobSet made and that have not ended.
    #[must_use]
    pub fn running(&self) -> Vec<&Pod> {
        let counts =
            |pod: &&Pod| Maker::of(&pod.metadata, None) == Maker::JobSet && !has_ended(pod);
        self.pods.iter().filter(counts).collect()
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
