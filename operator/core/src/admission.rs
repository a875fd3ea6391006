//! Admission: what is refused, warned of and filled in before an object is stored.
//!
//! Pure functions of a request and of what the caller looked up for it. The rules, their order and their
//! words are Kubeflow Trainer's, since people and tools match on them; where a rule differs its file says
//! so. Two differences hold everywhere, so that admission never stands in the way of stopping a job:
//!
//! * An update of an object that is being deleted, or that leaves the spec as it is, is let through.
//! * An update is judged by the runtime the job runs on, which is its snapshot's, and refused only for
//!   what it brings in: a problem that the stored object has already is no reason.
//!
//! | file | what it answers |
//! |---|---|
//! | [`train_job`] | may this TrainJob be stored? |
//! | [`runtimes`] | may this runtime be stored? |
//! | [`defaults`] | what is filled in? |
//! | [`lifecycle`] | the rules of TTL and deadline |
//! | [`limits`] | their defaults and maxima |
//! | [`dropped_fields`] | is a TTL or deadline that an update lacks to be removed? |
//! | [`ownership`] | who owns which field? |
//! | [`field`] | how an error reads |

pub mod defaults;
pub mod dropped_fields;
pub mod field;
mod initializers;
pub mod lifecycle;
pub mod limits;
mod manager;
pub mod ownership;
mod patches;
pub(crate) mod reserved;
pub mod runtimes;
mod same;
#[cfg(test)]
pub(crate) mod testing;
pub mod train_job;
mod unions;
mod volcano;

pub use self::{field::FieldError, patches::asks_what_runs, volcano::priority_classes};

use crate::build::UnsupportedRuntime;

/// The answer to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The object names a runtime of a kind that is none; nothing else was looked at then.
    pub unsupported: Option<UnsupportedRuntime>,
    /// What is wrong with the object. None: it is admitted.
    pub errors: Vec<FieldError>,
    /// What its author should know, admitted or not.
    pub warnings: Vec<String>,
}

impl Verdict {
    /// Why the request is denied, in one text; `None` if it is not.
    #[must_use]
    pub fn denial(&self) -> Option<String> {
        let unsupported = self.unsupported.as_ref().map(ToString::to_string);
        unsupported.or_else(|| field::aggregate(&self.errors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_without_errors_denies_nothing() {
        let warned = Verdict { warnings: vec!["soon gone".into()], ..Verdict::default() };
        assert_eq!(warned.denial(), None);
    }

    #[test]
    fn a_denial_is_the_text_of_what_is_wrong() {
        let error = FieldError::forbidden("spec.a", "no");
        let denied = Verdict { errors: vec![error], ..Verdict::default() };
        assert_eq!(denied.denial().unwrap(), "spec.a: Forbidden: no");
    }
}
