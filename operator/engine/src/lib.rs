//! What a controller is made of, apart from what it decides.
//!
//! The way of data through a [controller]: a [watch](mod@watch) that is tried again for ever fills a store that keeps
//! the [newest version](versions) of each object; what changed waits as a key in the [queue], with a priority, until a
//! worker takes it with one of the [places](places::Places) for requests, which are [shared](shares) fairly; the worker
//! sends requests, each [in its time](answer), within the [configured rate](limit) and only
//! while this process [leads](leader); what fails is [classified](error) once and tried again; users are told by
//! [events]. How a program starts and stops is the same for all of one controller ([running]).
//!
//! Nothing here knows the rules of TrainJobs. What the engine has in common with them are a few types of
//! `trainjob-core`: the key of an object, its position in the queue, the class of a failure, and the rules of leader
//! election, which are pure as all rules are.
//!
//! Nothing here has to survive a restart: a controller derives everything anew from lists.

pub mod answer;
pub mod clock;
pub mod controller;
pub mod error;
pub mod events;
pub mod heartbeat;
mod items;
mod jitter;
pub mod leader;
pub mod lease;
pub mod limit;
pub mod list;
pub mod places;
pub mod queue;
mod readable;
pub mod records;
pub mod running;
pub mod shares;
pub mod stripped;
mod unread;
pub mod versions;
pub mod watch;

pub use jitter::jitter;
pub use readable::{Readable, Unreadable};
pub use unread::Unread;
