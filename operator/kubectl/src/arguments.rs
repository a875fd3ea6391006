//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use trainjob_core::lifecycle::deadline::Clock;

use crate::duration;

/// Where the pages about this program are.
const MORE: &str = "Exit status: 0, or 1 and stderr says what is wrong.\n\
    Needs get and list of trainjobs, pods, events and jobsets, and for extend patch of trainjobs.";

/// How TrainJobs are: phase, time left, TTL and GPUs, and why one waits, was stopped or stays.
#[derive(Debug, Parser)]
#[command(name = "kubectl-trainjob", bin_name = "kubectl trainjob", version, after_help = MORE)]
pub struct Arguments {
    /// Which cluster and namespace.
    #[command(flatten)]
    pub place: Place,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Which cluster and namespace. In the help of a command they stand below its own flags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Place {
    /// The kubeconfig file; without it those of $KUBECONFIG, or ~/.kube/config
    #[arg(long, value_name = "FILE", global = true, display_order = 100)]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; without it the current one
    #[arg(long, value_name = "NAME", global = true, display_order = 101)]
    pub context: Option<String>,
    /// The namespace; without it that of the context
    #[arg(short, long, value_name = "NAME", global = true, display_order = 102)]
    pub namespace: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show a line for each TrainJob: phase, time left, GPUs and queue
    ///
    /// DEADLINE is the time until activeDeadlineSeconds fails the job. It begins with
    /// ≥ where the job was suspended, and the deadlineClock of the cluster decides.
    /// due? means that it has come if deadlines count from the creation, and has not
    /// if they count from the last resume: name the clock with --deadline-clock.
    /// TTL is the time until a finished job is deleted; +1h means an hour after its
    /// end. GPUS are those of its Pods that have a node and have not ended.
    #[command(verbatim_doc_comment)]
    Status(StatusArguments),
    /// Say why a TrainJob waits, was stopped or stays, and what you can do
    Why(WhyArguments),
    /// Give a TrainJob more time: raise its activeDeadlineSeconds
    ///
    /// It works where the cluster has lifecycle.fieldUpdates: Mutable. Elsewhere the
    /// server says that the field is immutable.
    #[command(verbatim_doc_comment)]
    Extend(ExtendArguments),
    /// Print a script that completes this program in a shell
    Completion {
        /// The shell.
        shell: Shell,
    },
}

/// The arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// TrainJobs; without names all of them
    #[arg(value_name = "NAME", conflicts_with = "all_namespaces")]
    pub names: Vec<String>,
    /// TrainJobs of all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// Only TrainJobs whose labels match, such as team=vision,stage!=test
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "names")]
    pub selector: Option<String>,
    /// wide: names are not cut; json: for programs
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<StatusOutput>,
    /// What deadlines count from here, if you know
    #[arg(long, value_name = "CLOCK")]
    pub deadline_clock: Option<ClockArgument>,
}

/// How `status` is printed, unless as a table of 80 columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatusOutput {
    /// A table as wide as its content.
    Wide,
    /// JSON.
    Json,
}

/// What deadlines count from (`lifecycle.deadlineClock`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum ClockArgument {
    /// The creation of the TrainJob.
    Creation,
    /// Its last resume.
    LastResume,
}

impl From<ClockArgument> for Clock {
    fn from(clock: ClockArgument) -> Self {
        match clock {
            ClockArgument::Creation => Self::Creation,
            ClockArgument::LastResume => Self::LastResume,
        }
    }
}

/// The arguments of `why`.
#[derive(Debug, Args)]
pub struct WhyArguments {
    /// The TrainJob
    pub name: String,
    /// json: for programs
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<WhyOutput>,
    /// What deadlines count from here, if you know
    #[arg(long, value_name = "CLOCK")]
    pub deadline_clock: Option<ClockArgument>,
}

/// How `why` is printed, unless as sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhyOutput {
    /// JSON.
    Json,
}

/// The arguments of `extend`.
#[derive(Debug, Args)]
pub struct ExtendArguments {
    /// The TrainJob
    pub name: String,
    /// By how much, such as 2h, 90m or 1d
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, required_unless_present = "to")]
    pub by: Option<i64>,
    /// To how many seconds in all
    #[arg(long, value_name = "SECONDS", conflicts_with = "by", value_parser = clap::value_parser!(i64).range(1..))]
    pub to: Option<i64>,
    /// Ask the server whether it would, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("kubectl-trainjob").chain(line.split(' ')))
    }

    #[test]
    fn definitions_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_fits_on_a_terminal() {
        for line in
            ["--help", "-h", "status --help", "why --help", "extend --help", "completion -h"]
        {
            let page = parse(line).unwrap_err().to_string();
            assert!(page.contains("kubectl trainjob"), "{page}");
            for shown in page.lines() {
                assert!(shown.chars().count() <= 100, "{line}: {shown}");
            }
        }
    }

    #[test]
    fn flags_of_kubectl_are_known_before_and_after_the_command() {
        for line in [
            "-n team --context c --kubeconfig f status",
            "status -n team --context c --kubeconfig f",
            "why job --namespace=team --context=c --kubeconfig=f",
        ] {
            let place = parse(line).unwrap().place;
            let expected = Place {
                kubeconfig: Some("f".into()),
                context: Some("c".into()),
                namespace: Some("team".into()),
            };
            assert_eq!(place, expected, "{line}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused_by_name_with_what_would_be_right() {
        for (line, said) in [
            ("status a -A", "--all-namespaces"),
            ("status -A -n team", "--namespace"),
            ("status a -l b=c", "--selector"),
            ("status -o yaml", "[possible values: wide, json]"),
            ("why", "<NAME>"),
            ("extend job", "--by <DURATION>"),
            ("extend job --by 2x", "such as 90m, 2h, 1h30m or 1d"),
            ("extend job --by 2h --to 7200", "--to <SECONDS>"),
            ("extend job --to 0", "'--to <SECONDS>': 0 is not in 1.."),
            ("status --deadline-clock Start", "[possible values: Creation, LastResume]"),
            ("completion tcsh", "[possible values: bash, elvish, fish, powershell, zsh]"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(said), "{line}: {error}");
        }
    }
}
