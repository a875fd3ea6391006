//! End-to-end tests: a real control plane in a box, and what runs in it.
//!
//! A test starts a [`cluster::Cluster`], or shares one through a `static`, takes a namespace of its
//! own, and waits with [`until::until`] for what must happen:
//!
//! ```no_run
//! # async fn test() -> anyhow::Result<()> {
//! use e2e::cluster::{Cluster, Options};
//! use tokio::sync::OnceCell;
//!
//! static SHARED: OnceCell<Cluster> = OnceCell::const_new();
//! let cluster = SHARED.get_or_try_init(|| Cluster::start(Options::default())).await?;
//! let namespace = cluster.namespace("test").await?;
//! cluster.apply_yaml(&namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}").await?;
//! # Ok(())
//! # }
//! ```
//!
//! What fake Pods do is said by annotations: see the files in `stages/`.

#![allow(
    clippy::missing_errors_doc,
    reason = "an error fails the test and says itself what is wrong"
)]

pub mod acceptance;
pub mod bench;
pub mod demo;
pub mod faults;
mod testenv;

// Nearly every line of a test begins here, so it names these without their folder.
pub use faults::proxy;
pub use testenv::{
    accounting, answer, apply, authority, binaries, chart, cluster, component, coscheduling,
    credentials, discovered, fixtures, guard, kueue, metrics_page, node, operator, ports, process,
    product, rbac, recorder, release, retention, shifted_clock, stale_apiserver, stopped, until,
    volcano, webhook, workspace, yaml,
};
