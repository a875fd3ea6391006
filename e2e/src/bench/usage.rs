//! What a process has used, as the kernel counts it (`proc(5)`).

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// What a process has used so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    /// Processor time of all its threads, to a hundredth of a second.
    pub(super) cpu: Duration,
    /// The most memory it ever had, in bytes (`VmHWM`): pages shared with others count in full.
    pub(super) peak: u64,
    /// The memory it has now, in bytes (`Pss`): a page shared by two processes counts half.
    pub(super) now: u64,
}

/// The kernel counts in these for user space, on every architecture.
const TICKS_PER_SECOND: u64 = 100;

/// What the running process `id` has used.
pub(super) fn of(id: u32) -> Result<Usage> {
    let file = |name: &str| {
        let path = format!("/proc/{id}/{name}");
        fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
    };
    Ok(Usage {
        cpu: cpu(&file("stat")?).context("stat without times")?,
        peak: kilobytes(&file("status")?, "VmHWM:").context("status without VmHWM")?,
        now: kilobytes(&file("smaps_rollup")?, "Pss:").context("smaps_rollup without Pss")?,
    })
}

/// The processor time of each thread of the running process `id`, by its number. Exact, where [`Usage::cpu`] counts in hundredths of
/// a second; but threads that have ended are not in it.
pub(super) fn of_threads(id: u32) -> Result<HashMap<OsString, Duration>> {
    let mut threads = HashMap::new();
    for entry in fs::read_dir(format!("/proc/{id}/task"))? {
        let entry = entry?;
        // It may end at any time.
        let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) else { continue };
        let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
        let ran = nanos.map(Duration::from_nanos).context("schedstat without a time")?;
        threads.insert(entry.file_name(), ran);
    }
    Ok(threads)
}

/// What threads have taken between two looks.
pub(super) fn grown(
    before: &HashMap<OsString, Duration>,
    after: &HashMap<OsString, Duration>,
) -> Duration {
    let grown = |(thread, ran): (&OsString, &Duration)| {
        ran.saturating_sub(before.get(thread).copied().unwrap_or_default())
    };
    after.iter().map(grown).sum()
}

/// Bytes as megabytes.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a fraction of a megabyte is enough")]
pub(super) const fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn cpu(stat: &str) -> Option<Duration> {
    // The second field is the name of the program, in parentheses and with whatever is in it.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 1_000 / TICKS_PER_SECOND))
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(number * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_a_name_with_parentheses_and_spaces() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 100 0 0 0 150 25 3 4 20 0 9 0 100 1 2";
        assert_eq!(cpu(stat), Some(Duration::from_millis(1_750)));
        assert_eq!(cpu("7 (a) S"), None);
    }

    #[test]
    fn sizes_are_found_by_their_whole_name() {
        let text = "VmPeak:\t  9 kB\nVmHWM:\t  2048 kB\n";
        assert_eq!(kilobytes(text, "VmHWM:"), Some(2_097_152));
        assert_eq!(kilobytes(text, "Pss:"), None);
    }

    #[test]
    fn what_a_thread_took_counts_from_the_first_look_at_it() {
        let threads = |of: &[(&str, u64)]| -> HashMap<OsString, Duration> {
            of.iter().map(|(name, ran)| ((*name).into(), Duration::from_nanos(*ran))).collect()
        };
        let (before, after) = (threads(&[("1", 10), ("2", 500)]), threads(&[("1", 13), ("3", 4)]));
        assert_eq!(grown(&before, &after), Duration::from_nanos(7));
        assert!(grown(&HashMap::new(), &of_threads(std::process::id()).unwrap()) > Duration::ZERO);
    }

    #[test]
    fn this_process_has_used_something() {
        let usage = of(std::process::id()).unwrap();
        assert!(usage.peak > 0 && usage.now > 0, "{usage:?}");
    }
}
