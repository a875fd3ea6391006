//! The command line: our own flags, and those of Kubeflow Trainer that they replace.

use std::{
    collections::BTreeMap, ffi::OsString, ops::RangeInclusive, path::PathBuf, time::Duration,
};

use clap::{
    ArgMatches, FromArgMatches as _,
    error::{ContextKind, ErrorKind},
};
use thiserror::Error;

use super::{
    args::Args,
    error::{ConfigError, Problem},
    gates::Gates,
    help,
    value::GoDuration,
};
use crate::{
    logging::Options,
    program::{OwnFlag, Program},
};

/// What the command line says.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// The configuration file; `None`: every default.
    pub config: Option<PathBuf>,
    /// The file that says how to reach the API server; `None`: `$KUBECONFIG`, `~/.kube/config` or the
    /// Pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// Feature gates that are set after those of the file.
    pub feature_gates: Gates,
    /// How to log.
    pub logging: Options,
    /// The flags that only this program takes, of those that are given; one without a value is `true`.
    pub own: BTreeMap<&'static str, String>,
}

/// Why there are no flags.
#[derive(Debug, Error)]
pub enum FlagsError {
    /// Nothing is wrong: help or the version was asked for, and this is it. Goes to stdout; exit 0.
    #[error("{0}")]
    Answer(String),
    /// What is wrong, in one line. Exit 1.
    #[error("{0}")]
    Invalid(String),
}

impl Flags {
    /// Reads the command line of `program`, whose name is also the first of `args`.
    ///
    /// A flag that is given twice counts the last time, a feature gate too. An empty path is no path.
    ///
    /// # Errors
    ///
    /// [`FlagsError::Answer`] for `--help` and `--version`, [`FlagsError::Invalid`] for a flag that is
    /// unknown, lacks its value or has one that is not allowed.
    pub fn read<A>(program: Program, args: impl IntoIterator<Item = A>) -> Result<Self, FlagsError>
    where
        A: Into<OsString> + Clone,
    {
        let matches = help::command(program).try_get_matches_from(args);
        let read = matches.and_then(|matches| {
            let own = program.flags.iter().filter_map(|flag| own(flag, &matches));
            Ok((Args::from_arg_matches(&matches)?, own.collect()))
        });
        let (args, own) = read.map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                FlagsError::Answer(trimmed(&error.to_string()))
            }
            _ => FlagsError::Invalid(one_line(&error)),
        })?;
        Ok(Self {
            own,
            logging: args.logging(),
            config: path(args.config),
            kubeconfig: path(args.kubeconfig),
            feature_gates: Gates(
                args.feature_gates.into_iter().flat_map(|gates| gates.0).collect(),
            ),
        })
    }

    /// The length of time that a flag of a command says, which is given by its name without and with dashes; `default` where it
    /// is not given.
    ///
    /// # Errors
    ///
    /// It is none, or out of bounds.
    pub fn duration(
        &self,
        (name, flag): (&str, &'static str),
        default: Duration,
        bounds: &RangeInclusive<Duration>,
    ) -> Result<Duration, ConfigError> {
        let Some(text) = self.own.get(name) else { return Ok(default) };
        let invalid =
            |message| ConfigError::InvalidFlag { flag, problem: Problem::new("", message) };
        let GoDuration(given) = text.parse().map_err(invalid)?;
        if bounds.contains(&given) {
            return Ok(given);
        }
        let (least, most) = (bounds.start(), bounds.end());
        Err(invalid(format!("{text}, expected a length of time from {least:?} to {most:?}")))
    }
}

fn own(flag: &OwnFlag, matches: &ArgMatches) -> Option<(&'static str, String)> {
    let said = match flag.value {
        Some(_) => matches.get_one::<String>(flag.name).cloned(),
        None => matches.get_flag(flag.name).then(|| true.to_string()),
    };
    Some((flag.name, said?))
}

fn path(text: OsString) -> Option<PathBuf> {
    (!text.is_empty()).then(|| text.into())
}

/// The text, without the spaces at the ends of lines that clap leaves there.
fn trimmed(text: &str) -> String {
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// What is wrong, without the usage that clap adds.
fn one_line(error: &clap::Error) -> String {
    let message = error.to_string();
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let paragraph = message.split("\n\n").next().unwrap_or(message);
    let lines: Vec<_> = paragraph.lines().map(str::trim).collect();
    match error.get(ContextKind::SuggestedArg) {
        Some(suggestion) => format!("{}, expected perhaps '{suggestion}'", lines.join(" ")),
        None => lines.join(" "),
    }
}
