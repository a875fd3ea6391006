//! Why a command failed, in words for its user.

use kube::{
    config::{InferConfigError, KubeconfigError},
    core::Status,
};
use thiserror::Error;

/// Why a command failed.
#[derive(Debug, Error)]
pub enum Failure {
    /// A flag has a value that cannot be, or the flags do not go together.
    #[error("{flag}: {what}")]
    Flag {
        /// The flag, such as `--by`.
        flag: &'static str,
        /// What is wrong and what would be right.
        what: String,
    },
    /// The kubeconfig is of no use.
    #[error("{0}; name another file with --kubeconfig or KUBECONFIG")]
    Kubeconfig(#[from] KubeconfigError),
    /// There is neither a kubeconfig nor a Pod around.
    #[error("no cluster is known: {0}; name a file with --kubeconfig or KUBECONFIG")]
    NoCluster(#[from] InferConfigError),
    /// The API server has refused, in its words.
    #[error("the server has refused to {what}: {}", message(.status))]
    Refused {
        /// What was asked of it.
        what: String,
        /// Its answer.
        status: Box<Status>,
    },
    /// No answer came, or none that can be read.
    #[error("cannot {what}: {}", chain(.source))]
    NoAnswer {
        /// What was asked.
        what: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// There is no client for this configuration.
    #[error("cannot set up a client: {}", chain(.0))]
    Client(#[source] Box<kube::Error>),
    /// There are no such TrainJobs.
    #[error("{}", not_found(.names, .namespace))]
    NotFound {
        /// Their names.
        names: Vec<String>,
        /// Where they were looked for.
        namespace: String,
    },
    /// What was asked for makes no sense for this TrainJob.
    #[error("{0}")]
    Nonsense(String),
    /// The answer cannot be written.
    #[error("cannot write the answer: {0}")]
    Output(#[from] std::io::Error),
}

impl Failure {
    /// What an error of a request means. `what` completes the sentence "cannot …".
    #[must_use]
    pub fn of_request(what: impl Into<String>, error: kube::Error) -> Self {
        let what = what.into();
        match error {
            kube::Error::Api(status) => Self::Refused { what, status },
            source => Self::NoAnswer { what, source: Box::new(source) },
        }
    }

    /// The code of the answer of the API server, if it has refused.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(status.code),
            _ => None,
        }
    }
}

fn message(status: &Status) -> String {
    if status.message.is_empty() {
        format!("{} {}", status.code, status.reason)
    } else {
        status.message.clone()
    }
}

/// An error with all its causes; the client library's own text alone often does not name the cause.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let further = error.to_string();
        if !text.contains(&further) {
            text = format!("{text}: {further}");
        }
        cause = error.source();
    }
    text
}

fn not_found(names: &[String], namespace: &str) -> String {
    let names = names.join(", ");
    format!("no TrainJob {names} in namespace {namespace}; name another namespace with --namespace")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_server() {
        let status = |message: &str| {
            Box::new(Status {
                code: 403,
                reason: "Forbidden".into(),
                message: message.into(),
                ..Status::default()
            })
        };
        for (message, expected) in [
            (
                "trainjobs is forbidden",
                "the server has refused to list TrainJobs: trainjobs is forbidden",
            ),
            ("", "the server has refused to list TrainJobs: 403 Forbidden"),
        ] {
            let error = Failure::of_request("list TrainJobs", kube::Error::Api(status(message)));
            assert_eq!((error.to_string().as_str(), error.code()), (expected, Some(403)));
        }
    }

    #[test]
    fn what_is_missing_is_named_with_what_to_change() {
        let error =
            Failure::NotFound { names: vec!["a".into(), "b".into()], namespace: "n".into() };
        assert_eq!(
            error.to_string(),
            "no TrainJob a, b in namespace n; name another namespace with --namespace"
        );
    }
}
