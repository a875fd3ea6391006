//! The command line of `explain`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::Parser;

/// The name of the command.
pub const COMMAND: &str = "explain";
/// Where the chart puts the configuration of the engine.
const CONFIG: &str = "/etc/trainjob-operator/config.yaml";

/// Says why an object is, or is not, deleted by a retention policy, and when.
///
/// It reads the policies, the namespace and the object, as whoever calls it may, changes nothing, and
/// plans as the retention engine does.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// The kind of the object: Job, jobs or jobs.batch
    kind: String,

    /// The name of the object
    name: String,

    /// The namespace of the object
    #[arg(long, short)]
    namespace: String,

    /// The configuration file of the engine [default: that of the chart, if it is there]
    ///
    /// It says which kinds policies may be about, and which namespaces are excluded.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The API server and who to be there [default: KUBECONFIG, ~/.kube/config, or the Pod]
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
}

/// Which object is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Arguments {
    /// Reads a command line without the names of program and command.
    pub(super) fn read(
        program: &str,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, clap::Error> {
        let named = [OsString::from(format!("{program} {COMMAND}"))];
        Self::try_parse_from(named.into_iter().chain(arguments))
    }

    /// The configuration file; `None`: there is none.
    pub(super) fn config(&self) -> Option<PathBuf> {
        let installed = || Some(PathBuf::from(CONFIG)).filter(|path| Path::exists(path));
        self.config.clone().or_else(installed)
    }

    /// The object.
    pub(super) fn object(&self) -> Asked {
        let (kind, namespace) = (self.kind.clone(), self.namespace.clone());
        Asked { kind, namespace, name: self.name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::read("a-program", line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn an_object_is_named_as_kubectl_names_it() {
        let expected =
            Asked { kind: "job".into(), namespace: "team-a".into(), name: "early".into() };
        for line in ["job early -n team-a", "-n team-a job early", "job --namespace=team-a early"] {
            assert_eq!(read(line).unwrap().object(), expected, "{line}");
        }
        for line in ["", "job", "job early", "job early -n", "job early late -n team-a"] {
            assert!(read(line).unwrap_err().use_stderr(), "{line}");
        }
    }

    #[test]
    fn help_is_no_failure_and_names_the_command() {
        let help = read("--help").unwrap_err();
        assert!(!help.use_stderr());
        assert!(help.to_string().contains("Usage: a-program explain"), "{help}");
    }
}
