//! What the program does around `plan`.

use std::collections::BTreeMap;

use trainjob_accounting_core::{
    clock::Now,
    holding::Valve,
    job::Job,
    plan::{Action, Context, Evidence, JobRead, Record, Stored, plan, unwatched},
    pod::Pod,
    settings::Settings,
    tracked::{Presence, Tracked, settle},
};
use trainjob_api::lifecycle::v1alpha1::record::{Totals, TrainJobRecordStatus};

use super::world::{Answer, Call, Defect, History, Sent};

pub(crate) struct Process {
    index: usize,
    pub(crate) epoch: u64,
    pods: BTreeMap<String, (u64, Tracked)>,
    /// Deletions of Pods that were not known. A list that is older may still show them.
    gone: BTreeMap<String, u64>,
    /// How many versions of each Pod its watch has shown.
    seen: BTreeMap<usize, usize>,
    /// Versions up to this one are older than the last list.
    floor: u64,
    record: Option<(u64, Stored)>,
    /// Whether it has looked for the record since it began.
    looked: bool,
    /// Whether a request about the record is under way.
    busy: bool,
    job_read: JobRead,
    settings: Settings,
}

impl Process {
    pub(crate) fn new(index: usize, epoch: u64) -> Self {
        Self {
            index,
            epoch,
            pods: BTreeMap::new(),
            gone: BTreeMap::new(),
            seen: BTreeMap::new(),
            floor: 0,
            record: None,
            looked: false,
            busy: false,
            job_read: JobRead::Watched,
            settings: Settings::default(),
        }
    }

    /// Its first list is two versions old.
    pub(crate) fn begin(&mut self, pods: &[History]) {
        let seen = pods.iter().enumerate();
        self.seen = seen.map(|(index, pod)| (index, pod.0.len().saturating_sub(2))).collect();
    }

    fn sent(&self, call: Call) -> Sent {
        Sent { from: self.index, epoch: self.epoch, call }
    }

    pub(crate) fn plan(&mut self, job: &Job, now: Now, defect: Defect) -> Vec<Sent> {
        if !self.looked {
            let first = (!self.busy).then(|| self.sent(Call::Get));
            self.busy = true;
            return first.into_iter().collect();
        }
        let context = Context { job, job_read: self.job_read, settings: &self.settings, now };
        let pods: Vec<_> = self.pods.values().map(|(_, tracked)| tracked.clone()).collect();
        let record = self
            .record
            .as_ref()
            .map_or(Record::Missing, |(_, stored)| Record::Stored(Box::new(stored.clone())));
        let mut calls: Vec<_> = plan(&record, &pods, &context)
            .actions
            .into_iter()
            .filter_map(|action| self.call(action, job, defect))
            .collect();
        if defect == Defect::ReleasesFirst {
            let ended = pods.iter().filter(|it| it.ended_seen.is_some() && it.pod.finalizer);
            calls.extend(ended.map(|it| Call::Release { uid: it.pod.uid.clone() }));
        }
        calls.into_iter().map(|call| self.sent(call)).collect()
    }

    fn call(&mut self, action: Action, job: &Job, defect: Defect) -> Option<Call> {
        let call = match action {
            Action::Release(uid) | Action::LetGo(uid) => {
                let (_, tracked) = self.pods.get_mut(&uid)?;
                tracked.presence = Presence::Releasing;
                return Some(Call::Release { uid });
            }
            _ if self.busy => return None,
            Action::Create => Call::Create,
            Action::Prove => Call::Get,
            Action::ListPods => Call::List { over: job.is_over() },
            Action::ReadJob => Call::ReadJob,
            Action::Store(mut status) => {
                let (version, stored) = self.record.as_ref()?;
                with_defect_in_store(&mut status, &stored.status, defect);
                Call::Store { version: *version, status }
            }
        };
        self.busy = true;
        Some(call)
    }

    /// Takes a reply; `None`: it was lost. What follows at once is returned.
    pub(crate) fn answered(
        &mut self,
        call: &Call,
        answer: Option<Answer>,
        job: &Job,
        now: Now,
        defect: Defect,
    ) -> Option<Sent> {
        if let Call::Release { uid } = call {
            if let Some((_, tracked)) = self.pods.get_mut(uid) {
                match answer {
                    Some(_) => tracked.released(),
                    None => tracked.release_failed(),
                }
            }
            return None;
        }
        self.busy = false;
        self.looked |= matches!(answer, Some(Answer::Record(_)));
        match (call, answer) {
            (_, Some(Answer::Record(Some((version, status))))) => {
                let mut stored = stored(status);
                if defect == Defect::NeverProves {
                    stored.evidence = Evidence::Proven { unwatched: 0, listed_after_end: false };
                    self.record = Some((version, stored));
                    return None;
                }
                self.record = Some((version, stored));
                self.busy = true;
                return Some(self.sent(Call::List { over: job.is_over() }));
            }
            (_, Some(Answer::Record(None))) => self.record = None,
            (_, Some(Answer::Pods { version, pods, over })) => {
                self.listed(version, pods, over, now);
            }
            (_, Some(Answer::Job)) => self.job_read = JobRead::Read,
            (Call::Store { status, .. }, Some(Answer::Stored(version))) => {
                self.stored(version, status, now, defect);
            }
            (Call::Store { .. }, Some(Answer::Refused) | None) => {
                if let Some((_, stored)) = &mut self.record {
                    stored.evidence = Evidence::Unproven;
                }
            }
            (_, Some(Answer::Refused | Answer::Released | Answer::Stored(_)) | None) => {}
        }
        None
    }

