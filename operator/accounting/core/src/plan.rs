//! The algorithm (AG1 to AG12): what to do next about one record.
//!
//! The record is the only memory. `settling` has the UIDs of Pods that are counted and whose finalizer is not known to be
//! gone. A Pod is *open* if it is marked, its annotation does not say that it is counted, and it is not in `settling`. A
//! round has three steps:
//!
//! 1. **Store**: one write of the status, fenced by UID and resourceVersion, adds the shares of ended open Pods to the
//!    counters and their UIDs to `settling`, both or neither.
//! 2. **Release**: each Pod whose UID is in *stored* `settling` loses the finalizer and gets the annotation.
//! 3. **Clear**: the next store drops UIDs that are known to be released.
//!
//! Why a Pod is counted once, by the instant at which the process is killed:
//!
//! | killed | the next process finds | and does |
//! |---|---|---|
//! | before the store, or it was refused | an open Pod | counts it: nothing of it was stored |
//! | after the store, reply lost | UID in `settling`, finalizer | releases it; it is not open, so it is not counted |
//! | between releases | some in `settling` with finalizer | releases these |
//! | after the release, before the clear | UID in `settling`, Pod gone or annotated | clears it |
//! | after the clear | neither; the Pod is gone or annotated | nothing: it is not open |
//!
//! Each row holds on one condition: the Pods are not older than the record's version. A stale Pod would be open again
//! once its UID is cleared. So nothing is stored on a version that this process did not write, before it has read the
//! record and *then* listed the Pods ([`Evidence::Unproven`], AG5). From then on only this process writes it, or its
//! write is refused by the version, and the record is unproven again.
//!
//! A UID is dropped only when its own release is known, so no Pod is in `settling` twice (A1, A3). A process that was
//! replaced and does not know it cannot store (the version differs), and what it releases is in a stored `settling` (A2).

mod action;
mod condition;
mod context;
mod decide;
mod pace;
mod record;
mod standing;

pub use self::{
    action::{Action, Plan},
    context::{Context, JobRead},
    decide::plan,
    record::{Evidence, Record},
    standing::unwatched,
};

#[cfg(test)]
mod tests;
