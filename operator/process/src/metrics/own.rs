//! The process itself: processor time, memory, files and threads, under the names that every client
//! library of Prometheus has for them.
//!
//! The library's own collector counts processor time in whole seconds; an operator at rest needs one in
//! many minutes.

use std::fs;

use prometheus::{Counter, Opts, Registry, Result};
use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
};

use super::sampled::Sampled;

/// Registers the metrics of this process.
///
/// # Errors
///
/// There is a metric of one of their names.
pub fn own(registry: &Registry) -> Result<()> {
    let mut metrics = Sampled::default();
    let cpu = Counter::with_opts(Opts::new(
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
    ))?;
    metrics.add(cpu.clone());
    let mut gauge = |name, help| metrics.gauge(name, help);
    let resident = gauge("process_resident_memory_bytes", "Resident memory size in bytes.")?;
    let virtual_size = gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.")?;
    let open = gauge("process_open_fds", "Number of open file descriptors.")?;
    let limit = gauge("process_max_fds", "Maximum number of open file descriptors.")?;
    let start = gauge(
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
    )?;
    let threads = gauge("process_threads", "Number of OS threads in the process.")?;
    let booted = booted().unwrap_or_default();
    metrics.register(registry, move || {
        let Some(seen) = Seen::now() else { return };
        cpu.inc_by((seen.cpu_seconds - cpu.get()).max(0.0));
        resident.set(seen.resident_bytes);
        virtual_size.set(seen.virtual_bytes);
        threads.set(seen.threads);
        start.set(booted + seen.started_after_boot);
        // One of them is that of the folder which is being read.
        let files =
            fs::read_dir("/proc/self/fd").map_or(0, |files| files.count().saturating_sub(1));
        open.set(i64::try_from(files).unwrap_or(i64::MAX));
        // No limit is a very high one.
        let most = getrlimit(Resource::Nofile).current;
        limit.set(most.map_or(i64::MAX, |most| i64::try_from(most).unwrap_or(i64::MAX)));
    })
}

/// What `/proc/self/stat` says.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    cpu_seconds: f64,
    threads: i64,
    started_after_boot: i64,
    virtual_bytes: i64,
    resident_bytes: i64,
}

impl Seen {
    fn now() -> Option<Self> {
        Self::read(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// The fields are numbered in proc(5); the name of the program, the second of them, may have spaces.
    fn read(stat: &str) -> Option<Self> {
        let (_, after_name) = stat.rsplit_once(") ")?;
        let fields: Vec<_> = after_name.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u32>().ok();
        let whole = |number: usize| fields.get(number - 3)?.parse::<i64>().ok();
        let ticks = u32::try_from(clock_ticks_per_second()).ok()?.max(1);
        let page = i64::try_from(page_size()).ok()?;
        Some(Self {
            cpu_seconds: (f64::from(field(14)?) + f64::from(field(15)?)) / f64::from(ticks),
            threads: whole(20)?,
            started_after_boot: whole(22)? / i64::from(ticks),
            virtual_bytes: whole(23)?,
            resident_bytes: whole(24)?.saturating_mul(page),
        })
    }
}

/// When the system was started, in seconds since 1970.
fn booted() -> Option<i64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_fields_are_found_after_a_name_with_spaces_and_brackets() {
        let stat = "7 (a) b) S 1 7 7 0 -1 0 10 0 0 0 250 150 0 0 20 0 3 0 900 4096000 25 rest";
        let (ticks, page) = (clock_ticks_per_second(), page_size());
        let expected = Seen {
            cpu_seconds: 400.0 / f64::from(u32::try_from(ticks).unwrap()),
            threads: 3,
            started_after_boot: 900 / i64::try_from(ticks).unwrap(),
            virtual_bytes: 4_096_000,
            resident_bytes: 25 * i64::try_from(page).unwrap(),
        };
        assert_eq!(Seen::read(stat), Some(expected));
        assert_eq!(Seen::read("nonsense"), None);
    }

    #[test]
    fn this_very_process_has_files_memory_and_a_beginning() {
        let registry = Registry::new();
        own(&registry).unwrap();
        let families = registry.gather();
        let value = |name: &str| {
            let family = families.iter().find(|family| family.name() == name).unwrap();
            family.get_metric()[0].get_gauge().get_value()
        };
        assert_eq!(families.len(), 7);
        assert!(value("process_resident_memory_bytes") > 100_000.0);
        assert!(value("process_open_fds") >= 1.0);
        assert!(value("process_max_fds") >= value("process_open_fds"));
        assert!(value("process_threads") >= 1.0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        assert!((now - 86_400.0..=now + 2.0).contains(&value("process_start_time_seconds")));
    }
}
