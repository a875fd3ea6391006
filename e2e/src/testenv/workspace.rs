//! The binaries and files of this repository.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

/// The binary of the operator.
const OPERATOR: &str = "trainjob-operator";
/// The binary of the webhook.
const WEBHOOK: &str = "trainjob-webhook";

/// The binary of the retention engine.
const RETENTION: &str = "trainjob-retention";

/// The binary of the accounting program.
const ACCOUNTING: &str = "trainjob-accounting";

/// The binary of the kubectl plugin.
const KUBECTL_PLUGIN: &str = "kubectl-trainjob";

/// The directory of a binary that was built, or why it could not be.
type Built = OnceLock<Result<PathBuf, String>>;

/// The file of the operator, built from the sources as they are now.
///
/// Under cargo, it is built, once in a process; without it, it is taken from beside the running program.
pub fn operator() -> Result<PathBuf> {
    static BUILT: Built = OnceLock::new();
    provide(&BUILT, OPERATOR)
}

/// The file of the webhook, as that of the [`operator`].
pub fn webhook() -> Result<PathBuf> {
    static BUILT: Built = OnceLock::new();
    provide(&BUILT, WEBHOOK)
}

/// The file of the retention engine, as that of the [`operator`].
pub fn retention() -> Result<PathBuf> {
    static BUILT: Built = OnceLock::new();
    provide(&BUILT, RETENTION)
}

/// The file of the accounting program, as that of the [`operator`].
pub fn accounting() -> Result<PathBuf> {
    static BUILT: Built = OnceLock::new();
    provide(&BUILT, ACCOUNTING)
}

/// The file of the kubectl plugin, as that of the [`operator`].
pub fn kubectl_plugin() -> Result<PathBuf> {
    static BUILT: Built = OnceLock::new();
    provide(&BUILT, KUBECTL_PLUGIN)
}

/// The file of the server that the webhook is compared with in a bench.
pub(crate) fn empty_webhook() -> Result<PathBuf> {
    static BUILT: Built = OnceLock::new();
    provide(&BUILT, "empty-webhook")
}

/// The file of the demo.
pub(crate) fn demo() -> Result<PathBuf> {
    static BUILT: Built = OnceLock::new();
    provide(&BUILT, "demo")
}

/// The files of these integration tests, in their order, built from the sources as they are now. What cargo has to
/// say of them is kept in `folder`.
pub(crate) fn tests(names: &[&str], folder: &Path) -> Result<Vec<PathBuf>> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let messages = folder.join("tests.json");
    launcher::build_tests(&cargo, &target()?, names, fs::File::create(&messages)?)?;
    let messages = fs::read_to_string(messages)?;
    let made: Vec<Value> = messages.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let file = |name: &&str| {
        let is_it = |message: &&Value| {
            let target = |field: &str| message.pointer(&format!("/target/{field}"));
            target("name") == Some(&json!(name)) && target("kind") == Some(&json!(["test"]))
        };
        let file = made.iter().find(is_it).and_then(|message| message.get("executable")?.as_str());
        file.map(PathBuf::from).with_context(|| format!("there is no test {name}"))
    };
    names.iter().map(file).collect()
}

fn provide(built: &Built, binary: &str) -> Result<PathBuf> {
    let target = built.get_or_init(|| build(binary).map_err(|error| format!("{error:#}")));
    let path = target.as_ref().map_err(|error| anyhow!("{error}"))?.join(binary);
    if !path.is_file() {
        bail!("no {}: `cargo build --workspace --bins` makes it", path.display());
    }
    Ok(path)
}

/// Builds if cargo is at hand; returns the directory of the binaries.
fn build(binary: &str) -> Result<PathBuf> {
    let target = target()?;
    if let Ok(cargo) = env::var("CARGO") {
        launcher::build(&cargo, &target, &[binary])?;
    }
    Ok(target)
}

/// The directory of the binaries of this profile.
fn target() -> Result<PathBuf> {
    let own = env::current_exe()?;
    let mut target = own.parent().context("a program without a directory")?;
    // Tests and benches are one deeper than binaries.
    if target.ends_with("deps") {
        target = target.parent().context("a program in the root")?;
    }
    Ok(target.to_owned())
}

/// The text of a file of this repository.
pub fn read(file: &str) -> Result<String> {
    let path = root().join(file);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The texts of all YAML files of a folder of this repository, in the order of their names.
pub fn read_all(folder: &str) -> Result<Vec<String>> {
    let folder = root().join(folder);
    let entries =
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "yaml");
    let mut paths: Vec<PathBuf> = paths.into_iter().filter(is_yaml).collect();
    paths.sort();
    if paths.is_empty() {
        bail!("no YAML in {}", folder.display());
    }
    let read = |path: &PathBuf| {
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    paths.iter().map(read).collect()
}

/// Copies a folder with everything in it into another, which need not be there.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("no {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The folder in cargo's target folder that is called so.
pub(crate) fn output(name: &str) -> Result<PathBuf> {
    let own = env::current_exe()?;
    // Binaries are in the folder of their profile.
    let target = own.ancestors().nth(2).context("a program without a directory")?;
    Ok(target.join(name))
}

/// The path of a file or folder of this repository.
pub(crate) fn path(of: &str) -> PathBuf {
    root().join(of)
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
