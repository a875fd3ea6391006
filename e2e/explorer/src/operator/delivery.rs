//! Watches: each kind's changes in their order, but no order between the kinds.

use std::{sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use trainjob_api::constants::JOBSET_NAME_LABEL;
use trainjob_core::{
    facts::{ObjectKey, Outcome},
    needs_nothing::needs_nothing,
    pass::PodList,
};
use trainjob_engine::versions::Source;

use super::{
    process::Operator,
    streams::{Deliveries, Kind, Listed, RuntimeList},
};
use crate::{
    objects::{StoredJob, StoredJobSet},
    server::Server,
};

impl Operator {
    /// A watch has failed and begins with a list of what is stored now. The cache hears that it begins
    /// before it is asked for, as the client library does it.
    pub fn relist(&mut self, kind: Kind, server: &Server) {
        let Deliveries { jobs, job_sets, runtime_list, runtimes, .. } = &mut self.deliveries;
        let slots = server.slots.iter();
        match kind {
            Kind::Job => {
                self.cache.jobs_relist();
                jobs.relist(slots.filter_map(|slot| slot.job.clone()), server.jobs.len());
            }
            Kind::JobSet => {
                self.cache.job_sets_relist();
                let stored = slots.filter_map(|slot| slot.job_set.clone());
                job_sets.relist(stored, server.job_sets.len());
            }
            Kind::Runtime => {
                *runtime_list = RuntimeList::Pending(server.runtime.clone());
                *runtimes = server.runtimes.len();
            }
        }
        self.cache.settings = server.settings;
    }

    /// Whether a watch has something to deliver.
    #[must_use]
    pub fn is_behind(&self, kind: Kind, server: &Server) -> bool {
        let Deliveries { jobs, job_sets, runtime_list, runtimes, .. } = &self.deliveries;
        match kind {
            Kind::Job => jobs.pending(&server.jobs),
            Kind::JobSet => job_sets.pending(&server.job_sets),
            Kind::Runtime => {
                matches!(runtime_list, RuntimeList::Pending(_)) || *runtimes < server.runtimes.len()
            }
        }
    }

    /// Delivers the next event of a watch.
    pub fn deliver(&mut self, kind: Kind, server: &Server) {
        match kind {
            Kind::Job => self.deliver_job(server),
            Kind::JobSet => self.deliver_job_set(server),
            Kind::Runtime => self.deliver_runtime(server),
        }
        let Deliveries { jobs, job_sets, runtimes_listed, .. } = &self.deliveries;
        if !self.initial_pods_listed && jobs.listed && job_sets.listed && *runtimes_listed {
            self.initial_pods_listed = true;
            self.cache.take_over();
            self.list_initial_pods(server);
        }
    }

    fn deliver_job(&mut self, server: &Server) {
        let stream = &mut self.deliveries.jobs;
        match stream.list.pop_front() {
            Some(Listed::Item(job)) => self.watched_job(&job),
            Some(Listed::End) => {
                stream.listed = true;
                let gone = self.cache.jobs_listed();
                self.wake(&gone);
            }
            None => {
                let Some(news) = server.jobs.get(stream.cursor) else { return };
                stream.cursor += 1;
                let key = &news.object.facts.key;
                match news.gone {
                    None => self.watched_job(&news.object),
                    Some(version) if self.cache.remove_job(key, version) => {
                        self.wake(std::slice::from_ref(key));
                    }
                    Some(_) => {}
                }
            }
        }
    }

    fn watched_job(&mut self, job: &Arc<StoredJob>) {
        self.saw(job);
        if self.cache.put_job(job, Source::Watch) {
            self.wake(std::slice::from_ref(&job.facts.key));
        }
    }

    /// Remembers, for the judge, that this process knows of a job's end.
    pub(super) fn saw(&mut self, job: &StoredJob) {
        if job.facts.finished.is_some() && !self.ended.contains(&job.facts.uid) {
            self.ended.insert(job.facts.uid.clone());
        }
    }

    fn deliver_job_set(&mut self, server: &Server) {
        let stream = &mut self.deliveries.job_sets;
        match stream.list.pop_front() {
            Some(Listed::Item(job_set)) => self.watched_job_set(&job_set),
            Some(Listed::End) => {
                stream.listed = true;
                let gone = self.cache.job_sets_listed();
                self.wake(&gone);
            }
            None => {
                let Some(news) = server.job_sets.get(stream.cursor) else { return };
                stream.cursor += 1;
                match news.gone {
                    None => self.watched_job_set(&news.object),
                    Some(version) => {
                        let key = ObjectKey::of(&news.object.object.metadata);
                        if self.cache.remove_job_set(&key, version) {
                            self.wake(&[key]);
                        }
                    }
                }
            }
        }
    }

    fn watched_job_set(&mut self, job_set: &Arc<StoredJobSet>) {
        let key = ObjectKey::of(&job_set.object.metadata);
        if self.cache.put_job_set(&key, job_set, Source::Watch) {
            self.wake(&[key]);
        }
    }

    fn deliver_runtime(&mut self, server: &Server) {
        let deliveries = &mut self.deliveries;
        let list = std::mem::take(&mut deliveries.runtime_list);
        let runtime = if let RuntimeList::Pending(listed) = list {
            deliveries.runtimes_listed = true;
            listed
        } else if let Some(news) = server.runtimes.get(deliveries.runtimes) {
            deliveries.runtimes += 1;
            news.clone()
        } else {
            return;
        };
        self.cache.put_runtime(runtime);
        let unfinished = self.cache.unfinished();
        self.wake(&unfinished);
    }

    fn wake(&mut self, keys: &[ObjectKey]) {
        let names = self.keys.iter().enumerate().filter(|(_, key)| keys.contains(key));
        for name in names.map(|(name, _)| name).collect::<Vec<_>>() {
            if self.needs_pass(name) {
                self.queue.insert(name);
            } else {
                self.forget(name);
            }
        }
    }

    /// A job that is gone, or needs nothing, does not.
    fn needs_pass(&self, name: usize) -> bool {
        let view = self.keys.get(name).and_then(|key| self.cache.view(key));
        view.is_some_and(|view| !needs_nothing(&view.job.facts, view.job_set.is_some()))
    }

    /// The initial Pod list after a start.
    fn list_initial_pods(&mut self, server: &Server) {
        let mut list = PodList::default();
        for slot in server.slots.iter().filter(|slot| !slot.pods.is_empty()) {
            list.received(&pod_metadata(&slot.key));
        }
        list.ended();
        for slot in &server.slots {
            let Some(view) = self.cache.view(&slot.key) else { continue };
            let by_deadline =
                |end: trainjob_core::facts::Finished| end.outcome == Outcome::DeadlineExceeded;
            if view.job.facts.finished.is_some_and(by_deadline) && view.job_set.is_none() {
                let uid = &*view.job.facts.uid;
                self.cache.remember(&slot.key, Some(uid), |memory| {
                    memory.pod_list_asked(Duration::ZERO);
                    memory.pods_listed(Duration::ZERO, &list, &slot.key);
                });
            }
        }
    }
}

/// The metadata of a Pod of the JobSet with this key.
fn pod_metadata(job_set: &ObjectKey) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(job_set.namespace.to_string()),
        name: Some(format!("{}-node-0-0", job_set.name)),
        labels: Some([(JOBSET_NAME_LABEL.to_owned(), job_set.name.to_string())].into()),
        ..ObjectMeta::default()
    }
}
