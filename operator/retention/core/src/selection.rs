//! Which objects of a kind the API server has to send (`docs/retention.md`, R62).
//!
//! A watch may leave out what cannot have finished, if the API server can tell that by a selector. What it may not leave
//! out is decided by an edit, as the labels are that policies select by: to the watch, an object that an edit brings into
//! its selection looks like one that has just ended, and the breaker lets those go (R41).

use crate::{
    finished::{Definition, configured::Configured},
    kind::BuiltIn,
    operator::{Condition, Wanted},
};

/// Pods in a phase that ends them; a Pod never leaves such a phase.
const ENDED_PODS: &str = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown";

/// What is selected of a kind. Every object fits that has finished by any of some definitions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// A field selector; empty: all.
    pub fields: &'static str,
    /// A label selector; empty: all.
    pub labels: String,
}

impl Selection {
    /// What may have finished by some of these definitions, of which there is one at least.
    #[must_use]
    pub fn of<'d>(definitions: impl IntoIterator<Item = &'d Definition>) -> Self {
        let mut all = definitions.into_iter().map(Self::of_one);
        let first = all.next().unwrap_or_default();
        all.fold(first, |one, other| if one == other { one } else { Self::default() })
    }

    fn of_one(definition: &Definition) -> Self {
        match definition {
            Definition::BuiltIn(BuiltIn::Pod) => Self { fields: ENDED_PODS, labels: String::new() },
            Definition::BuiltIn(
                BuiltIn::Job
                | BuiltIn::JobSet
                | BuiltIn::TrainJob
                | BuiltIn::Workload
                | BuiltIn::TrainJobRecord,
            ) => Self::default(),
            Definition::Configured(configured) => Self { fields: "", labels: labels(configured) },
        }
    }
}

/// The labels without which an object has not finished.
fn labels(configured: &Configured) -> String {
    let requirements = configured.required_labels().filter_map(|(key, condition)| {
        let values = |values: &std::collections::BTreeSet<Box<str>>| {
            values.iter().map(|value| &**value).collect::<Vec<_>>().join(",")
        };
        match condition {
            Condition { wanted: Wanted::OneOf(wanted), negated: false } => {
                Some(format!("{key} in ({})", values(wanted)))
            }
            Condition { wanted: Wanted::OneOf(unwanted), negated: true } => {
                Some(format!("{key} notin ({})", values(unwanted)))
            }
            Condition { wanted: Wanted::Any, negated: false } => Some(key.to_owned()),
            // An empty value counts as none there, and as one to the API server.
            Condition { wanted: Wanted::Any, negated: true } => None,
        }
    });
    requirements.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        finished::configured::{DescribedOutcome, Description, EndCondition, Subject, Test},
        operator::Operator,
    };

    fn requiring(tests: &[(&str, Operator, &[&str])]) -> Definition {
        let test = |(key, operator, values): &(&str, Operator, &[&str])| Test {
            subject: Subject::Label((*key).into()),
            condition: Condition::new(*operator, values.iter().copied()).unwrap(),
        };
        let condition = EndCondition {
            type_: "Done".to_owned(),
            status: true,
            reasons: Vec::new(),
            outcome: DescribedOutcome::Other,
        };
        let description = Description {
            requires: tests.iter().map(test).collect(),
            conditions: vec![condition],
            ..Description::default()
        };
        Definition::Configured(Box::new(Configured::new(description).unwrap()))
    }

    #[test]
    fn what_cannot_have_finished_is_left_out() {
        use Operator::{DoesNotExist, Exists, In, NotIn};
        let pods = Definition::BuiltIn(BuiltIn::Pod);
        let job = Definition::BuiltIn(BuiltIn::Job);
        let done = || requiring(&[("completed", In, &["true", "yes"])]);
        let others =
            requiring(&[("a/b", Exists, &[]), ("c", NotIn, &["x"]), ("d", DoesNotExist, &[])]);
        for (definitions, fields, labels) in [
            (vec![pods.clone()], ENDED_PODS, ""),
            (vec![job], "", ""),
            (vec![done()], "", "completed in (true,yes)"),
            (vec![done(), done()], "", "completed in (true,yes)"),
            (vec![done(), requiring(&[])], "", ""),
            (vec![pods, done()], "", ""),
            (vec![others], "", "a/b,c notin (x)"),
            (vec![], "", ""),
        ] {
            let expected = Selection { fields, labels: labels.to_owned() };
            assert_eq!(Selection::of(&definitions), expected, "{definitions:?}");
        }
    }
}
