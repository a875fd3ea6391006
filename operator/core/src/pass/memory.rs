//! What an operator remembers of a job between its passes.

use std::time::Duration;

use super::retry::{Retries, Retry};
use crate::{
    facts::{JobFacts, JobSetFacts, version_number},
    lifecycle::hold::News,
    observed::{Reading, Readings},
    priority::Priority,
    recreation::Origin,
    running_pods::RunningPods,
};

/// What is remembered of a job beside the objects that are watched. A restart loses it, and nothing depends on it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobMemory {
    pub(super) readings: Readings,
    pub(super) retries: Retries,
    /// When counts were last written.
    pub(super) counts_written: Option<Duration>,
    /// When it was last written why the job is not released.
    pub(super) text_written: Option<Duration>,
    /// When the check for running Pods that is under way was begun.
    pub(super) pod_check: Option<Duration>,
}

/// Who showed an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownBy {
    /// A watch, or the list it begins with.
    Watch,
    /// The reply to a request of our own.
    Reply,
}

impl JobMemory {
    /// What is remembered of a job whose JobSet was made from inputs with this digest, and nothing else.
    pub(super) fn of_applied(spec_hash: u64) -> Self {
        let applied_spec_hash = Some(spec_hash);
        Self { readings: Readings { applied_spec_hash, ..Readings::default() }, ..Self::default() }
    }

    /// What is remembered of a job that is released, and nothing else.
    pub(super) fn of_released() -> Self {
        Self {
            readings: Readings { pods: Reading::Absent, ..Readings::default() },
            ..Self::default()
        }
    }

    /// What is remembered of a job whose JobSet somebody has changed, and nothing else.
    pub(super) fn of_edited(version: u64) -> Self {
        let edited = Some(version);
        Self { readings: Readings { edited, ..Readings::default() }, ..Self::default() }
    }

    /// What was read of the job, as far as it still holds.
    #[must_use]
    pub fn readings(&self) -> Readings {
        let mut readings = self.readings.clone();
        if let Some(edited) = readings.edited {
            readings.applied_spec_hash = None;
            readings.job_set = readings
                .job_set
                .filter(|job_set| version_number(&job_set.resource_version) >= edited);
        }
        readings
    }

    /// How long the documents are together that were read for its plan.
    #[must_use]
    pub fn document_length(&self) -> usize {
        let Readings { snapshot, job_set, .. } = &self.readings;
        let snapshot = match snapshot {
            Reading::Found(config_map) => {
                config_map.data.iter().flatten().map(|(_, it)| it.len()).sum()
            }
            Reading::Absent | Reading::NotRead => 0,
        };
        snapshot + job_set.as_ref().map_or(0, |job_set| job_set.text.json().len())
    }

    /// Whether Pods of its JobSet still run, read after the JobSet was gone.
    #[must_use]
    pub const fn pods(&self) -> &Reading<RunningPods> {
        &self.readings.pods
    }

    /// A pass over the job with this priority has ended otherwise than by itself: when to try again.
    pub fn broken_off(&mut self, priority: Priority) -> Retry {
        self.pod_check = None;
        self.retries.again(priority, Duration::ZERO)
    }

    /// Takes in that the creation of the job [closed a loop](crate::recreation), and by whom it was made.
    pub fn loop_closed(&mut self, by: Origin) {
        self.readings.loop_closed_by = Some(by);
    }

    /// Takes in a newer version of the job.
    pub fn job_shown(&mut self, before: &JobFacts, shown: &JobFacts) {
        // Before its end nothing is held, and nothing was recorded.
        if before.uid == shown.uid && before.finished.is_some() && before.hold != shown.hold {
            self.readings.hold = News::Edited;
        }
        if shown.finished.is_some() {
            // It needs no JobSet any more.
            self.readings.edited = None;
            self.readings.ended = None;
            self.readings.needs_existence_check = false;
        }
    }

    /// Takes in a JobSet of the job's name, of which `before` was known; `news` unless a newer version was.
    pub fn job_set_shown(
        &mut self,
        before: Option<&JobSetFacts>,
        shown: &JobSetFacts,
        news: bool,
        by: ShownBy,
    ) {
        let version = version_number(&shown.resource_version);
        match (before.filter(|before| before.uid == shown.uid), by) {
            // What was seen of Pods before says nothing about those of this one.
            (None, _) if news => self.forget_job_set(),
            (Some(before), ShownBy::Watch) if news && before.generation != shown.generation => {
                self.readings.edited = Some(version);
            }
            // It was our own write, which the watch had delivered before its reply came.
            (_, ShownBy::Reply) if self.readings.edited == Some(version) => {
                self.readings.edited = None;
            }
            _ => {}
        }
    }

    /// Takes in that the JobSet of the name of `job` is gone. An unfinished job of its own may be gone with it, without
    /// its watch having said so; if not, it ends as its JobSet has.
    pub fn job_set_gone(&mut self, gone: &JobSetFacts, job: &JobFacts) {
        self.forget_job_set();
        if gone.train_job_uid.as_ref() == Some(&job.uid) && job.finished.is_none() {
            self.readings.needs_existence_check = true;
            self.readings.ended.clone_from(&gone.ended);
        }
    }

    /// Takes in that a PodGroup of the job's name is gone: a suspended job gets it again before it is resumed.
    pub const fn pod_group_gone(&mut self) {
        self.readings.applied_spec_hash = None;
    }

