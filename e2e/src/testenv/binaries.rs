//! The programs that a cluster in a box consists of, and those that run beside it.
//!
//! A `go.mod` in `programs/` pins every one of them; they are built once per version, which takes minutes, and
//! kept in the user's cache directory. A program in the directory that `KUBEBUILDER_ASSETS` names is used
//! instead, and where there is no Go, one in `PATH`; neither stands in for an older version that was asked for.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use launcher::{PATIENCE, run_with_heartbeat, say};

use crate::testenv::cache;

mod programs;
mod versions;

pub(crate) use programs::Pins;
pub use programs::Program;
pub use versions::{JobSet, Kubernetes, Versions};

/// Spares compilers what `-s` and `-w` have the linker drop: what is built is the same.
const NO_DEBUG_INFORMATION: &str = "-gcflags=all=-dwarf=false";

/// Where each program is.
#[derive(Debug, Clone)]
pub struct Binaries {
    paths: BTreeMap<Program, PathBuf>,
}

impl Binaries {
    /// Finds `programs` in the newest version, and builds those that are missing, however long that takes.
    pub fn provide(programs: &[Program]) -> Result<Self> {
        Self::provide_versions(programs, Versions::default())
    }

    /// The same in the versions asked for.
    pub fn provide_versions(programs: &[Program], versions: Versions) -> Result<Self> {
        let mut pinned = BTreeMap::<Pins, Vec<Program>>::new();
        for program in programs {
            pinned.entry(program.pins(versions)).or_default().push(*program);
        }
        let mut paths = BTreeMap::new();
        for (pins, programs) in pinned {
            paths.extend(Self::provide_pinned(pins, &programs)?);
        }
        Ok(Self { paths })
    }

    fn provide_pinned(pins: Pins, programs: &[Program]) -> Result<BTreeMap<Program, PathBuf>> {
        let build = Build::new(pins)?;
        let assets = env::var_os("KUBEBUILDER_ASSETS").filter(|_| !pins.old());
        let mut places: Vec<PathBuf> = assets.map(PathBuf::from).into_iter().collect();
        places.push(build.bin());
        let has_go = has_go();
        if !has_go && !pins.old() {
            places.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        }
        if !missing(programs, &places).is_empty() {
            if !has_go {
                bail!(
                    "there is no `go`: install Go 1.26 or later to build {}, or provide its \
                     programs in KUBEBUILDER_ASSETS or PATH",
                    pins.name()
                );
            }
            build.run(programs, &places)?;
        }
        let paths = programs.iter().map(|program| {
            let path = locate(*program, &places);
            Ok((*program, path.with_context(|| format!("the build gave no {}", program.name()))?))
        });
        paths.collect()
    }

    /// The file of `program`.
    #[must_use]
    pub fn path(&self, program: Program) -> &Path {
        // What was not asked for can still be run by its name, if it is in PATH.
        self.paths.get(&program).map_or(Path::new(program.name()), PathBuf::as_path)
    }
}

fn missing(programs: &[Program], places: &[PathBuf]) -> Vec<Program> {
    programs.iter().copied().filter(|program| locate(*program, places).is_none()).collect()
}

fn locate(program: Program, places: &[PathBuf]) -> Option<PathBuf> {
    let candidates = places.iter().map(|place| place.join(program.name()));
    candidates.into_iter().find(|candidate| candidate.is_file())
}

/// One build, in a directory of its own: what was built from other versions is another's.
struct Build {
    pins: Pins,
    flags: String,
    directory: PathBuf,
}

