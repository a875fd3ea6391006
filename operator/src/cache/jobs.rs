//! TrainJobs, as they come and go.

use std::sync::Arc;

use trainjob_api::{TrainJob, time::Timestamp};
use trainjob_core::{
    action::TtlDeletion,
    facts::{JobFacts, ObjectKey},
    recreation::Origin,
};
use trainjob_engine::versions::{self, Source};

use super::{Cache, JobRecord, State, manifests::Of, packed::PackedJob, record};

impl Cache {
    /// Takes in that a watch has come to this version of a TrainJob, and says whether it has to be read. Mostly it need not,
    /// because a reply has shown it; but one whose manifest has made room is read again, since there may be room now.
    #[must_use]
    pub fn must_read_job(&self, key: &ObjectKey, resource_version: &str) -> bool {
        let mut state = self.lock();
        // The key that is kept: a list notes which it has shown.
        let Some(key) = state.jobs.key(key).cloned() else { return true };
        if state.jobs.is_shown_anew(&key, versions::parse(resource_version)) {
            return true;
        }
        let is_whole =
            |job: JobRecord| job.facts.finished.is_some() || state.manifests.get(&key).is_some();
        !state.job(&key).is_some_and(is_whole)
    }

    /// Takes in a TrainJob that a watch or a reply showed. When that is news, returns its key, as it is kept.
    pub fn put_job(&self, job: TrainJob, source: Source) -> Option<ObjectKey> {
        let (record, manifest) = JobRecord::of(job);
        self.lock().put_job(record, manifest, source)
    }

    /// Takes in a reply that shows that a deletion was begun of the finished TrainJob with this UID and version, which has this
    /// version now.
    pub fn deletion_begun(&self, of: &TtlDeletion, key: &ObjectKey, version: String, lists: u64) {
        let mut state = self.lock();
        let Some(mut job) = state.job(key) else { return };
        let known = (&job.facts.uid, &job.facts.resource_version);
        if known != (&of.uid, &of.resource_version) {
            // A watch was faster, or there is a successor.
            return;
        }
        job.facts.terminating = true;
        job.facts.resource_version = version;
        state.put_job(job, None, Source::Reply { lists });
    }

    /// Takes in that the API server has accepted at `now` that a TTL deletes the TrainJob with this UID.
    pub fn ttl_deleted(&self, key: &ObjectKey, uid: &str, now: Timestamp) {
        let mut state = self.lock();
        state.recreations.deleted(key, uid, now);
        // Its successor may have been seen before the answer.
        state.check_loop(key);
    }

    /// How many names are deleted by a TTL and made again, over and over.
    #[must_use]
    pub fn loops(&self, now: Timestamp) -> usize {
        self.lock().recreations.loops(now)
    }

    /// Takes in that a TrainJob is gone.
    pub fn remove_job(&self, key: &ObjectKey, resource_version: &str) -> bool {
        let mut state = self.lock();
        let gone = state.jobs.remove(key, versions::parse(resource_version));
        state.forget_job(key, gone.as_ref());
        gone.is_some()
    }

    /// Takes in a reply that shows the TrainJob with this UID to be gone.
    pub fn forget_job(&self, key: &ObjectKey, uid: &str) {
        let mut state = self.lock();
        let is_it = state.uid(key).is_some_and(|known| known == uid);
        let gone = state.jobs.forget(key, |_| is_it);
        state.forget_job(key, gone.as_ref());
    }

    /// A complete list of TrainJobs begins.
    pub fn jobs_relist(&self) {
        self.lock().jobs.relist();
    }

    /// The list is complete; returns the jobs that vanished meanwhile.
    pub fn jobs_listed(&self) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let vanished = state.jobs.listed();
        state.note_restore();
        for (key, job) in &vanished {
            state.forget_job(key, Some(job));
        }
        vanished.into_iter().map(|(key, _)| key).collect()
    }
}

impl State {
    /// See [`Cache::put_job`].
    fn put_job(
        &mut self,
        mut record: JobRecord,
        manifest: Option<Arc<str>>,
        source: Source,
    ) -> Option<ObjectKey> {
        let key = self.key(&record.facts.key);
        record.facts.key = key.clone();
        let before = self.job(&key);
        let version = versions::parse(&record.facts.resource_version);
        let named_runtimes = &mut self.named_runtimes;
        let is_news = self.jobs.put_with(&key, version, source, || {
            let named = before.as_ref().and_then(|before| before.runtime.as_ref());
            PackedJob::of(&record, named_runtimes.name(named, record.runtime.as_ref()))
        });
        self.keep_manifest(&record.facts, manifest);
        if !is_news {
            return None;
        }
        if let Some(before) = before {
            self.remember(&key, None, |memory| memory.job_shown(&before.facts, &record.facts));
        }
        self.check_loop(&key);
        Some(key)
    }

