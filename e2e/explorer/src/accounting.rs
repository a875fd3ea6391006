//! The same for the accounting program: the keeper of a record under random schedules, on a model of the API server.
//!
//! A [process](process) drives the product's own [`Keeper`](trainjob_accounting_core::keeper::Keeper). In the [world](world)
//! are the [API server](server), a [network] that takes its time, kubelets, the [TrainJob](lives) and [people]: two processes may
//! both believe that they lead, requests are lost, late, answered in vain or refused for a while, watches are behind or begin
//! anew, processes crash, Pods are deleted by force, lose their finalizer or their labels, the TrainJob is suspended, resumed,
//! finished and deleted, its JobSet is made anew, the record is deleted, its name is taken, the API server is silent. The
//! [rules] judge every stored version, every released Pod and, when everything has [come to rest](rest), the end, by A1 to A9,
//! A11 and A12 of `docs/accounting.md`.

mod defect;
mod history;
mod lives;
mod network;
mod options;
mod people;
mod plot;
mod pods;
mod process;
mod report;
mod request;
mod rest;
mod rule;
mod rules;
mod schedule;
mod server;
mod sums;
mod undisturbed;
mod world;

pub use self::{
    defect::Defect,
    options::Options,
    report::Report,
    rule::Rule,
    schedule::{explore, run},
};
