//! What only the tools that people use can show: the chart, by the real Helm, and the way from Kubeflow
//! Trainer to it and back; the retention engine; the accounting program; the release, by Prometheus, the Python SDK and kubectl; and the
//! real Kueue in front of it.

pub mod accounting;
pub mod artifacts;
pub mod chart;
mod guide;
pub mod handover;
pub mod image;
pub mod kubectl;
pub mod kueue;
pub mod migration;
pub mod monitoring;
pub mod node;
pub mod retention;
mod rights;
mod runtimes_jobs;
pub mod sdk;
mod switches;
pub mod versions;
