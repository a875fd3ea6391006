//! What only the tools that people use can show: the chart, by the real Helm.

pub mod chart;
mod switches;
mod tools;
