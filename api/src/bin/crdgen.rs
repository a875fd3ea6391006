//! Writes the chart's CRDs from the types of this crate; with `--check` only compares them.

use std::{env, error::Error, fs, path::Path, process::ExitCode};

use trainjob_api::crd;

/// Where the chart keeps its files; the folders of the CRDs are in there.
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/trainjob-operator/files");

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its terminal")]
fn main() -> Result<ExitCode, Box<dyn Error>> {
    let check = match env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => {
            eprintln!("unknown argument {other}; usage: crdgen [--check]");
            return Ok(ExitCode::from(2));
        }
    };
    let mut drifted = false;
    for (folder, name, content) in crd::files()? {
        let directory = Path::new(DIRECTORY).join(folder);
        let path = directory.join(&name);
        if !check {
            fs::create_dir_all(&directory)?;
            fs::write(&path, &content)?;
            println!("{name}: {} KiB", content.len().div_ceil(1024));
        } else if fs::read_to_string(&path).ok().as_deref() != Some(&content) {
            eprintln!("{name} has drifted; run: cargo run -p trainjob-api --bin crdgen");
            drifted = true;
        }
    }
    Ok(if drifted { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
