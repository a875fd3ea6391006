//! What users are told in events.
//!
//! One kind of event for each thing worth telling; reasons are part of the API (people alert on
//! them). `TrainJobResourcesCreationFailed` is Kubeflow Trainer's, the others are ours.

use trainjob_api::{
    conditions::MESSAGE_DEADLINE_EXCEEDED, constants::JOBSET_NAME_LABEL, time::Timestamp,
};

use crate::{
    facts::OutOfRange,
    lifecycle::{
        deadline::Explanation,
        hold::{self, Hold},
    },
    recreation::Origin,
};

/// Longest error text in a note, in bytes; longer ones are cut and marked (as Kubeflow Trainer does).
/// With what is said before it, a note stays below the 1,024 characters that the API server admits.
const MAX_ERROR_BYTES: usize = 950;
/// Longest name of who made a TrainJob, in bytes. An annotation may have any length.
const MAX_ORIGIN_BYTES: usize = 600;

/// Something to tell the users of a TrainJob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Something the job needs could not be made; says why.
    CreationFailed(String),
    /// Its deadline comes soon.
    DeadlineApproaching(Explanation),
    /// Its deadline failed it.
    DeadlineExceeded(Explanation),
    /// It failed, and this container of it was killed because it wanted more memory than it may have.
    OutOfMemory {
        /// Name of its Pod.
        pod: String,
        /// Name of the container.
        container: String,
        /// What it ended with.
        exit_code: i32,
    },
    /// Its TTL has deleted it.
    TtlExpired {
        /// When it finished.
        finished_at: Timestamp,
        /// `spec.ttlSecondsAfterFinished`.
        ttl: u32,
    },
    /// Its TTL has passed, and a hold delays its deletion.
    Held(Hold),
    /// Its JobSet could not be deleted; says why. Retried for ever.
    ReleaseFailed(String),
    /// Pods of it still run long after its deadline failed it; says which.
    ReleaseDelayed(String),
    /// This Pod has the label of its JobSet, but no JobSet made it.
    StrayPod(String),
    /// Its Pods are gone, but somebody's finalizer keeps its JobSet.
    ReleaseBlocked,
    /// It could not be deleted; says why. Retried for ever.
    TtlDeletionFailed(String),
    /// It was made again after a TTL had deleted one of its name, the third time within an hour; says by whom.
    RecreateLoop(Origin),
    /// A field's stored value counts as unset.
    FieldOutOfRange(OutOfRange),
    /// Its JobSet has begun and cannot take a change; says which part of the JobSet stays as it is.
    ChangeNotApplied(String),
    /// Its Pods are not counted, because no program that would count them lives.
    AccountingSkipped,
}

/// Whether an event is good or bad news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// As it should be. Dropped first when there are too many.
    Normal,
    /// Somebody may have to act.
    Warning,
}

