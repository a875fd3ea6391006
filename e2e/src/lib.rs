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

pub mod acceptance;
mod access;
pub mod answer;
pub mod apply;
pub mod authority;
pub mod bench;
pub mod binaries;
mod cache;
pub mod cluster;
pub mod component;
pub mod coscheduling;
pub mod credentials;
pub mod demo;
pub mod discovered;
pub mod faults;
pub mod fixtures;
pub mod guard;
mod jobset;
pub mod kueue;
mod kwok;
pub mod metrics_page;
mod modules;
pub mod node;
mod nodes;
pub mod operator;
pub mod ports;
pub mod process;
pub mod product;
pub mod proxy;
pub mod rbac;
pub mod recorder;
pub mod release;
mod sent;
mod service;
pub mod stopped;
mod tools;
mod trainer;
pub mod until;
pub mod volcano;
pub mod webhook;
pub mod workspace;
pub mod yaml;
