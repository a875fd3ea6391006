//! An image that trains with JAX on CPUs, of Debian's Python and what pip has: no registry has one that is small.

use std::env::{self, consts::ARCH};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::image::{Image, write};
use super::packages::{Packages, run};
use crate::testenv::workspace;

/// Its name.
pub const IMAGE: &str = "localhost/jax:local";
/// The training in it; see `e2e/node/jax`.
pub const SCRIPT: &str = "/train.py";

/// Debian's Python, as of Debian 12, and the libraries that wheels take for granted.
const PACKAGES: [&str; 14] = [
    "python3.11-minimal",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libbz2-1.0",
    "libc6",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libsqlite3-0",
    "libssl3",
    "libstdc++6",
    "libuuid1",
    "zlib1g",
];
const VERSION: &str = "3.11";
/// The systems that wheels for it are made for.
const SYSTEMS: [&str; 4] = ["manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28"];
const WHEELS: &str = "/opt/jax";
const REQUIREMENTS: &str = "e2e/node/jax/requirements.txt";
const SOURCE: &str = "e2e/node/jax/train.py";

/// Finds the file system of the image in the user's cache directory, or makes it there, which takes a minute or two.
pub fn provide() -> Result<Packages> {
    let versions = workspace::read(REQUIREMENTS)?;
    Packages::provide("node-jax", &PACKAGES, &versions, install)
}

/// Writes the image to a file in `folder`.
pub fn image(packages: &Packages, folder: &Path) -> Result<PathBuf> {
    let root = packages.folder();
    // The newest one, whenever the rest was made.
    fs::copy(workspace::path(SOURCE), root.join(SCRIPT.trim_start_matches('/')))?;
    let path = format!("PYTHONPATH={WHEELS}");
    let env = ["PATH=/usr/bin", &path, "HOME=/tmp", "PYTHONUNBUFFERED=1"];
    let image = Image { name: IMAGE, root, command: &["python3", SCRIPT], env: &env };
    write(&image, &folder.join("jax.tar"))
}

fn install(root: &Path) -> Result<()> {
    let python = format!("python{VERSION}");
    symlink(&python, root.join("usr/bin/python3"))?;
    fs::create_dir_all(root.join("tmp"))?;
    let own = env::var_os("PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
    let mut pip = Command::new(own);
    pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-compile"]);
    pip.args(["--no-deps", "--only-binary", ":all:", "--implementation", "cp"]);
    pip.args(["--python-version", VERSION]);
    pip.args(SYSTEMS.iter().flat_map(|it| ["--platform".to_owned(), format!("{it}_{ARCH}")]));
    pip.arg("--target").arg(root.join(WHEELS.trim_start_matches('/')));
    pip.arg("--requirement").arg(workspace::path(REQUIREMENTS));
    run(&mut pip).context("cannot install JAX; PYTHON names a Python with pip")?;
    // By their content: in the image all files are of the same time.
    let mut compile = Command::new("chroot");
    // What is set for the Python of this machine is not meant for that one.
    compile.env_remove("PYTHONHOME").env_remove("PYTHONPATH");
    compile.arg(root).arg(format!("/usr/bin/{python}"));
    compile.args(["-m", "compileall", "-q", "-x", "/tests?/|lib2to3"]);
    compile.args(["--invalidation-mode", "unchecked-hash"]);
    run(compile.arg(format!("/usr/lib/{python}")).arg(WHEELS))
}