    fn stored(&mut self, version: u64, status: &TrainJobRecordStatus, now: Now, defect: Defect) {
        self.job_read = JobRead::Watched;
        let Some((known, stored)) = &mut self.record else { return };
        settle(self.pods.values_mut().map(|(_, tracked)| tracked), &stored.status);
        *known = version;
        stored.status = status.clone();
        stored.stored_at = Some(now.clock);
        if let Evidence::Proven { unwatched, .. } = &mut stored.evidence
            && defect != Defect::TellsLossesTwice
        {
            *unwatched = 0;
        }
        settle(self.pods.values_mut().map(|(_, tracked)| tracked), &stored.status);
    }

    /// A list is newer than all that is known, and what is not in it is gone.
    fn listed(&mut self, version: u64, pods: Vec<(u64, Pod)>, over: bool, now: Now) {
        self.floor = version;
        let listed: Vec<_> = pods.iter().map(|(_, pod)| Tracked::new(pod.clone(), now)).collect();
        let proves = self.record.as_ref().is_some_and(|it| it.1.evidence == Evidence::Unproven);
        let there = |uid: &str| pods.iter().any(|(_, pod)| pod.uid == uid);
        if proves {
            self.pods.retain(|uid, _| there(uid));
        } else {
            let gone = self.pods.iter_mut().filter(|(uid, _)| !there(uid));
            gone.for_each(|(_, (_, tracked))| tracked.went(now));
        }
        for (version, pod) in pods {
            self.saw(version, pod, now, false);
        }
        if let Some((_, stored)) = &mut self.record {
            let unwatched = match stored.evidence {
                Evidence::Unproven => unwatched(&stored.status, &listed),
                Evidence::Proven { unwatched, .. } => unwatched,
            };
            stored.evidence = Evidence::Proven { unwatched, listed_after_end: over };
        }
    }

    fn saw(&mut self, version: u64, pod: Pod, now: Now, takes_old: bool) {
        match self.pods.get_mut(&pod.uid) {
            Some((known, tracked)) => {
                if *known < version || takes_old {
                    *known = version;
                    tracked.saw(pod, now);
                }
            }
            None => {
                let uid = pod.uid.clone();
                let mut tracked = Tracked::new(pod, now);
                let gone = self.gone.get(&uid).copied().filter(|gone| *gone > version);
                if gone.is_some() {
                    tracked.went(now);
                }
                self.pods.insert(uid, (gone.unwrap_or(version), tracked));
            }
        }
    }

    /// The next event of a Pod.
    pub(crate) fn watched(
        &mut self,
        index: usize,
        history: &History,
        now: Now,
        defect: Defect,
    ) -> bool {
        let seen = self.seen.entry(index).or_default();
        let Some((version, pod)) = history.0.get(*seen) else { return false };
        *seen += 1;
        let uid = format!("p{index}");
        let known = self.pods.get(&uid).map_or(0, |(known, _)| *known);
        if (*version <= known || *version <= self.floor) && defect != Defect::TakesOldNews {
            return true;
        }
        match pod {
            Some(pod) => {
                self.saw(*version, pod.clone(), now, defect == Defect::TakesOldNews);
            }
            None => {
                if let Some((known, tracked)) = self.pods.get_mut(&uid) {
                    *known = *version;
                    tracked.went(now);
                } else {
                    self.gone.insert(uid, *version);
                }
            }
        }
        if let Some((_, stored)) = &self.record {
            settle(self.pods.values_mut().map(|(_, tracked)| tracked), &stored.status);
        }
        true
    }
}

fn stored(status: TrainJobRecordStatus) -> Stored {
    Stored {
        status,
        evidence: Evidence::Unproven,
        valve: Valve::Shut,
        stored_at: None,
        let_go: 0,
        recreated: false,
    }
}

fn with_defect_in_store(
    status: &mut TrainJobRecordStatus,
    before: &TrainJobRecordStatus,
    defect: Defect,
) {
    match defect {
        Defect::ClearsTooEarly => status.settling.retain(|uid| !before.settling.contains(uid)),
        Defect::ForgetsCounters => {
            if status.settling == before.settling {
                status.totals = Totals::default();
            }
        }
        Defect::StoresOnlyUids => status.totals = before.totals.clone(),
        Defect::None
        | Defect::NeverProves
        | Defect::TakesOldNews
        | Defect::NoAnnotation
        | Defect::ReleasesFirst
        | Defect::TellsLossesTwice => {}
    }
}
