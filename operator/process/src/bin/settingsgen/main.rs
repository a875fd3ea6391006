//! Writes what is said of settings outside of `config/file.rs` from the types in it: the tables of
//! `docs/configuration.md` and of the chart's README, and `definitions.config` of the schema of the chart's
//! values. The comments in the values it writes from all tables of the chart's README. With `--check` it only
//! compares them.

use std::{env, error::Error, fs, path::Path, process::ExitCode};

mod chart;
mod comments;
mod markdown;
mod settings;

use settings::Settings;

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const VALUES: &str = "charts/trainjob-operator/values.yaml";
const README: &str = "charts/trainjob-operator/README.md";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its terminal")]
fn main() -> Result<ExitCode, Box<dyn Error>> {
    let check = match env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => {
            eprintln!("unknown argument {other}; usage: settingsgen [--check]");
            return Ok(ExitCode::from(2));
        }
    };
    let settings = Settings::of_the_file();
    let of_chart = Settings::of_the_file().without(&chart::ELSEWHERE);
    let values = chart::defaults(&read(VALUES)?, &of_chart)?;
    let readme = page(README, |page| markdown::readme(page, &of_chart, &values))?;
    let commented = page(VALUES, |values| comments::values(values, &readme.1))?;
    let mut drifted = false;
    for (name, content) in [
        readme,
        commented,
        page("docs/configuration.md", |page| markdown::page(page, &settings))?,
        page("charts/trainjob-operator/values.schema.json", |schema| {
            chart::schema(schema, &of_chart, &values)
        })?,
    ] {
        if read(name)? == content {
            continue;
        }
        drifted = true;
        if check {
            eprintln!("{name} has drifted; run: cargo run --bin settingsgen");
        } else {
            fs::write(Path::new(ROOT).join(name), content)?;
            println!("{name}: written");
        }
    }
    Ok(if check && drifted { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The file of this name, and its content as it should be.
fn page(
    name: &'static str,
    generated: impl Fn(&str) -> Result<String, String>,
) -> Result<(&'static str, String), Box<dyn Error>> {
    let content = generated(&read(name)?).map_err(|problem| format!("{name}: {problem}"))?;
    Ok((name, content))
}

fn read(name: &str) -> Result<String, String> {
    fs::read_to_string(Path::new(ROOT).join(name)).map_err(|error| format!("{name}: {error}"))
}

/// Goes on to the line that ends a generated part.
fn skip_to_end<'a>(
    lines: &mut impl Iterator<Item = &'a str>,
    is_end: impl Fn(&str) -> bool,
) -> Result<&'a str, String> {
    lines.find(|line| is_end(line)).ok_or_else(|| "a generated part has no end".to_owned())
}
