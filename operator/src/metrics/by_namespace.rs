//! Metrics about jobs that may have a label for the namespace of the job.
//!
//! Nothing bounds the number of namespaces of a cluster. So nothing has the label unless the configuration says how many
//! namespaces have a name at most; all others are shown as one.

use std::sync::Arc;

use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, Result,
    core::{MetricVec, MetricVecBuilder},
};
use trainjob_process::metrics::{JOB_NAMESPACE, Sampled, Values};

/// What stands for the namespaces beyond the limit.
const OTHER: &str = "_other";
/// What stands for all namespaces where they are not told apart. It is the name of none.
const ALL: &str = "";

/// The namespaces of jobs that metrics tell apart.
#[derive(Debug)]
pub(super) struct JobNamespaces(Option<Values>);

impl JobNamespaces {
    /// So many have a name at most; 0: they are not told apart.
    pub(super) fn new(most: usize) -> Self {
        Self((most > 0).then(|| Values::new(most, OTHER)))
    }

    /// As what a namespace is shown.
    pub(super) fn shown(&self, namespace: &str) -> Arc<str> {
        self.0.as_ref().map_or_else(|| ALL.into(), |values| values.shown(namespace))
    }

    /// As what all are shown that have no name. It has series from the start.
    pub(super) fn rest(&self) -> Arc<str> {
        if self.0.is_some() { OTHER.into() } else { ALL.into() }
    }

    fn labels<'a>(&self, own: &[&'a str]) -> Vec<&'a str> {
        own.iter().copied().chain(self.0.is_some().then_some(JOB_NAMESPACE)).collect()
    }
}

