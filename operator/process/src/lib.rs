//! What the operator and the admission server have in common as processes.
//!
//! Both read the same [configuration](config) and the same flags, [log](logging) alike, serve
//! [health](mod@health) and [metrics] as [pages], reach the API server by two [clients](client), whose answers tell [its
//! time](server_time), and end on the first signal ([`start`]).
//!
//! Of TrainJobs it knows what the configuration says of them (clocks, TTLs, rules of admission); no decision is made
//! here.

pub mod client;
pub mod config;
pub mod connections;
mod describe;
mod exposition;
pub mod health;
pub mod logging;
pub mod metrics;
pub mod metrics_auth;
pub mod pages;
mod program;
pub mod server_time;
mod servers;
mod start;
pub mod tls;

pub use describe::describe;
pub use program::{Entries, Manual, OwnFlag, Program};
pub use servers::{Servers, Shown};
pub use start::start;
