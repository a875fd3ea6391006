//! The decisions of the retention engine: which finished objects a policy removes, and when.
//!
//! Everything here is pure: facts, policies and a time go in, decisions come out. The rules are those of
//! `docs/retention.md`.

pub mod breaker;
pub mod facts;
pub mod finished;
mod instant;
pub mod interner;
pub mod keep_last;
pub mod kind;
pub mod labels;
pub mod maybe_timestamp;
pub mod metadata;
pub mod operator;
pub mod outcome;
pub mod pattern;
pub mod plan;
pub mod pod_label;
pub mod policies;
pub mod policy;
pub mod seconds;
pub mod selection;
pub mod selector;
pub mod stored;
pub mod uid;
pub mod version;
pub mod wish;