impl Build {
    fn new(pins: Pins) -> Result<Self> {
        let read = |name: &str| {
            let path = pins.directory().join(name);
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let requirements = read("go.mod")?;
        let flags = match pins {
            Pins::ControlPlane | Pins::OldestKubernetes | Pins::Node => {
                linker_flags(&requirements)?
            }
            Pins::OldestJobSet
            | Pins::Helm
            | Pins::Kueue
            | Pins::Trainer
            | Pins::Coscheduling
            | Pins::Volcano
            | Pins::OldClient => "-s -w".to_owned(),
        };
        let mut hasher = DefaultHasher::new();
        (&requirements, read("go.sum")?, &flags).hash(&mut hasher);
        for source in pins.sources() {
            read(source)?.hash(&mut hasher);
        }
        let directory =
            cache::directory()?.join(format!("{}-{:016x}", pins.name(), hasher.finish()));
        Ok(Self { pins, flags, directory })
    }

    fn bin(&self) -> PathBuf {
        self.directory.join("bin")
    }

    /// Builds what is missing into a folder beside the final one, so that a program appears there
    /// complete or not at all.
    fn run(&self, programs: &[Program], places: &[PathBuf]) -> Result<()> {
        let bin = self.bin();
        fs::create_dir_all(&bin).with_context(|| format!("cannot create {}", bin.display()))?;
        let _lock = lock(&self.directory.join("lock"))?;
        // Somebody else may have built it while we waited for the lock.
        if missing(programs, places).is_empty() {
            return Ok(());
        }
        // The others will be wanted, too, by then beside tests that have no time to lose.
        let missing = missing(self.pins.programs(), places);
        let unfinished = self.directory.join("unfinished");
        // A build that was killed leaves hundreds of megabytes.
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        self.install(&missing, &unfinished)?;
        for program in missing {
            let built = unfinished.join(program.built_name());
            fs::rename(&built, bin.join(program.name()))
                .with_context(|| format!("the build gave no {}", built.display()))?;
        }
        fs::remove_dir(unfinished)?;
        Ok(())
    }

    fn install(&self, programs: &[Program], bin: &Path) -> Result<()> {
        let names: Vec<&str> = programs.iter().map(|program| program.name()).collect();
        say(format_args!(
            "Building {}. This happens once and takes some minutes; the result is kept in {}.",
            names.join(", "),
            self.directory.display()
        ));
        let mut command = go(self.pins);
        command.args(["install", "-v", "-trimpath", "-ldflags", &self.flags, NO_DEBUG_INFORMATION]);
        command.args(programs.iter().map(|program| program.package()));
        command.env("GOBIN", bin).env("CGO_ENABLED", "0");

        let downloads = Cell::new(0_usize);
        let packages = Cell::new(0_usize);
        let mut complaints = Vec::new();
        let count = |line: &str| {
            // With -v, go names each package it compiles, one a line; everything else is about
            // downloads or a complaint.
            if line.starts_with("go: downloading") {
                downloads.update(|count| count + 1);
            } else if line.contains(' ') {
                complaints.push(line.to_owned());
            } else {
                packages.update(|count| count + 1);
            }
            false
        };
        let beat = |elapsed: Duration| {
            format!(
                "    … {} s: {} modules downloaded, {} packages compiled",
                elapsed.as_secs(),
                downloads.get(),
                packages.get()
            )
        };
        let status = run_with_heartbeat(&mut command, count, beat)?;
        if !status.success() {
            bail!("go install failed ({status}):\n{}", complaints.join("\n"));
        }
        Ok(())
    }
}

fn has_go() -> bool {
    Command::new("go").arg("version").output().is_ok_and(|output| output.status.success())
}

pub(crate) fn go(pins: Pins) -> Command {
    let mut command = Command::new("go");
    command.current_dir(pins.directory()).stdin(Stdio::null());
    command
}

/// Without these, a Kubernetes that was not built by its own scripts calls itself v0.0.0.
fn linker_flags(requirements: &str) -> Result<String> {
    let version = requirements
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "))
        .and_then(|rest| rest.split_whitespace().next())
        .context("the go.mod does not require k8s.io/kubernetes")?;
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) =
        numbers.next().zip(numbers.next()).context("a version without major and minor")?;
    let package = "k8s.io/component-base/version";
    Ok(format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} \
         -X {package}.gitMinor={minor} -X {package}.gitTreeState=clean"
    ))
}

/// Takes the lock, saying so while another process holds it.
fn lock(path: &Path) -> Result<File> {
    let file = File::create(path)?;
    let waiting = Instant::now();
    let (sender, done) = channel();
    thread::spawn(move || {
        let outcome = file.lock().map(|()| file);
        // Nobody listens if the waiting process gave up, which it does not.
        let _ = sender.send(outcome);
    });
    loop {
        match done.recv_timeout(PATIENCE) {
            Ok(outcome) => return outcome.context("cannot lock the build"),
            Err(RecvTimeoutError::Timeout) => {
                let elapsed: Duration = waiting.elapsed();
                say(format_args!(
                    "    … waiting for another process that builds the same, {} s",
                    elapsed.as_secs()
                ));
            }
            Err(RecvTimeoutError::Disconnected) => bail!("cannot lock {}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_built_by_what_pins_it() {
        let versions = |kubernetes, jobset| Versions { kubernetes, jobset };
        for versions in [
            versions(Kubernetes::Newest, JobSet::Newest),
            versions(Kubernetes::Oldest, JobSet::Oldest),
        ] {
            for pins in [
                Pins::ControlPlane,
                Pins::Helm,
                Pins::Kueue,
                Pins::Coscheduling,
                Pins::Volcano,
                Pins::Node,
                Pins::OldClient,
            ] {
                for program in pins.programs() {
                    let pins = program.pins(versions);
                    assert!(pins.programs().contains(program), "{program:?} of {pins:?}");
                    let file = pins.directory().join("go.mod");
                    let text = fs::read_to_string(&file).unwrap();
                    let package = program.package();
                    let folder = package.strip_prefix("./");
                    let built = folder.map_or_else(
                        || text.contains(package),
                        |folder| pins.directory().join(folder).is_dir(),
                    );
                    assert!(built, "{} does not build {package}", file.display());
                }
            }
        }
    }

    #[test]
    fn releases_are_those_that_are_pinned() {
        for versions in Versions::ALL {
            for (program, module, release) in [
                (Program::ApiServer, "k8s.io/kubernetes", versions.kubernetes.release()),
                (Program::JobSet, "sigs.k8s.io/jobset", versions.jobset.release()),
            ] {
                let file = program.pins(versions).directory().join("go.mod");
                let text = fs::read_to_string(file).unwrap();
                let required = format!("{module} v{release}");
                let requirement =
                    |line: &str| line.trim().trim_end_matches(" // indirect") == required;
                assert!(text.lines().any(requirement), "{required}");
            }
        }
    }

    #[test]
    fn the_binaries_call_themselves_by_the_version_in_the_go_mod() {
        let flags = linker_flags("require (\n\tk8s.io/kubernetes v1.36.3 // indirect\n)").unwrap();
        assert!(flags.contains("version.gitVersion=v1.36.3 "), "{flags}");
        assert!(flags.contains("version.gitMajor=1 "), "{flags}");
        assert!(flags.contains("version.gitMinor=36 "), "{flags}");
    }
}
