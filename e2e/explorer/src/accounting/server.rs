//! The API server.

use trainjob_accounting_core::{
    answer::Failure,
    keeper::{Answer, Call, Fence, Store},
};
use trainjob_api::{lifecycle::v1alpha1::record::TrainJobRecordStatus, time::Timestamp};

use super::{
    defect::Defect,
    request::{Sender, Sent, failed},
    rules::Change,
    world::{Stored, World},
};

/// UID of the record of another TrainJob.
const OTHER: &str = "other";

impl World {
    /// A request is carried out.
    pub(super) fn carry_out(&mut self, sent: &Sent) -> Answer {
        match &sent.call {
            Call::Create { long_name } => self.create_record(*long_name),
            Call::Get { long_name } => self.read_record(*long_name),
            Call::List { .. } => self.list(sent.by.process),
            Call::ReadJob => Answer::Job,
            Call::Store(store) => self.store(store, sent.by),
            Call::Release { uid, is_counted, .. } => self.release(uid, *is_counted),
        }
    }

    fn create_record(&mut self, long_name: bool) -> Answer {
        if self.is_ending && self.pods.iter().all(|pod| pod.newest().is_none()) {
            return failed(Failure::NoNamespace);
        }
        let is_there = self.record.as_ref().is_some_and(|record| record.long_name == long_name);
        if self.is_ending && !is_there {
            return failed(Failure::NamespaceTerminating);
        }
        if is_there || !long_name && self.name_taken {
            // Whose it is shows when it is read.
            return failed(Failure::AlreadyExists { same: true });
        }
        if let Some(failure) = self.refusal {
            return failed(failure);
        }
        let is_first = self.record.is_none();
        self.rules.created(is_first);
        let uid = format!("r{}", self.gone_records.len());
        let version = self.next_version();
        self.record =
            Some(Stored { version, uid, long_name, status: TrainJobRecordStatus::default() });
        self.read_record(long_name)
    }

    fn read_record(&self, long_name: bool) -> Answer {
        if !long_name && self.name_taken {
            if self.options.defect == Some(Defect::TakesOthersRecord) {
                let fence = Fence { name: "llm".into(), uid: OTHER.into(), version: "1".into() };
                return Answer::Record(fence, Box::default());
            }
            return failed(Failure::AlreadyExists { same: false });
        }
        match &self.record {
            Some(record) if record.long_name == long_name => {
                Answer::Record(fence(record), Box::new(record.status.clone()))
            }
            Some(_) | None => failed(Failure::NotFound),
        }
    }

    fn list(&self, process: usize) -> Answer {
        if self.options.defect == Some(Defect::ProvesByWatch)
            && let Some(process) = self.processes.get(process)
        {
            return Answer::Pods { version: self.version, pods: process.watched(&self.pods) };
        }
        let pods = self.pods.iter().filter_map(super::history::History::listed).collect();
        Answer::Pods { version: self.version, pods }
    }

    fn store(&mut self, store: &Store, by: Sender) -> Answer {
        if let Some(failure) = self.refusal {
            return failed(failure);
        }
        self.rules.written(store.fence.uid != OTHER, !store.fence.version.is_empty());
        let Some(record) = &self.record else { return failed(Failure::NotFound) };
        let current = fence(record);
        if current.name != store.fence.name {
            return failed(Failure::NotFound);
        }
        if current.uid != store.fence.uid {
            return failed(Failure::OtherUid);
        }
        if current != store.fence {
            return failed(Failure::Conflict);
        }
        self.report.stores += 1;
        self.rules.stored(&Change {
            before: &record.status,
            after: &store.status,
            by: (by.process, by.epoch),
            planned_at: Timestamp(by.planned_at),
            knows_job: by.knows_job,
            pods: &self.pods,
        });
        let version = self.next_version();
        if let Some(record) = &mut self.record {
            (record.version, record.status) = (version, store.status.clone());
        }
        Answer::Stored { version: version.to_string() }
    }

    fn release(&mut self, uid: &str, is_counted: bool) -> Answer {
        let is_it = |it: &super::history::History| it.newest().is_some_and(|pod| *pod.uid == *uid);
        let Some(pod) = self.pods.iter().position(is_it) else { return failed(Failure::NotFound) };
        self.rules.released(uid, is_counted);
        let annotates = self.options.defect != Some(Defect::NoAnnotation);
        self.change(pod, "is released", |pod| {
            pod.finalizer = false;
            pod.accounted |= annotates;
        });
        Answer::Released { version: self.version }
    }
}

fn fence(record: &Stored) -> Fence {
    let name = if record.long_name { "llm-long" } else { "llm" };
    Fence { name: name.into(), uid: record.uid.clone(), version: record.version.to_string() }
}
