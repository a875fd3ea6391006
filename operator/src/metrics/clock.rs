//! What is known of the API server's time, looked up when somebody reads the metrics.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use prometheus::{Gauge, IntCounter, IntGauge, Registry, Result};
use trainjob_core::server_time::{Interval, Reading};
use trainjob_process::{metrics::Sampled, server_time::ServerTime};

/// Shows them.
///
/// # Errors
///
/// There is a metric of one of their names.
pub(super) fn show(registry: &Registry, server_time: Arc<ServerTime>) -> Result<()> {
    let mut metrics = Sampled::default();
    let gauges = ClockGauges::new(&mut metrics)?;
    metrics.register(registry, move || {
        gauges.set(server_time.reading(), SystemTime::now());
        // The counter is this one's alone, and only ever grows.
        gauges.jumps.inc_by(server_time.jumps().saturating_sub(gauges.jumps.get()));
    })
}

struct ClockGauges {
    offset: Gauge,
    uncertainty: Gauge,
    paused: IntGauge,
    jumps: IntCounter,
}

impl ClockGauges {
    fn new(metrics: &mut Sampled) -> Result<Self> {
        let offset = Gauge::new(
            "trainjob_operator_clock_offset_seconds",
            "Clock of the API server minus that of the operator, most likely; NaN before the first answer.",
        )?;
        let uncertainty = Gauge::new(
            "trainjob_operator_clock_uncertainty_seconds",
            "How far the estimate of the API server's clock may be off at most; NaN before the first answer.",
        )?;
        let jumps = IntCounter::new(
            "trainjob_operator_clock_jumps_total",
            "Times the clock of the API server was seen to jump by more than a minute.",
        )?;
        metrics.add(offset.clone());
        metrics.add(uncertainty.clone());
        metrics.add(jumps.clone());
        let paused = metrics.gauge(
            "trainjob_operator_time_paused",
            "1 while no deadline and no TTL is acted on, because the API server's time is not known or its \
             clock has jumped; else 0.",
        )?;
        Ok(Self { offset, uncertainty, paused, jumps })
    }

    /// Sets the gauges to what is known when this machine's clock shows `local`.
    fn set(&self, reading: Option<Reading>, local: SystemTime) {
        let paused = reading.is_none_or(|reading| reading.now().reached().is_none());
        self.paused.set(i64::from(paused));
        let clock = reading.map(|reading| reading.clock);
        self.offset.set(clock.map_or(f64::NAN, |clock| offset(clock, local)));
        self.uncertainty.set(clock.map_or(f64::NAN, |clock| seconds(clock.width())));
    }
}

/// How far a clock is ahead of one that shows `local`.
fn offset(clock: Interval, local: SystemTime) -> f64 {
    let local = local.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let local = i64::try_from(local.as_micros()).unwrap_or(i64::MAX);
    seconds(clock.middle().saturating_sub(local))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a microsecond counts only where the number is small"
)]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(reading: Option<Reading>, local: Duration) -> Vec<String> {
        let (registry, mut metrics) = (Registry::new(), Sampled::default());
        let gauges = ClockGauges::new(&mut metrics).unwrap();
        gauges.set(reading, SystemTime::UNIX_EPOCH + local);
        metrics.register(&registry, || ()).unwrap();
        let page = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        page.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn offset_and_uncertainty_are_those_of_the_estimate() {
        let clock = Interval { low: 99_950_000, high: 100_050_000 };
        for (paused, expected) in [(false, "0"), (true, "1")] {
            let page = page(Some(Reading { clock, paused }), Duration::from_secs(3_700));
            assert_eq!(
                page,
                [
                    "trainjob_operator_clock_jumps_total 0",
                    "trainjob_operator_clock_offset_seconds -3600",
                    "trainjob_operator_clock_uncertainty_seconds 0.1",
                    &format!("trainjob_operator_time_paused {expected}"),
                ]
            );
        }
    }

    #[test]
    fn before_the_first_answer_nothing_is_known() {
        let page = page(None, Duration::from_secs(3_700));
        for line in [
            "trainjob_operator_clock_offset_seconds NaN",
            "trainjob_operator_clock_uncertainty_seconds NaN",
            "trainjob_operator_time_paused 1",
        ] {
            assert!(page.iter().any(|it| it == line), "no {line} in {page:#?}");
        }
    }
}
