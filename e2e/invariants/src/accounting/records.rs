//! What must hold of each record: A1, A4 to A9 and A12.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use trainjob_api::lifecycle::v1alpha1::{
    record::{
        ATTEMPTS, FAILURES, JOB_SETS, NAMES, PodCounts, PodSums, RESOURCES, SETTLING, Seconds,
        TrainJobRecordStatus,
    },
    record_words::Outcome,
};

use super::{
    Terms,
    gpu_seconds::may_add,
    history::{AccountingHistory, PodVersion, RecordVersion, Written},
    violation::{Invariant, Violation},
};

/// The history of one record.
struct Life<'a> {
    versions: &'a [&'a RecordVersion],
    records: &'a BTreeMap<&'a str, Vec<&'a RecordVersion>>,
    pods: &'a BTreeMap<&'a str, Vec<&'a PodVersion>>,
    terms: &'a Terms,
}

pub(super) fn check(history: &AccountingHistory, terms: &Terms) -> Vec<Violation> {
    let mut found = Vec::new();
    let (pods, records) = (history.by_pod(), history.by_record());
    for versions in records.values() {
        let life = Life { versions, records: &records, pods: &pods, terms };
        found.extend(life.settling());
        found.extend(life.steps());
        found.extend(life.each());
        found.extend(life.end());
    }
    for (at, written) in &history.written {
        if *written == (Written::Status { with_version: false }) {
            let (object, what) = ("a record".into(), "was to be written in any version".into());
            found.push(Violation { invariant: Invariant::A9, object, at: *at, what });
        }
    }
    found
}

fn broken(invariant: Invariant, record: &RecordVersion, what: String) -> Violation {
    Violation { invariant, object: format!("record {}", record.name), at: record.at, what }
}

fn counted(pods: PodCounts) -> u64 {
    pods.succeeded + pods.failed + pods.deleted
}

impl Life<'_> {
    /// A1, A5 and A7: what enters `settling`.
    fn settling(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let (mut ever, mut before) = (BTreeSet::new(), BTreeSet::new());
        let mut seconds = 0;
        for version in self.versions.iter().filter(|version| !version.gone) {
            let now: BTreeSet<_> = version.status.settling.iter().map(String::as_str).collect();
            let entered: Vec<_> = now.difference(&before).copied().collect();
            for uid in &entered {
                if !ever.insert(*uid) {
                    let what = format!("has counted {uid} twice");
                    found.push(broken(Invariant::A1, version, what));
                }
            }
            let totals = &version.status.totals;
            let (counted, entries) = (counted(totals.pods), ever.len() as u64);
            if counted != entries {
                let what = format!("says {counted} where {entries} were counted");
                found.push(broken(Invariant::A5, version, what));
            }
            let added = totals.gpu_seconds.saturating_sub(seconds);
            let charged = self.charged(&entered, version);
            if let Some(expected) = charged.filter(|it| !it.contains(&added)) {
                let (least, most) = expected.into_inner();
                let what = format!("has added {added} GPU seconds, not {least} to {most}");
                found.push(broken(Invariant::A7, version, what));
            }
            (before, seconds) = (now, totals.gpu_seconds);
        }
        found
    }

    /// The least and the most that these Pods may add to this version; `None`: that is not known of one of them.
    fn charged(&self, uids: &[&str], version: &RecordVersion) -> Option<RangeInclusive<u64>> {
        uids.iter().try_fold(0..=0, |sum, uid| {
            let pod = may_add(self.pods.get(uid)?, version, self.terms.watch_behind)?;
            Some(sum.start() + pod.start()..=sum.end() + pod.end())
        })
    }

    /// A4 and A9: from one version to the next.
    fn steps(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for pair in self.versions.windows(2) {
            let [before, after] = pair else { continue };
            if after.gone {
                continue;
            }
            let fallen = fallen(&before.status, &after.status);
            found.extend(fallen.map(|what| broken(Invariant::A4, after, what)));
            let but_time = |status: &TrainJobRecordStatus| TrainJobRecordStatus {
                as_of: None,
                ..status.clone()
            };
            if but_time(&before.status) == but_time(&after.status) {
                let what = "was written and not changed".to_owned();
                found.push(broken(Invariant::A9, after, what));
            }
        }
        found
    }

    /// A4 and A8: of each version.
    fn each(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for version in self.versions.iter().filter(|version| !version.gone) {
            let status = &version.status;
            let (parts, totals) = (parts(status), status.totals.pods);
            if parts != totals {
                let what = format!("adds up to {parts:?}, not to {totals:?}");
                found.push(broken(Invariant::A4, version, what));
            }
            found.extend(beyond(status).map(|what| broken(Invariant::A8, version, what)));
        }
        found
    }

    /// A6 and A12.
    fn end(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut all = self.versions.iter();
        if let Some(version) = all.rfind(|version| !version.gone && is_final(version)) {
            found.extend(self.tells_of_all(version));
        }
        let gone = self.versions.iter().find(|version| version.gone && !self.terms.records_go);
        found.extend(gone.map(|it| broken(Invariant::A12, it, "is gone".to_owned())));
        found
    }

    /// A6, of a version that is final. A record that is made anew is to tell of what the one before had not counted; what
    /// that one had counted and not released, both may count.
    fn tells_of_all(&self, version: &RecordVersion) -> Option<Violation> {
        let marked: BTreeSet<_> = self
            .pods
            .iter()
            .filter(|(_, pod)| {
                let first = pod.first();
                first.is_some_and(|it| it.job == version.job && it.revision < version.revision)
            })
            .map(|(uid, _)| *uid)
            .collect();
        let told_before = self.counted_before(version);
        let told_before = told_before.intersection(&marked).count() as u64;
        let lost: u64 = version.status.lost.values().sum();
        let told = counted(version.status.totals.pods) + told_before + lost;
        let number = marked.len() as u64;
        let is_excused = marked.iter().any(|uid| self.terms.excused.contains(*uid));
        let breaks = told > number || (!is_excused && (told < number || lost > 0));
        let what = format!("tells of {told} Pods, {lost} of them lost, where {number} were");
        breaks.then(|| broken(Invariant::A6, version, what))
    }

    /// What records of the same TrainJob that were deleted had counted, and this one did not count again.
    fn counted_before(&self, version: &RecordVersion) -> BTreeSet<&str> {
        let here: BTreeSet<_> = settled(self.versions).collect();
        let is_deleted = |versions: &&Vec<&RecordVersion>| {
            let gone = |it: &&RecordVersion| it.gone && it.revision < version.revision;
            versions.iter().any(|it| it.job == version.job && gone(it))
        };
        let before = self.records.values().filter(is_deleted);
        before.flat_map(|it| settled(it)).filter(|uid| !here.contains(uid)).collect()
    }
}