impl Event {
    /// Good news or bad.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::TtlExpired { .. } | Self::Held(Hold { end: hold::End::AsWished, .. }) => {
                Severity::Normal
            }
            _ => Severity::Warning,
        }
    }

    /// The event's reason, in CamelCase.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::CreationFailed(_) => "TrainJobResourcesCreationFailed",
            Self::DeadlineApproaching(_) => "DeadlineApproaching",
            Self::DeadlineExceeded(_) => "DeadlineExceeded",
            Self::OutOfMemory { .. } => "PodOOMKilled",
            Self::TtlExpired { .. } => "TTLExpired",
            Self::Held(Hold { end, .. }) => match end {
                hold::End::AsWished => "Held",
                hold::End::Capped => "HoldCapped",
                hold::End::Unreadable => "HoldInvalid",
            },
            Self::ReleaseFailed(_) => "ReleaseFailed",
            Self::ReleaseDelayed(_) => "ReleaseDelayed",
            Self::StrayPod(_) => "StrayPod",
            Self::ReleaseBlocked => "ReleaseBlocked",
            Self::TtlDeletionFailed(_) => "TTLDeletionFailed",
            Self::RecreateLoop(_) => "RecreateLoop",
            Self::FieldOutOfRange(_) => "FieldOutOfRange",
            Self::ChangeNotApplied(_) => "ChangeNotApplied",
            Self::AccountingSkipped => "AccountingSkipped",
        }
    }

    /// The event's action: what the operator was doing.
    #[must_use]
    pub const fn action(&self) -> &'static str {
        match self {
            Self::CreationFailed(_)
            | Self::RecreateLoop(_)
            | Self::FieldOutOfRange(_)
            | Self::ChangeNotApplied(_)
            | Self::DeadlineApproaching(_)
            | Self::AccountingSkipped => "Reconciling",
            Self::DeadlineExceeded(_) | Self::OutOfMemory { .. } => "Failing",
            Self::ReleaseFailed(_)
            | Self::ReleaseDelayed(_)
            | Self::StrayPod(_)
            | Self::ReleaseBlocked => "Releasing",
            Self::TtlExpired { .. } | Self::Held(_) | Self::TtlDeletionFailed(_) => "Deleting",
        }
    }

    /// What a person reads.
    #[must_use]
    pub fn note(&self) -> String {
        match self {
            Self::CreationFailed(error) => {
                format!("TrainJob resources reconciliation failed: {}", cut(error, MAX_ERROR_BYTES))
            }
            Self::DeadlineApproaching(Explanation { seconds, due, .. }) => format!(
                "the TrainJob fails at {due}, when its {seconds} seconds (spec.activeDeadlineSeconds) are over; what it has not saved by then is lost"
            ),
            Self::DeadlineExceeded(why) => {
                format!("{MESSAGE_DEADLINE_EXCEEDED}. {why} Its JobSet is deleted.")
            }
            Self::OutOfMemory { pod, container, exit_code } => format!(
                "container {container} of Pod {pod} ran out of memory (OOMKilled, exit code {exit_code})"
            ),
            Self::TtlExpired { finished_at, ttl } => format!(
                "TrainJob finished at {finished_at}; deleted because spec.ttlSecondsAfterFinished ({ttl}) has passed"
            ),
            Self::Held(hold) => hold.to_string(),
            Self::ReleaseFailed(error) => {
                format!(
                    "JobSet could not be deleted and may hold accelerators; retrying: {}",
                    cut(error, MAX_ERROR_BYTES)
                )
            }
            Self::ReleaseDelayed(what) => {
                format!(
                    "TrainJob is not released, because Pods of it still run: {}",
                    cut(what, MAX_ERROR_BYTES)
                )
            }
            Self::StrayPod(name) => format!(
                "Pod {name} has the label {JOBSET_NAME_LABEL} of this TrainJob, but no JobSet made it; the TrainJob does not wait for it"
            ),
            Self::ReleaseBlocked => {
                "the Pods of the TrainJob are gone, but a finalizer keeps its JobSet".to_owned()
            }
            Self::TtlDeletionFailed(error) => {
                format!(
                    "TTL has passed, but the TrainJob could not be deleted; retrying: {}",
                    cut(error, MAX_ERROR_BYTES)
                )
            }
            Self::RecreateLoop(origin) => format!(
                "TTL has deleted a TrainJob of this name three times within an hour, and each time it was made again, this time by {}. It runs again and again until spec.ttlSecondsAfterFinished or what makes it again is changed",
                cut(&origin.to_string(), MAX_ORIGIN_BYTES)
            ),
            Self::FieldOutOfRange(OutOfRange { field, value, minimum }) => {
                format!("{field} is {value} and counts as unset; it must be at least {minimum}")
            }
            Self::AccountingSkipped => {
                "the Pods of the TrainJob are not counted: trainjob-accounting has not renewed its Lease for a minute, or is not installed"
                    .to_owned()
            }
            Self::ChangeNotApplied(part) => format!(
                "the JobSet has begun and keeps its {part}; delete it while the TrainJob is suspended to have it made anew"
            ),
        }
    }
}

