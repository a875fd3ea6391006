//! The judge judged: good lives break no rule, and each seeded defect, a doctored good life, breaks
//! exactly the rule that it is to break.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what tests share is not marked as a test, and fails them all the same"
)]

mod accounting;
mod good;
mod live;
mod outcome;
mod owners;
mod rbac;
mod retention;
mod safe;
mod scenario;
