//! Dead paths: connections whose other end has gone without a word.
//!
//! A machine that loses power, a load balancer that is replaced and a firewall that forgets a connection send nothing.
//! A request on such a connection gets no answer, and the pool would hand out the next one that is just as dead. So the
//! system probes idle connections, and closes one whose other end acknowledges nothing. A connection is closed within
//! [`SILENT`] and a probe, before a deadline that met it is tried again (`docs/semantics.md`, §6).
//!
//! An API server that hangs acknowledges all the same: time limits of requests are for that.

use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;

/// How long a connection is idle before it is probed.
const IDLE: Duration = Duration::from_secs(2);

/// The time between two probes.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Probes without an answer after which a connection is closed, where [`SILENT`] does not decide.
const PROBES: u32 = 2;

/// How long the other end may leave data or probes without an acknowledgement. No longer than the wait for an answer
/// that delays a deadline: the second try must not meet a dead connection again.
const SILENT: Duration = Duration::from_secs(4);

/// Has the system close connections of this connector whose path is dead.
pub(super) fn close_dead_paths(connector: &mut HttpConnector) {
    connector.set_keepalive(Some(IDLE));
    connector.set_keepalive_interval(Some(PROBE_EVERY));
    connector.set_keepalive_retries(Some(PROBES));
    connector.set_tcp_user_timeout(Some(SILENT));
}

#[cfg(test)]
mod tests;