fn cut(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let end = (0..=longest).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{} ...", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::deadline::Clock;

    #[test]
    fn a_long_error_is_cut_on_a_character_and_marked() {
        let note = Event::CreationFailed("é".repeat(600)).note();
        assert!(note.ends_with("é ..."), "{note}");
        assert!(
            note.len() <= "TrainJob resources reconciliation failed:  ...".len() + MAX_ERROR_BYTES
        );
        let short = Event::CreationFailed("no such runtime".into()).note();
        assert_eq!(short, "TrainJob resources reconciliation failed: no such runtime");
    }

    #[test]
    fn a_text_is_told_as_it_is() {
        let text = "100%d of {} \u{1f4a5} %!x";
        assert!(Event::CreationFailed(text.into()).note().ends_with(text));
    }

    #[test]
    fn no_note_is_longer_than_the_api_server_admits() {
        let error = "x".repeat(2_000);
        for event in [
            Event::CreationFailed(error.clone()),
            Event::ReleaseFailed(error.clone()),
            Event::ReleaseDelayed(error.clone()),
            Event::StrayPod("x".repeat(253)),
            Event::RecreateLoop(Origin::ArgoCd { application: error.clone() }),
            Event::TtlDeletionFailed(error),
        ] {
            assert!(event.note().len() <= 1_024, "{}", event.reason());
        }
    }

    #[test]
    fn people_alert_on_reasons_so_they_stay() {
        let problem = OutOfRange { field: "spec.activeDeadlineSeconds", value: -1, minimum: 1 };
        let at = Timestamp(1_767_520_800);
        let explanation = Explanation {
            seconds: 60,
            start: at,
            due: at.plus(60),
            clock: Clock::Creation,
            suspended: None,
        };
        for (event, reason, severity, note) in [
            (
                Event::CreationFailed("x".into()),
                "TrainJobResourcesCreationFailed",
                Severity::Warning,
                "x",
            ),
            (
                Event::DeadlineExceeded(explanation),
                "DeadlineExceeded",
                Severity::Warning,
                "TrainJob exceeded its active deadline. Its 60 seconds (spec.activeDeadlineSeconds) count",
            ),
            (
                Event::TtlExpired { finished_at: at, ttl: 60 },
                "TTLExpired",
                Severity::Normal,
                "2026-01-04T10:00:00Z; deleted because spec.ttlSecondsAfterFinished (60)",
            ),
            (
                Event::OutOfMemory { pod: "p".into(), container: "c".into(), exit_code: 137 },
                "PodOOMKilled",
                Severity::Warning,
                "container c of Pod p ran out of memory (OOMKilled, exit code 137)",
            ),
            (Event::ReleaseFailed("x".into()), "ReleaseFailed", Severity::Warning, "x"),
            (
                Event::ReleaseDelayed("Pod p".into()),
                "ReleaseDelayed",
                Severity::Warning,
                "still run: Pod p",
            ),
            (Event::StrayPod("p".into()), "StrayPod", Severity::Warning, "Pod p has the label"),
            (Event::ReleaseBlocked, "ReleaseBlocked", Severity::Warning, "finalizer"),
            (Event::TtlDeletionFailed("x".into()), "TTLDeletionFailed", Severity::Warning, "x"),
            (
                Event::FieldOutOfRange(problem),
                "FieldOutOfRange",
                Severity::Warning,
                "spec.activeDeadlineSeconds is -1 and counts as unset; it must be at least 1",
            ),
            (
                Event::ChangeNotApplied("spec.replicatedJobs[node]".into()),
                "ChangeNotApplied",
                Severity::Warning,
                "keeps its spec.replicatedJobs[node];",
            ),
            (
                Event::DeadlineApproaching(Explanation {
                    seconds: 7_200,
                    start: Timestamp(1_767_513_600),
                    due: Timestamp(1_767_520_800),
                    clock: Clock::Creation,
                    suspended: None,
                }),
                "DeadlineApproaching",
                Severity::Warning,
                "fails at 2026-01-04T10:00:00Z, when its 7200 seconds",
            ),
            (
                Event::AccountingSkipped,
                "AccountingSkipped",
                Severity::Warning,
                "not counted: trainjob-accounting has not renewed its Lease",
            ),
        ] {
            assert_eq!((event.reason(), event.severity()), (reason, severity));
            assert!(event.note().contains(note), "{}", event.note());
        }
    }

    #[test]
    fn people_alert_on_reasons_of_holds_and_loops_so_they_stay() {
        let held = |end| Event::Held(Hold { until: Timestamp(1_767_520_800), end });
        for (event, reason, severity, note) in [
            (held(hold::End::AsWished), "Held", Severity::Normal, "until 2026-01-04T10:00:00Z"),
            (held(hold::End::Capped), "HoldCapped", Severity::Warning, "maximumHoldSeconds"),
            (held(hold::End::Unreadable), "HoldInvalid", Severity::Warning, "no RFC 3339 time"),
            (
                Event::RecreateLoop(Origin::Unknown),
                "RecreateLoop",
                Severity::Warning,
                "three times within an hour, and each time it was made again, this time by a user or a program.",
            ),
        ] {
            assert_eq!((event.reason(), event.severity()), (reason, severity));
            assert!(event.note().contains(note), "{}", event.note());
        }
    }

    #[test]
    fn percent_signs_are_left_alone() {
        assert!(Event::CreationFailed("100%!x".into()).note().ends_with(": 100%!x"));
    }
}