/// What a metric is called and says, what its own labels are, and which values these have together.
#[derive(Debug, Clone, Copy)]
pub(super) struct About<'a, const LABELS: usize, const SERIES: usize> {
    pub(super) name: &'a str,
    pub(super) help: &'a str,
    pub(super) labels: [&'a str; LABELS],
    pub(super) series: [[&'static str; LABELS]; SERIES],
}

impl<'a> About<'a, 0, 1> {
    /// A metric without labels of its own.
    pub(super) const fn plain(name: &'a str, help: &'a str) -> Self {
        Self { name, help, labels: [], series: [[]] }
    }
}

impl<'a, const SERIES: usize> About<'a, 1, SERIES> {
    /// A metric with one label.
    pub(super) fn by(
        label: &'a str,
        values: [&'static str; SERIES],
        name: &'a str,
        help: &'a str,
    ) -> Self {
        Self { name, help, labels: [label], series: values.map(|value| [value]) }
    }
}

/// What [`Family`] asks of a metric that has labels.
pub(super) trait Labelled {
    /// What there is for each combination of values.
    type Metric;

    /// That of these values.
    fn with(&self, values: &[&str]) -> Self::Metric;

    /// Forgets all.
    fn forget(&self);
}

impl<T: MetricVecBuilder> Labelled for MetricVec<T> {
    type Metric = T::M;

    fn with(&self, values: &[&str]) -> T::M {
        self.with_label_values(values)
    }

    fn forget(&self) {
        self.reset();
    }
}

/// A metric with a series for each of these values, and for each namespace that is told apart.
#[derive(Debug)]
pub(super) struct Family<V, const LABELS: usize, const SERIES: usize> {
    metric: V,
    series: [[&'static str; LABELS]; SERIES],
}

/// A counter by namespace.
pub(super) type Counters<const LABELS: usize, const SERIES: usize> =
    Family<IntCounterVec, LABELS, SERIES>;
/// A gauge by namespace.
pub(super) type Gauges<const LABELS: usize, const SERIES: usize> =
    Family<IntGaugeVec, LABELS, SERIES>;
/// A histogram by namespace.
pub(super) type Histograms<const LABELS: usize, const SERIES: usize> =
    Family<HistogramVec, LABELS, SERIES>;

impl<V: Labelled, const LABELS: usize, const SERIES: usize> Family<V, LABELS, SERIES> {
    /// The metric of these values, in a namespace as it is shown.
    pub(super) fn of(&self, values: [&str; LABELS], shown: &str) -> V::Metric {
        let namespace = Some(shown).filter(|shown| *shown != ALL);
        let values: Vec<&str> = values.into_iter().chain(namespace).collect();
        self.metric.with(&values)
    }

    /// Begins all series of a namespace, as it is shown.
    ///
    /// Prometheus knows what a counter has gained only if it has seen it before.
    pub(super) fn begin(&self, shown: &str) {
        for values in self.series {
            self.of(values, shown);
        }
    }

    /// Forgets all series.
    pub(super) fn reset(&self) {
        self.metric.forget();
    }

    fn begun(
        metric: V,
        series: [[&'static str; LABELS]; SERIES],
        namespaces: &JobNamespaces,
    ) -> Self {
        let family = Self { metric, series };
        family.begin(&namespaces.rest());
        family
    }
}

/// Where metrics by namespace are made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maker<'a> {
    pub(super) registry: &'a Registry,
    pub(super) namespaces: &'a JobNamespaces,
}

impl Maker<'_> {
    /// A counter.
    ///
    /// # Errors
    ///
    /// There is a metric of this name.
    pub(super) fn counters<const LABELS: usize, const SERIES: usize>(
        self,
        about: About<'_, LABELS, SERIES>,
    ) -> Result<Counters<LABELS, SERIES>> {
        let opts = Opts::new(about.name, about.help);
        let metric = IntCounterVec::new(opts, &self.namespaces.labels(&about.labels))?;
        self.registry.register(Box::new(metric.clone()))?;
        Ok(Family::begun(metric, about.series, self.namespaces))
    }

    /// A histogram with these upper bounds.
    ///
    /// # Errors
    ///
    /// There is a metric of this name.
    pub(super) fn histograms<const LABELS: usize, const SERIES: usize>(
        self,
        about: About<'_, LABELS, SERIES>,
        bounds: &[f64],
    ) -> Result<Histograms<LABELS, SERIES>> {
        let opts = HistogramOpts::new(about.name, about.help).buckets(bounds.to_vec());
        let metric = HistogramVec::new(opts, &self.namespaces.labels(&about.labels))?;
        self.registry.register(Box::new(metric.clone()))?;
        Ok(Family::begun(metric, about.series, self.namespaces))
    }
}

/// A gauge that is looked up.
///
/// # Errors
///
/// The name or a label is none.
pub(super) fn gauges<const LABELS: usize, const SERIES: usize>(
    metrics: &mut Sampled,
    namespaces: &JobNamespaces,
    about: About<'_, LABELS, SERIES>,
) -> Result<Gauges<LABELS, SERIES>> {
    let metric =
        IntGaugeVec::new(Opts::new(about.name, about.help), &namespaces.labels(&about.labels))?;
    metrics.add(metric.clone());
    Ok(Family::begun(metric, about.series, namespaces))
}

/// Shows a number, or the largest that a gauge can show.
pub(super) fn set(gauge: &IntGauge, number: impl TryInto<i64>) {
    gauge.set(number.try_into().unwrap_or(i64::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a page with one counter, after jobs of these namespaces were counted.
    fn counted(most: usize, namespaces: &[&str]) -> Vec<String> {
        let (registry, known) = (Registry::new(), JobNamespaces::new(most));
        let about = About::by("outcome", ["good", "bad"], "a_total", "b");
        let make = Maker { registry: &registry, namespaces: &known };
        let counters = make.counters(about).unwrap();
        for namespace in namespaces {
            counters.of(["good"], &known.shown(namespace)).inc();
        }
        let page = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        page.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn without_a_limit_of_namespaces_there_is_no_label() {
        let expected = [r#"a_total{outcome="bad"} 0"#, r#"a_total{outcome="good"} 2"#];
        assert_eq!(counted(0, &["x", "y"]), expected);
    }

    #[test]
    fn namespaces_beyond_the_limit_are_counted_as_one() {
        let mut lines = counted(2, &["x", "y", "z", "x", "w"]);
        lines.sort();
        let expected = [
            r#"a_total{job_namespace="_other",outcome="bad"} 0"#,
            r#"a_total{job_namespace="_other",outcome="good"} 2"#,
            r#"a_total{job_namespace="x",outcome="good"} 2"#,
            r#"a_total{job_namespace="y",outcome="good"} 1"#,
        ];
        assert_eq!(lines, expected);
    }
}
