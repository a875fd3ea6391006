//! Seeded defects: what a wrong program would do. None is in the product. Each changes what the keeper is told, or what it
//! asks for.

use trainjob_accounting_core::pod::Pod;
use trainjob_api::lifecycle::v1alpha1::record::{Totals, TrainJobRecordStatus};

/// A way to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    /// The Pods that prove a record are those that the watch has shown (AG5).
    ProvesByWatch,
    /// Older news replace newer ones (AG6).
    TakesOldNews,
    /// A release leaves no annotation (AG2).
    NoAnnotation,
    /// A Pod is released when it has ended, not when that is stored (AG2).
    ReleasesFirst,
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
    /// The end of a container is not read (AT2).
    GuessesEnds,
    /// Generations are not read (AE2).
    IgnoresGenerations,
    /// A request that failed is not repeated (AG8).
    NeverRepeats,
    /// A refusal is taken for a silent API server (AH2).
    ValveStaysShut,
    /// What is stored is stored again.
    WritesAgain,
    /// Of the failures, the last ones are kept (A11).
    KeepsLastFailures,
}

impl Defect {
    /// The rule that each breaks.
    pub(crate) const ALL: [(Self, &'static str); 15] = [
        (Self::ProvesByWatch, "A1"),
        (Self::TakesOldNews, "A1"),
        (Self::NoAnnotation, "A1"),
        (Self::ReleasesFirst, "A2"),
        (Self::ClearsTooEarly, "A3"),
        (Self::ForgetsSums, "A4"),
        (Self::StoresOnlyUids, "A5"),
        (Self::TellsNoLosses, "A6"),
        (Self::TellsLossesTwice, "A6"),
        (Self::GuessesEnds, "A7"),
        (Self::IgnoresGenerations, "A7"),
        (Self::NeverRepeats, "A8"),
        (Self::ValveStaysShut, "A8"),
        (Self::WritesAgain, "A9"),
        (Self::KeepsLastFailures, "A11"),
    ];

    /// A Pod, as a program with this defect reads it.
    pub(crate) fn read(defect: Option<Self>, mut pod: Pod) -> Pod {
        if defect == Some(Self::GuessesEnds) {
            pod.containers.clear();
        }
        if defect == Some(Self::IgnoresGenerations) {
            pod.generations = None;
        }
        pod
    }

    /// What a program with this defect makes of a status before it stores it.
    pub(crate) fn spoil(
        defect: Option<Self>,
        status: &mut TrainJobRecordStatus,
        before: &TrainJobRecordStatus,
    ) {
        match defect {
            Some(Self::ClearsTooEarly) => {
                status.settling.retain(|uid| !before.settling.contains(uid));
            }
            Some(Self::ForgetsSums) if status.settling.is_empty() => {
                status.totals = Totals::default();
            }
            Some(Self::StoresOnlyUids) => status.totals = before.totals.clone(),
            Some(Self::TellsNoLosses) => status.lost.clear(),
            Some(Self::TellsLossesTwice) => {
                status.lost.values_mut().for_each(|count| *count *= 2);
            }
            Some(Self::KeepsLastFailures) => {
                status.first_failures.retain(|it| !before.first_failures.contains(it));
            }
            Some(
                Self::ProvesByWatch
                | Self::TakesOldNews
                | Self::NoAnnotation
                | Self::ReleasesFirst
                | Self::ForgetsSums
                | Self::GuessesEnds
                | Self::IgnoresGenerations
                | Self::NeverRepeats
                | Self::ValveStaysShut
                | Self::WritesAgain,
            )
            | None => {}
        }
    }
}