    /// The JobSet is made from inputs with this digest, unless somebody has changed it since `edited` was known.
    pub(super) fn spec_applied(&mut self, digest: u64, edited: Option<u64>) {
        if self.readings.edited.is_none() || self.readings.edited == edited {
            self.readings.edited = None;
            self.readings.applied_spec_hash = Some(digest);
        }
        self.forget_documents();
    }

    /// What was read for one plan is old by the next pass.
    pub(super) fn forget_documents(&mut self) {
        self.readings.snapshot = Reading::NotRead;
        self.readings.job_set = None;
    }

    fn forget_job_set(&mut self) {
        self.forget_pods();
        self.readings.ended = None;
        self.readings.edited = None;
        self.readings.applied_spec_hash = None;
        self.readings.job_set = None;
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use serde_json::{Value, json};
    use trainjob_api::JobSet;

    use super::*;
    use crate::{facts::JobSetEnd, observed::ReadJobSet, running_pods::PodCheck};

    fn condition() -> Condition {
        let condition = json!({"type": "Complete", "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        serde_json::from_value(condition).unwrap()
    }

    fn job_set(uid: &str) -> JobSetFacts {
        let metadata = json!({"uid": uid, "resourceVersion": "10"});
        JobSetFacts::of(&serde_json::from_value(json!({"metadata": metadata})).unwrap())
    }

    #[test]
    fn jobset_that_was_read_is_used_unless_it_is_from_before_an_edit() {
        for (version, used) in [("11", false), ("12", true), ("13", true)] {
            let mut memory = JobMemory::default();
            let mut read = JobSet::default();
            read.metadata.resource_version = Some(version.into());
            memory.readings.job_set = ReadJobSet::of(&read).ok();
            assert!(memory.readings().job_set.is_some(), "version {version}, not edited");
            memory.readings.edited = Some(12);
            assert_eq!(memory.readings().job_set.is_some(), used, "version {version}");
        }
    }

    #[test]
    fn hold_that_is_changed_after_the_end_of_the_job_is_news() {
        let job = |uid: &str, finished, hold: Option<&str>| {
            let end = json!([{"type": "Complete", "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
            let conditions = if finished { end } else { json!([]) };
            let annotations = json!({"lifecycle.trainjob.dev/hold-until": hold});
            JobFacts::of(
                &serde_json::from_value(json!({
                    "metadata": {"uid": uid, "annotations": hold.map(|_| annotations)},
                    "spec": {"runtimeRef": {"name": "r"}}, "status": {"conditions": conditions},
                }))
                .unwrap(),
            )
        };
        let held = job("U", true, Some("soon"));
        for (before, after, expected) in [
            (&held, job("U", true, Some("2026-01-02T00:00:00Z")), News::Edited),
            (&held, job("U", true, None), News::Edited),
            (&job("U", true, None), held.clone(), News::Edited),
            (&held, held.clone(), News::Recorded),
            (&job("V", true, None), held.clone(), News::Recorded),
            (&job("U", false, None), held.clone(), News::Recorded),
        ] {
            let mut memory = JobMemory::default();
            memory.readings.hold = News::Recorded;
            memory.job_shown(before, &after);
            assert_eq!(memory.readings().hold, expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn old_view_of_another_jobset_takes_nothing_along() {
        let mut memory = JobMemory::default();
        memory.pods_checked(PodCheck::default());
        let before = memory.clone();
        memory.job_set_shown(Some(&job_set("K")), &job_set("J"), false, ShownBy::Watch);
        assert_eq!(memory, before);
    }

    #[test]
    fn job_ends_as_its_own_jobset_has_that_is_gone_unless_another_comes_first() {
        let mut gone = job_set("J");
        gone.ended = Some(Box::new(JobSetEnd { completed: true, condition: condition() }));
        let job = |uid: &str, conditions: Value| {
            JobFacts::of(
                &serde_json::from_value(json!({
                    "metadata": {"uid": uid}, "spec": {"runtimeRef": {"name": "r"}},
                    "status": {"conditions": conditions},
                }))
                .unwrap(),
            )
        };
        let (running, finished) = (job("U", json!([])), job("U", json!([condition()])));
        for (of, job, expected) in
            [("U", &running, true), ("U", &finished, false), ("V", &running, false)]
        {
            gone.train_job_uid = Some(of.into());
            let mut memory = JobMemory::default();
            memory.job_set_gone(&gone, job);
            let readings = memory.readings();
            assert_eq!(readings.ended.is_some(), expected, "{of} {job:?}");
            assert_eq!(readings.needs_existence_check, expected, "{of} {job:?}");
            memory.job_shown(&running, &running);
            assert_eq!(memory.readings(), readings, "an edit changes nothing");
            let mut ended = memory.clone();
            ended.job_shown(&running, &finished);
            assert_eq!(ended, JobMemory::default());
            memory.job_set_shown(None, &job_set("K"), true, ShownBy::Watch);
            assert_eq!(memory.readings().ended, None);
        }
    }

    #[test]
    fn jobset_follows_its_job_anew_when_the_pod_group_is_gone() {
        let mut memory = JobMemory::default();
        memory.spec_applied(7, None);
        memory.pod_group_gone();
        assert_eq!(memory, JobMemory::default());
    }

    #[test]
    fn pass_that_was_broken_off_is_tried_again_and_waits_for_no_check_that_it_began() {
        let mut memory = JobMemory::default();
        for backoff in [100, 200] {
            memory.pod_check = Some(Duration::ZERO);
            let retry = memory.broken_off(Priority::Live);
            assert_eq!(
                (retry.backoff, retry.at_least),
                (Duration::from_millis(backoff), Duration::ZERO)
            );
            assert_eq!(memory.pod_check, None);
        }
    }
}