    /// Keeps the manifest that came with these facts, if they are what is known: also if it had made room and was read again.
    fn keep_manifest(&mut self, shown: &JobFacts, manifest: Option<Arc<str>>) {
        let is_it = self.job(&shown.key).is_some_and(|JobRecord { facts: known, .. }| {
            (&known.uid, &known.resource_version) == (&shown.uid, &shown.resource_version)
        });
        match manifest {
            _ if !is_it => {}
            Some(manifest) => self.manifests.put(Of::Job, &shown.key, manifest),
            None => self.manifests.remove(&shown.key),
        }
    }

    /// Notes if the job that is known under this name closes a loop.
    fn check_loop(&mut self, key: &ObjectKey) {
        let Some(JobRecord { facts, .. }) = self.job(key) else { return };
        let (uid, created_at) = (&facts.uid, facts.created_at);
        if self.recreations.seen(key, uid, created_at) {
            let manifest = self.manifests.get(key).and_then(|text| record::read(&text));
            let origin = manifest.map_or(Origin::Unknown, |job| Origin::of(&job.metadata));
            self.remember(key, Some(uid), |memory| memory.loop_closed(origin));
        }
    }

    /// Forgets what belongs to a record that is gone.
    fn forget_job(&mut self, key: &ObjectKey, gone: Option<&PackedJob>) {
        if let Some(gone) = gone {
            self.memories.forget(key);
            self.manifests.remove(key);
            let named = gone.record(key, &self.named_runtimes).runtime;
            self.named_runtimes.name(named.as_ref(), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trainjob_core::{facts::Outcome, observed::Propagation};

    use super::*;

    fn job(name: &str, version: &str, is_finished: bool) -> TrainJob {
        let end = json!([{"type": "Complete", "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        serde_json::from_value(json!({
            "metadata": {"namespace": "ns", "name": name, "uid": "U", "resourceVersion": version},
            "spec": {"runtimeRef": {"name": "r"}, "ttlSecondsAfterFinished": 60},
            "status": {"conditions": if is_finished { end } else { json!([]) }},
        }))
        .unwrap()
    }

    fn deletion(uid: &str, version: &str) -> TtlDeletion {
        TtlDeletion {
            uid: uid.to_owned(),
            resource_version: version.to_owned(),
            propagation: Propagation::Foreground,
            outcome: Outcome::Complete,
            due: Timestamp(0),
        }
    }

    fn facts(cache: &Cache, key: &ObjectKey) -> JobFacts {
        cache.with_job(key, |job, _, _| job.clone()).unwrap()
    }

    #[test]
    fn job_is_read_when_its_version_is_news_or_its_manifest_is_gone() {
        let key = ObjectKey::new("ns", "job");
        for (is_finished, budget, expected) in [
            (true, 1 << 20, [true, false, false, true]),
            (false, 1 << 20, [true, false, false, true]),
            (true, 0, [true, false, false, true]),
            (false, 0, [true, true, true, true]),
        ] {
            let cache = Cache::new(budget);
            let first = cache.must_read_job(&key, "7");
            cache.put_job(job("job", "7", is_finished), Source::Watch);
            // It needs the room.
            cache.put_job(job("other", "5", false), Source::Watch);
            let others = ["7", "6", "8"].map(|version| cache.must_read_job(&key, version));
            let all = [first, others[0], others[1], others[2]];
            assert_eq!(all, expected, "finished: {is_finished}, budget: {budget}");
        }
    }

    #[test]
    fn job_that_was_listed_again_is_there_though_it_was_not_read() {
        let (cache, key) = (Cache::new(0), ObjectKey::new("ns", "job"));
        cache.put_job(job("job", "7", true), Source::Watch);
        cache.jobs_relist();
        assert!(!cache.must_read_job(&key, "7"));
        assert_eq!(cache.jobs_listed(), []);
        cache.jobs_relist();
        assert_eq!(cache.jobs_listed(), [key]);
    }

    #[test]
    fn deletion_that_was_begun_changes_the_version_it_was_of_and_no_other() {
        let key = ObjectKey::new("ns", "job");
        for (of, expected) in [
            (deletion("U", "7"), (true, "9")),
            (deletion("U", "6"), (false, "7")),
            (deletion("V", "7"), (false, "7")),
        ] {
            let cache = Cache::new(1 << 20);
            cache.put_job(job("job", "7", true), Source::Watch);
            // The event may be on its way at the same time.
            assert!(cache.must_read_job(&key, "9"));
            cache.deletion_begun(&of, &key, "9".to_owned(), 0);
            let JobFacts { terminating, resource_version, .. } = facts(&cache, &key);
            assert_eq!((terminating, &*resource_version), expected, "{of:?}");
            assert_eq!(cache.must_read_job(&key, "9"), !terminating, "{of:?}");
        }
    }
}
