//! Helm, kubectl and Python, as somebody would run them.

use std::env;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::testenv::binaries::{Binaries, Program};
use crate::testenv::cluster::Cluster;
use crate::testenv::workspace;

/// The folder of what is run with Python.
const SCRIPTS: &str = "e2e/python";

/// A Helm that was built with `go install` believes that it talks to 1.20 unless told otherwise.
const KUBERNETES: &str = "--kube-version=1.36.0";

/// All of them, for one cluster.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    helm: PathBuf,
    kubectl: PathBuf,
    python: PathBuf,
    prometheus: PathBuf,
    kubeconfig: PathBuf,
    folder: PathBuf,
}

impl Tools {
    /// Those for `cluster`. Helm is built where it is missing. Python is the one that `$PYTHON` names, or the one
    /// in `PATH`, with what `e2e/python/requirements.txt` names; Prometheus likewise by `$PROMETHEUS`.
    pub(crate) async fn provide(cluster: &Cluster) -> Result<Self> {
        let programs = || Binaries::provide(&[Program::Helm]);
        let programs = tokio::task::spawn_blocking(programs).await??;
        let given =
            |variable, name: &str| env::var_os(variable).map_or_else(|| name.into(), PathBuf::from);
        Ok(Self {
            helm: programs.path(Program::Helm).to_owned(),
            python: given("PYTHON", "python3"),
            prometheus: given("PROMETHEUS", "prometheus"),
            kubectl: cluster.kubectl().to_owned(),
            kubeconfig: cluster.kubeconfig(),
            folder: cluster.folder().to_owned(),
        })
    }

    /// The same for somebody else than the administrator.
    pub(crate) fn for_user(&self, kubeconfig: PathBuf) -> Self {
        Self { kubeconfig, ..self.clone() }
    }

    /// The files of Helm and kubectl, by the names that people call them; without one that is called so anyway.
    pub(crate) fn files(&self) -> Vec<(&'static str, &Path)> {
        let files = [("helm", &self.helm), ("kubectl", &self.kubectl)];
        let given = files.into_iter().filter(|(_, file)| file.is_absolute());
        given.map(|(name, file)| (name, file.as_path())).collect()
    }

    /// Where Helm keeps what is nobody's, and where the cluster is.
    pub(crate) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let homes = ["HELM_DATA_HOME", "HELM_CONFIG_HOME", "HELM_CACHE_HOME"];
        let homes = homes.map(|name| (name, self.folder.join(name.to_lowercase())));
        homes.into_iter().chain([("KUBECONFIG", self.kubeconfig.clone())]).collect()
    }

    /// What `helm …` prints.
    pub(crate) async fn helm<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<String> {
        self.run(self.command(&self.helm, arguments), None).await
    }

    /// What `helm …` prints that asks no cluster: `lint` or `template`.
    pub(crate) async fn helm_offline<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<String> {
        let mut command = self.command(&self.helm, arguments);
        command.arg(KUBERNETES);
        self.run(command, None).await
    }

    /// What a script prints that calls `$HELM` and asks no cluster.
    pub(crate) async fn with_helm<A: AsRef<OsStr>>(
        &self,
        script: &Path,
        arguments: &[A],
    ) -> Result<String> {
        let mut command = self.command(script, arguments);
        command.env("HELM", &self.helm);
        self.run(command, None).await
    }

    /// What `kubectl …` prints, with `input` as its input.
    pub(crate) async fn kubectl<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        input: Option<String>,
    ) -> Result<String> {
        self.run(self.command(&self.kubectl, arguments), input).await
    }

    /// The file of Prometheus. That of promtool is beside it.
    pub(crate) fn prometheus(&self) -> Result<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        let places = env::split_paths(&path).map(|place| place.join(&self.prometheus));
        // A path that is absolute stays what it is when it is joined.
        let file = places.into_iter().find(|file| file.is_file());
        file.with_context(|| {
            let name = self.prometheus.display();
            format!(
                "no {name}: install Debian's package prometheus, or name the file in PROMETHEUS"
            )
        })
    }

    /// What another program prints.
    pub(crate) async fn program<A: AsRef<OsStr>>(
        &self,
        program: &Path,
        arguments: &[A],
    ) -> Result<String> {
        self.run(self.command(program, arguments), None).await
    }

    /// What one of the scripts prints.
    pub(crate) async fn python<A: AsRef<OsStr>>(
        &self,
        script: &str,
        arguments: &[A],
    ) -> Result<String> {
        let mut command = self.command::<A>(&self.python, &[]);
        command.arg(workspace::path(SCRIPTS).join(script)).args(arguments);
        // The sources of this repository are nobody's cache.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        self.run(command, None).await
    }

    fn command<A: AsRef<OsStr>>(&self, program: &Path, arguments: &[A]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).envs(self.environment());
        command
    }

    async fn run(&self, mut command: Command, input: Option<String>) -> Result<String> {
        let arguments = command.get_args().map(|argument| argument.to_string_lossy());
        let arguments = arguments.collect::<Vec<_>>().join(" ");
        let what = format!("{} {arguments}", command.get_program().to_string_lossy());
        let output = tokio::task::spawn_blocking(move || {
            command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
            // It reads everything before it says anything.
            if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
                stdin.write_all(input.as_bytes())?;
            }
            child.wait_with_output()
        });
        let output = output.await?.with_context(|| format!("cannot run {what}"))?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{what}: {}", complaint.trim());
        Ok(String::from_utf8(output.stdout)?)
    }
}
