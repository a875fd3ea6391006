//! Policies as the API server stores them: what they are read into, and what is not understood.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod changed;
mod digest;
mod everything;
mod examples;
mod fields;
mod property;
mod refused;
mod scene;
mod widest;
