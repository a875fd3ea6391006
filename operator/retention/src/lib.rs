//! The retention engine: executes the policies of `docs/retention.md`.
//!
//! The decisions are those of `trainjob-retention-core`. Here is what carries them out.

pub mod config;
pub mod discovery;
pub mod key;
pub mod room;
pub mod stored;
pub mod watch;
