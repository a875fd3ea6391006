//! What the image holds, and that its programs need nothing beside it: a folder in the place of a container.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::testenv::fixtures::{COMPLETES, COMPLETES_AFTER, runtime, train_job};
use crate::testenv::product::{UNSHARE, confined};
use crate::testenv::release::Release;
use crate::testenv::release::programs::Program;
use crate::testenv::workspace::{self, copy_folder};

/// Where `.ci/image` is to put it.
const IMAGE: &str = "image";
const PROGRAMS: [Program; 4] =
    [Program::Operator, Program::Webhook, Program::Retention, Program::Accounting];
/// What it holds beside the programs.
const BESIDE: [&str; 4] =
    ["LICENSE", "etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt"];
/// The section of a program in which `cargo auditable` puts its bill of materials.
const BILL_OF_MATERIALS: &[u8] = b".dep-v0";

/// Shows all of it; `tell` hears of each step.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let image = workspace::output(IMAGE)?;
    let files = files(&image).with_context(|| {
        format!("no image in {}: `.ci/image target/image` makes it", image.display())
    })?;
    let programs = PROGRAMS.map(|program| format!("usr/bin/{}", program.name()));
    let expected = BESIDE.iter().map(|file| (*file).to_owned()).chain(programs.clone());
    ensure!(files == expected.collect(), "the image holds {files:?}");
    for program in programs {
        let bytes = fs::read(image.join(&program))?;
        let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
        ensure!(has(BILL_OF_MATERIALS), "{program} has no bill of materials");
        let sources = fs::canonicalize(workspace::path("."))?;
        ensure!(!has(sources.as_os_str().as_encoded_bytes()), "{program} knows where it was built");
    }
    tell(
        "the image holds all programs with their bills of materials, authorities of certificates, nothing else",
    );

    let release = Release::with_runtimes(&[]).await?;
    work(&release, &image, tell).await
}

/// The programs in the folder `image` run with nothing in sight but what a Pod of the release has, and do their work.
pub(super) async fn work(
    release: &Release,
    image: &Path,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    // Its own, to which the files are added that a Pod has from volumes.
    let root = release.cluster.folder().join(IMAGE);
    copy_folder(image, &root)?;
    for program in PROGRAMS {
        let mut arguments = confined(&root, &program.file_of_image());
        arguments.push("--version".to_owned());
        let said = release.tools.program(Path::new(UNSHARE), &arguments).await?;
        ensure!(said.starts_with(program.name()), "{said}");
    }
    let _programs = release.start_in(&root).await?;
    tell("with nothing else in sight, they are ready");
    let completes = json!({COMPLETES_AFTER: "1s"});
    let runtime = runtime(COMPLETES, &completes, 1, None);
    let (user, namespace) = release.user("image").await?;
    release.cluster.apply_yaml("default", &runtime.to_string()).await?;
    let job = train_job("job", COMPLETES, &json!({"ttlSecondsAfterFinished": 3}));
    let of_job = |command: &'static str| [command, "--namespace", &namespace].map(str::to_owned);
    let create = [&of_job("create")[..], &["-f".to_owned(), "-".to_owned()]].concat();
    user.kubectl(&create, Some(job.to_string())).await?;
    for awaited in ["--for=condition=Complete", "--for=delete"] {
        let more = ["trainjob/job", awaited, "--timeout=60s"].map(str::to_owned);
        user.kubectl(&[&of_job("wait")[..], &more].concat(), None).await?;
    }
    tell("a job is admitted, runs, completes and is deleted");
    Ok(())
}

/// All files in a folder, by their paths in it.
fn files(folder: &Path) -> Result<BTreeSet<String>> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder)?.display().to_string());
            }
        }
    }
    Ok(found)
}
