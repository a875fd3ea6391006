//! Metrics that are looked up when somebody asks for them.

use std::sync::{Mutex, PoisonError};

use prometheus::{
    IntGauge, IntGaugeVec, Opts, Registry, Result,
    core::{Collector, Desc},
    proto::MetricFamily,
};

/// Metrics that are to be looked up together.
#[derive(Default)]
pub struct Sampled(Vec<Box<dyn Collector>>);

impl Sampled {
    /// Adds a gauge.
    ///
    /// # Errors
    ///
    /// The name is none.
    pub fn gauge(&mut self, name: &str, help: &str) -> Result<IntGauge> {
        let gauge = IntGauge::new(name, help)?;
        self.add(gauge.clone());
        Ok(gauge)
    }

    /// Adds a gauge for each of these values of a label.
    ///
    /// # Errors
    ///
    /// The name or the label is none.
    pub fn gauges<const N: usize>(
        &mut self,
        (name, help): (&str, &str),
        label: &str,
        values: [&str; N],
    ) -> Result<[IntGauge; N]> {
        let gauges = IntGaugeVec::new(Opts::new(name, help), &[label])?;
        let each = values.map(|value| gauges.with_label_values(&[value]));
        self.add(gauges);
        Ok(each)
    }

    /// Adds any metric.
    pub fn add(&mut self, metric: impl Collector + 'static) {
        self.0.push(Box::new(metric));
    }

    /// Shows them. Each time before they are read, `look` sets them.
    ///
    /// # Errors
    ///
    /// There is a metric of one of these names.
    pub fn register(self, registry: &Registry, look: impl Fn() + Send + 'static) -> Result<()> {
        registry.register(Box::new(Looked { metrics: self.0, look: Mutex::new(look) }))
    }
}

struct Looked<F> {
    metrics: Vec<Box<dyn Collector>>,
    /// One at a time: two readers must not mix what they see.
    look: Mutex<F>,
}

impl<F: Fn() + Send> Collector for Looked<F> {
    fn desc(&self) -> Vec<&Desc> {
        self.metrics.iter().flat_map(|metric| metric.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let look = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        look();
        self.metrics.iter().flat_map(|metric| metric.collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    };

    use super::*;

    #[test]
    fn values_are_those_of_the_moment_in_which_they_are_asked_for() {
        let (registry, mut metrics) = (Registry::new(), Sampled::default());
        let gauge = metrics.gauge("a", "b").unwrap();
        let truth = Arc::new(AtomicI64::new(1));
        let look = {
            let truth = Arc::clone(&truth);
            move || gauge.set(truth.load(Ordering::Relaxed))
        };
        metrics.register(&registry, look).unwrap();
        for now in [1, 7] {
            truth.store(now, Ordering::Relaxed);
            let families = registry.gather();
            let value = families[0].get_metric()[0].get_gauge().get_value();
            assert!((value - f64::from(i32::try_from(now).unwrap())).abs() < f64::EPSILON);
        }
    }
}
