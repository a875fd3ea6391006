//! What is to be done about finished objects, as tables and as properties.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod acts;
mod due_objects;
mod governing;
mod keep_last;
mod notices;
mod owners;
mod pods;
mod precedence;
mod properties;
mod scene;
