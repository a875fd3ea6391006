//! Metrics that are registered where they are made, at zero.
//!
//! A vector of them is asked for with all values of its label, and gives what is counted under each: so
//! every series is there from the start, and nothing is looked up when something is counted.

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry, Result,
};

/// A counter.
///
/// # Errors
///
/// There is a metric of this name.
pub fn counter(registry: &Registry, name: &str, help: &str) -> Result<IntCounter> {
    let counter = IntCounter::new(name, help)?;
    registry.register(Box::new(counter.clone()))?;
    Ok(counter)
}

/// Counters by one label, for each of these values.
///
/// # Errors
///
/// There is a metric of this name.
pub fn counters<const N: usize>(
    registry: &Registry,
    (name, help): (&str, &str),
    label: &str,
    values: [&str; N],
) -> Result<[IntCounter; N]> {
    let counters = IntCounterVec::new(Opts::new(name, help), &[label])?;
    registry.register(Box::new(counters.clone()))?;
    Ok(values.map(|value| counters.with_label_values(&[value])))
}

/// A histogram with these upper bounds.
///
/// # Errors
///
/// There is a metric of this name.
pub fn histogram(
    registry: &Registry,
    (name, help): (&str, &str),
    bounds: &[f64],
) -> Result<Histogram> {
    let histogram = Histogram::with_opts(HistogramOpts::new(name, help).buckets(bounds.to_vec()))?;
    registry.register(Box::new(histogram.clone()))?;
    Ok(histogram)
}

/// Histograms with these upper bounds by one label, for each of these values.
///
/// # Errors
///
/// There is a metric of this name.
pub fn histograms<const N: usize>(
    registry: &Registry,
    (name, help): (&str, &str),
    bounds: &[f64],
    label: &str,
    values: [&str; N],
) -> Result<[Histogram; N]> {
    let opts = HistogramOpts::new(name, help).buckets(bounds.to_vec());
    let histograms = HistogramVec::new(opts, &[label])?;
    registry.register(Box::new(histograms.clone()))?;
    Ok(values.map(|value| histograms.with_label_values(&[value])))
}
