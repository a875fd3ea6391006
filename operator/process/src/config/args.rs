//! The command line of either program.

use std::ffi::OsString;

use clap::{ArgAction, Parser, ValueEnum};
use tracing::level_filters::LevelFilter;

use super::gates::{Gates, boolean};
use crate::logging::{Format, Options};

/// What either program takes. What is said of each flag is its part of the manual page.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
#[expect(clippy::doc_markdown, reason = "it is read on a terminal, as it stands")]
pub(super) struct Args {
    /// Configuration file [default: none, every setting has its default]
    ///
    /// YAML, kind Configuration of config.trainer.kubeflow.org/v1alpha1: the file of Kubeflow
    /// Trainer, with the sections lifecycle and certificates besides. It is read once. Whatever
    /// is unknown or wrong in it ends the process. Both programs can be given the same file.
    /// An empty path is none.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "",
        hide_default_value = true,
        verbatim_doc_comment
    )]
    pub(super) config: OsString,

    /// The API server and who to be there [default: see Files]
    ///
    /// An empty path is none.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "",
        hide_default_value = true,
        verbatim_doc_comment
    )]
    pub(super) kubeconfig: OsString,

    /// Feature gates, as NAME=true,NAME=false [default: all off]
    ///
    /// Set after those of the file; may be given more than once. TrainJobStatus, AllAlpha and
    /// AllBeta are known. The first two are refused when they are switched on: the status
    /// server is not part of this release.
    #[arg(long, value_name = "GATES", verbatim_doc_comment)]
    pub(super) feature_gates: Vec<Gates>,

    /// What a log line looks like [default: json]
    ///
    /// json, one object a line; or text, for people, in colours on a terminal.
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, verbatim_doc_comment)]
    log_format: Option<FormatName>,

    /// Least important level that is logged [default: info]
    ///
    /// error, warn, info, debug or trace.
    #[arg(long, value_name = "LEVEL", hide_possible_values = true, verbatim_doc_comment)]
    log_level: Option<LevelName>,

    /// As --log-format=text --log-level=debug [default: false]
    #[arg(
        long, value_name = "BOOLEAN", value_parser = boolean, num_args = 0..=1, require_equals = true,
        default_value = "false", default_missing_value = "true", action = ArgAction::Set,
        hide_default_value = true, help_heading = TRAINER, verbatim_doc_comment
    )]
    zap_devel: bool,

    /// Format of log lines; --log-format goes first [default: json]
    ///
    /// json or console.
    #[arg(
        long, value_name = "ENCODER", help_heading = TRAINER, hide_possible_values = true,
        verbatim_doc_comment
    )]
    zap_encoder: Option<Encoder>,

    /// Least important level; --log-level goes first [default: info]
    ///
    /// debug, info, warn, error, panic, or a verbosity: 0 is info, 1 to 4 debug, 5 and more
    /// trace.
    #[arg(
        long, value_name = "LEVEL", value_parser = zap_level, help_heading = TRAINER,
        verbatim_doc_comment
    )]
    zap_log_level: Option<LevelFilter>,

    /// Ignored: there are no stack traces [default: none]
    #[arg(long, value_name = "LEVEL", help_heading = TRAINER, verbatim_doc_comment)]
    zap_stacktrace_level: Option<String>,

    /// Ignored: times are RFC 3339 [default: none]
    #[arg(long, value_name = "ENCODING", help_heading = TRAINER, verbatim_doc_comment)]
    zap_time_encoding: Option<String>,
}

const TRAINER: &str = "Flags of Kubeflow Trainer, read for compatibility";

impl Args {
    /// How to log.
    pub(super) fn logging(&self) -> Options {
        let (format, level) = if self.zap_devel {
            (Format::Text, LevelFilter::DEBUG)
        } else {
            (Format::Json, LevelFilter::INFO)
        };
        let zap_format = self.zap_encoder.map(|encoder| match encoder {
            Encoder::Json => Format::Json,
            Encoder::Console => Format::Text,
        });
        let own_format = self.log_format.map(|name| match name {
            FormatName::Json => Format::Json,
            FormatName::Text => Format::Text,
        });
        let own_level = self.log_level.map(|name| match name {
            LevelName::Error => LevelFilter::ERROR,
            LevelName::Warn => LevelFilter::WARN,
            LevelName::Info => LevelFilter::INFO,
            LevelName::Debug => LevelFilter::DEBUG,
            LevelName::Trace => LevelFilter::TRACE,
        });
        Options {
            format: own_format.or(zap_format).unwrap_or(format),
            level: own_level.or(self.zap_log_level).unwrap_or(level),
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatName {
    Json,
    Text,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LevelName {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Encoder {
    Json,
    Console,
}

/// A level of Trainer's logger. Its verbosities are those of Kubernetes, where 4 is for debugging.
fn zap_level(text: &str) -> Result<LevelFilter, String> {
    match text.to_ascii_lowercase().as_str() {
        "debug" => Ok(LevelFilter::DEBUG),
        "info" => Ok(LevelFilter::INFO),
        "warn" => Ok(LevelFilter::WARN),
        "error" | "panic" => Ok(LevelFilter::ERROR),
        verbosity => match verbosity.parse::<u32>() {
            Ok(0) => Ok(LevelFilter::INFO),
            Ok(1..=4) => Ok(LevelFilter::DEBUG),
            Ok(_) => Ok(LevelFilter::TRACE),
            Err(_) => Err("expected debug, info, warn, error, panic or a number from 0".to_owned()),
        },
    }
}