/// The UIDs that ever were in `settling`.
fn settled<'a>(versions: &[&'a RecordVersion]) -> impl Iterator<Item = &'a str> {
    versions.iter().flat_map(|it| it.status.settling.iter().map(String::as_str))
}

fn is_final(version: &RecordVersion) -> bool {
    let mut conditions = version.status.conditions.iter();
    conditions.any(|it| it.type_ == "Final" && it.status == "True")
}

/// What fell and may not.
fn fallen(before: &TrainJobRecordStatus, after: &TrainJobRecordStatus) -> Option<String> {
    // One leader saw the TrainJob go and stored that it was deleted, by which all is wasted; another knows how it had finished.
    let is_corrected =
        before.outcome == Outcome::Deleted.as_str() && after.outcome != before.outcome;
    let mut numbers = numbers(before).into_iter().zip(numbers(after));
    let may_fall = |name: &str| is_corrected && name == "wastedGpuSeconds";
    let fallen = numbers.find(|((name, was), (_, is))| is < was && !may_fall(name));
    let [was, is] = [before, after].map(|status| &status.totals);
    fallen
        .map(|((name, was), (_, is))| format!("{name} fell from {was} to {is}"))
        .or_else(|| fallen_resource("seconds", &was.seconds, &is.seconds))
        .or_else(|| fallen_resource("wasted", &was.wasted, &is.wasted).filter(|_| !is_corrected))
}

/// A resource whose seconds fell. Where others have come that take all room, one may go altogether.
fn fallen_resource(what: &str, before: &Seconds, after: &Seconds) -> Option<String> {
    let is_full = after.len() == RESOURCES;
    before.iter().find_map(|(name, was)| {
        let is = after.get(name);
        let has_fallen = is.map_or(!is_full, |is| is < was);
        has_fallen.then(|| format!("{what} of {name} fell from {was} to {is:?}"))
    })
}

/// The numbers that never fall.
fn numbers(status: &TrainJobRecordStatus) -> [(&'static str, u64); 8] {
    let totals = &status.totals;
    [
        ("succeeded", totals.pods.succeeded),
        ("failed", totals.pods.failed),
        ("deleted", totals.pods.deleted),
        ("restarts", totals.restarts),
        ("gpuSeconds", totals.gpu_seconds),
        ("wastedGpuSeconds", totals.wasted_gpu_seconds),
        ("clamped", status.clamped),
        ("lost", status.lost.values().sum()),
    ]
}

/// The Pods of all replicated jobs together.
fn parts(status: &TrainJobRecordStatus) -> PodCounts {
    let jobs = &status.replicated_jobs;
    let attempts = jobs.iter().flat_map(|job| &job.attempts).map(|it| it.sums.pods);
    let earlier = jobs.iter().filter_map(|job| job.earlier.as_ref()).map(|it| it.sums.pods);
    attempts.chain(earlier).fold(PodCounts::default(), |sum, pods| PodCounts {
        active: sum.active + pods.active,
        succeeded: sum.succeeded + pods.succeeded,
        failed: sum.failed + pods.failed,
        deleted: sum.deleted + pods.deleted,
    })
}

/// What is longer than it may be.
fn beyond(status: &TrainJobRecordStatus) -> Option<String> {
    let jobs = &status.replicated_jobs;
    let attempts = jobs.iter().flat_map(|job| &job.attempts);
    let earlier = jobs.iter().filter_map(|job| job.earlier.as_ref());
    let sums = attempts.map(|it| &it.sums).chain(earlier.map(|it| &it.sums));
    let resources = |sums: &PodSums| sums.seconds.len().max(sums.wasted.len());
    let most = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or_default();
    let lengths = [
        ("settling", status.settling.len(), SETTLING),
        ("jobSets", status.job_sets.len(), JOB_SETS),
        ("causes", status.causes.len(), ATTEMPTS),
        ("replicatedJobs", jobs.len(), NAMES + 1),
        ("exitCodes", status.exit_codes.len(), NAMES + 1),
        ("firstFailures", status.first_failures.len(), FAILURES),
        ("attempts", most(&mut jobs.iter().map(|job| job.attempts.len())), ATTEMPTS),
        ("resources", most(&mut sums.map(resources)), RESOURCES),
    ];
    let long = lengths.into_iter().find(|(_, length, most)| length > most)?;
    Some(format!("has {} {}, not {} at most", long.1, long.0, long.2))
}
