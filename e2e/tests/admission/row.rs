//! One row of a table: a TrainJob on a runtime, or a change of it, and what the API server says.

use serde_json::Value;

/// What the API server says to a request, its warnings aside.
#[derive(Debug, Clone)]
pub(crate) enum Expect {
    /// Yes.
    Admitted,
    /// The webhook refuses with this text, which may have the words of [`Row::denied`] in it.
    Denied(String),
    /// The schema refuses this field, for this reason.
    Invalid { path: String, reason: String },
}

/// A row. A job is sent in each way in which one can be created, a change in each way in which one can
/// be changed; each time as a dry run first.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// What is special about it.
    pub(crate) what: &'static str,
    /// The spec of the TrainingRuntime that it runs on; `null` where there is none.
    pub(crate) runtime: Value,
    /// What the runtime's name ends with.
    pub(crate) ending: &'static str,
    /// The spec of the TrainJob, on top of the reference to that runtime.
    pub(crate) job: Value,
    /// The spec that it is changed to; if there is none, it is about the creation.
    pub(crate) then: Option<Value>,
    /// The verdict.
    pub(crate) expect: Expect,
    /// The warnings, in their order.
    pub(crate) warnings: Vec<String>,
    /// What an API server of the oldest release says to it, before it asks the webhook, where it is a server-side apply.
    pub(crate) oldest_apply: Option<&'static str>,
}

impl Row {
    /// A job that is admitted without a warning.
    pub(crate) fn new(what: &'static str, runtime: Value, job: Value) -> Self {
        let (expect, warnings) = (Expect::Admitted, Vec::new());
        Self { what, runtime, ending: "", job, then: None, expect, warnings, oldest_apply: None }
    }

    /// The job is admitted, whatever is said to it; then its spec is changed to this one.
    pub(crate) fn then(self, spec: Value) -> Self {
        Self { then: Some(spec), ..self }
    }

    /// The runtime's name ends like this.
    pub(crate) fn on(self, ending: &'static str) -> Self {
        Self { ending, ..self }
    }

    /// The webhook refuses. In the text, `{job}`, `{runtime}` and `{ref}` stand for the names and the
    /// reference as JSON.
    pub(crate) fn denied(self, text: &str) -> Self {
        Self { expect: Expect::Denied(text.to_owned()), ..self }
    }

    /// The schema refuses this field.
    pub(crate) fn invalid(self, path: &str, reason: &str) -> Self {
        let (path, reason) = (path.to_owned(), reason.to_owned());
        Self { expect: Expect::Invalid { path, reason }, ..self }
    }

    /// An API server of the oldest release takes it in all ways but a server-side apply, which it answers with this.
    pub(crate) fn not_applied_by_oldest(self, text: &'static str) -> Self {
        Self { oldest_apply: Some(text), ..self }
    }

    /// There is this warning, too.
    pub(crate) fn warned(mut self, text: &str) -> Self {
        self.warnings.push(text.to_owned());
        self
    }
}
