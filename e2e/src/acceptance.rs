//! What only the tools that people use can show: the chart, by the real Helm, and the way from Kubeflow
//! Trainer to it and back.

pub mod chart;
mod guide;
pub mod migration;
mod programs;
mod switches;
mod tools;
