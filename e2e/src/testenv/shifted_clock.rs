//! A program whose clock is wrong, as that of a node whose time synchronisation has failed.
//!
//! Programs ask the C library for the time of day; a small library that is preloaded takes its place. What is under test
//! is the shipped binary all the same.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// What is preloaded.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/testenv/shifted_clock.c");

/// The time of day of the programs that have its [environment](ShiftedClock::environment).
#[derive(Debug)]
pub struct ShiftedClock {
    library: PathBuf,
    file: PathBuf,
}

impl ShiftedClock {
    /// A clock that is right at first, kept in `folder`. It is compiled with `cc`.
    pub fn new(folder: &Path) -> Result<Self> {
        let (library, file) = (folder.join("shifted-clock.so"), folder.join("shifted-clock"));
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, Path::new(SOURCE)])
            .output()
            .context("a wrong clock needs a C compiler: there is no `cc`")?;
        let said = String::from_utf8_lossy(&compiled.stderr);
        ensure!(compiled.status.success(), "cc does not compile {SOURCE}: {said}");
        fs::write(&file, 0_i64.to_ne_bytes())?;
        Ok(Self { library, file })
    }

    /// Sets it so many seconds ahead of the right time, at once for all programs that run.
    pub fn set(&self, seconds: i64) -> Result<()> {
        let file = File::options().write(true).open(&self.file)?;
        Ok(file.write_all_at(&seconds.to_ne_bytes(), 0)?)
    }

    /// The environment of a program that is to have this clock.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let files = [("LD_PRELOAD", &self.library), ("CLOCK_SHIFT_FILE", &self.file)];
        files.map(|(name, file)| (name.to_owned(), file.display().to_string())).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(output: &[u8]) -> i64 {
        String::from_utf8_lossy(output).trim().parse().unwrap()
    }

    #[test]
    fn program_with_a_shifted_clock_is_told_another_time_of_day() {
        let folder = tempfile::tempdir().unwrap();
        let clock = ShiftedClock::new(folder.path()).unwrap();
        for shift in [0, -3_600, 3_600] {
            clock.set(shift).unwrap();
            let date = |environment: Vec<(String, String)>| {
                let told = Command::new("date").arg("+%s").envs(environment).output().unwrap();
                seconds(&told.stdout)
            };
            let (before, told, after) = (date(vec![]), date(clock.environment()), date(vec![]));
            assert!((before + shift..=after + shift).contains(&told), "{before} {told} {after}");
        }
    }
}
