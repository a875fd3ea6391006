//! What `.ci/release --dry-run` has made, as those have it who download it: the chart is installed, the programs run, the
//! plugin answers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::image;
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::release::{NAMESPACE, Release};
use crate::testenv::tools::Tools;
use crate::testenv::workspace;

/// Where `.ci/release` puts them.
const ARTIFACTS: &str = "dist";

/// Shows all of it; `tell` hears of each step.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let artifacts = Artifacts { folder: workspace::output(ARTIFACTS)? };
    let chart = artifacts.file("trainjob-operator-", ".tgz")?;
    let cluster = Cluster::start(Options { crds: true, ..Options::default() }).await?;
    let tools = Tools::provide(&cluster).await?;
    let checksums = artifacts.file("SHA256SUMS", "")?;
    let check = ["--check", "--quiet", &checksums];
    let check = [&["--chdir", &artifacts.folder.display().to_string(), "sha256sum"], &check[..]];
    tools.program(Path::new("env"), &check.concat()).await?;
    tools.kubectl(&["create", "namespace", NAMESPACE], None).await?;
    let manifest = artifacts.file("trainjob-operator-", ".yaml")?;
    let apply = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f"];
    tools.kubectl(&[&apply[..], &[&manifest]].concat(), None).await?;
    tell("its checksums are right, and the API server accepts its one file");

    let sets = ["crds.enabled=false", "runtimes.defaultEnabled=true"];
    let release = Release::install_chart(cluster, &chart, &[], &sets).await?;
    tell("its chart is installed");

    let architecture = std::env::consts::ARCH;
    let unpacked = release.cluster.folder().join(ARTIFACTS);
    for (archive, folder) in [("trainjob-operator-", "image"), ("kubectl-trainjob-", "plugin")] {
        let archive = artifacts.file(archive, &format!("-linux-{architecture}.tar.gz"))?;
        let folder = unpacked.join(folder);
        fs::create_dir_all(&folder)?;
        let folder = folder.display().to_string();
        let unpack = ["--extract", "--gzip", "--file", &archive, "--directory", &folder];
        release.tools.program(Path::new("tar"), &unpack).await?;
    }
    image::work(&release, &unpacked.join("image"), tell).await?;
    let plugin = unpacked.join("plugin/kubectl-trainjob");
    let status = release.tools.program(&plugin, &["status", "--all-namespaces"]).await?;
    ensure!(status.contains("No TrainJobs") || status.contains("PHASE"), "{status}");
    tell("its plugin answers");
    Ok(())
}

struct Artifacts {
    folder: PathBuf,
}

impl Artifacts {
    /// The path of the only file whose name begins and ends so.
    fn file(&self, begin: &str, end: &str) -> Result<String> {
        let entries = fs::read_dir(&self.folder).with_context(|| {
            let folder = self.folder.display();
            format!("no artifacts in {folder}: `.ci/release --dry-run` makes them")
        })?;
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(begin) && name.ends_with(end) {
                found.push(entry.path().display().to_string());
            }
        }
        let is_one = found.len() == 1;
        ensure!(is_one, "{begin}…{end} are {found:?}, expected one");
        found.pop().context("none")
    }
}
