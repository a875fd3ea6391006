//! Seeded defects: what a wrong program would do. None is in the product. Each changes what the keeper is told, or what it
//! asks for.

use trainjob_accounting_core::{keeper::Store, pod::Pod};
use trainjob_api::lifecycle::v1alpha1::{
    record::{Totals, TrainJobRecordStatus},
    record_words::RecordReason,
};

/// A way to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// The Pods that prove a record are those that the watch has shown (AG5).
    ProvesByWatch,
    /// Older news replace newer ones (AG6).
    TakesOldNews,
    /// A release leaves no annotation (AG2).
    NoAnnotation,
    /// A Pod is released when it has ended, not when that is stored (AG2).
    ReleasesFirst,
    /// A silent API server is taken for a refusal (AH3).
    CountsSilence,
    /// UIDs are dropped with the next store, released or not (AG3).
    ClearsTooEarly,
    /// Sums begin anew now and then (AG1).
    ForgetsSums,
    /// The UIDs are stored without the shares (AG2).
    StoresOnlyUids,
    /// Nothing is told of what went unseen (AG11).
    TellsNoLosses,
    /// What went unseen is told of with each store (AG11).
    TellsLossesTwice,
    /// Nothing is told of a record that was made anew (AG12).
    TellsNoRecreation,
    /// The end of a container is not read (AT2).
    GuessesEnds,
    /// Generations are not read (AE2).
    IgnoresGenerations,
    /// The TrainJob is not read before its word decides (AE2).
    BelievesWatch,
    /// A request that failed is not repeated (AG8).
    NeverRepeats,
    /// A refusal is taken for a silent API server (AH2).
    ValveStaysShut,
    /// A Pod that was deleted by force has not ended before its kubelet says so (AE1).
    IgnoresForce,
    /// All failures are kept, those that are told of already, too.
    KeepsAllFailures,
    /// What is stored is stored again.
    WritesAgain,
    /// A status is stored without a version (AG2).
    StoresWithoutVersion,
    /// Of the failures, the last ones are kept (A11).
    KeepsLastFailures,
    /// A record is taken by its name, whosever it is.
    TakesOthersRecord,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::ProvesByWatch,
        Self::TakesOldNews,
        Self::NoAnnotation,
        Self::ReleasesFirst,
        Self::CountsSilence,
        Self::ClearsTooEarly,
        Self::ForgetsSums,
        Self::StoresOnlyUids,
        Self::TellsNoLosses,
        Self::TellsLossesTwice,
        Self::TellsNoRecreation,
        Self::GuessesEnds,
        Self::IgnoresGenerations,
        Self::BelievesWatch,
        Self::NeverRepeats,
        Self::ValveStaysShut,
        Self::IgnoresForce,
        Self::KeepsAllFailures,
        Self::WritesAgain,
        Self::StoresWithoutVersion,
        Self::KeepsLastFailures,
        Self::TakesOthersRecord,
    ];

    /// A Pod, as a program with this defect reads it.
    pub(super) fn read(defect: Option<Self>, mut pod: Pod) -> Pod {
        match defect {
            Some(Self::GuessesEnds) => pod.containers = Box::default(),
            Some(Self::IgnoresGenerations) => pod.generations = None,
            Some(Self::IgnoresForce) => {
                if let Some(deletion) = &mut pod.deletion {
                    deletion.grace = 30;
                }
            }
            _ => {}
        }
        pod
    }

    /// What a program with this defect makes of a status before it stores it.
    pub(super) fn spoil(defect: Option<Self>, store: &mut Store, before: &TrainJobRecordStatus) {
        let status = &mut store.status;
        match defect {
            Some(Self::ClearsTooEarly) => {
                status.settling.retain(|uid| !before.settling.contains(uid));
            }
            Some(Self::ForgetsSums) if status.settling.is_empty() => {
                status.totals = Totals::default();
            }
            Some(Self::StoresOnlyUids) => {
                status.totals = before.totals.clone();
                status.replicated_jobs.clone_from(&before.replicated_jobs);
            }
            Some(Self::TellsNoLosses) => status.lost.clear(),
            Some(Self::TellsLossesTwice) => {
                status.lost.values_mut().for_each(|count| *count *= 2);
            }
            Some(Self::TellsNoRecreation) => {
                status.inexact.retain(|it| it != RecordReason::Recreated.as_str());
            }
            Some(Self::KeepsAllFailures) => {
                status.first_failures.extend(before.first_failures.clone());
            }
            Some(Self::KeepsLastFailures) => {
                status.first_failures.retain(|it| !before.first_failures.contains(it));
            }
            Some(Self::StoresWithoutVersion) => store.fence.version.clear(),
            _ => {}
        }
    }
}
