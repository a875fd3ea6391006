//! Whether the second act went as promised, by the deletions that the engine has asked for.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::demo::clock::{Timestamp, short};
use crate::testenv::fixtures::Request;

/// A DELETE of the engine, as the API server has noted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// The plural name of the kind.
    pub resource: String,
    /// The name of the object.
    pub name: String,
    /// When the API server received it.
    pub at: Timestamp,
    /// Whether it may delete just this object in just this version.
    pub fenced: bool,
    /// The HTTP code of the answer.
    pub code: u16,
}

impl Deletion {
    /// The deletion that a request is, if it is one.
    #[must_use]
    pub fn of(request: &Request) -> Option<Self> {
        let says = |part: &str| {
            request.sent.pointer(&format!("/preconditions/{part}")).is_some_and(Value::is_string)
        };
        request.verb.starts_with("delete").then(|| Self {
            resource: request.object.resource.clone(),
            name: request.object.name.clone(),
            at: request.at.0,
            fenced: request.verb == "delete" && says("uid") && says("resourceVersion"),
            code: request.code(),
        })
    }
}

/// What is said of the second act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Its lines.
    pub lines: Vec<String>,
    /// Whether every promise was kept.
    pub met: bool,
}

impl Verdict {
    /// The verdict on these deletions, if policies enforced from `enforced` on. Just once each of the `expected` objects,
    /// by resource and name, has to be deleted, and none of the Jobs that are to be `kept`.
    #[must_use]
    pub fn of(
        deletions: &[Deletion],
        enforced: Timestamp,
        expected: &[(&str, &str)],
        kept: &[&str],
    ) -> Self {
        let mut complaints = Vec::new();
        for deletion in deletions {
            let what = format!("{} {}", deletion.resource, deletion.name);
            if !deletion.fenced {
                complaints.push(format!("{what}: a DELETE without UID and version"));
            }
            if deletion.at < enforced {
                complaints.push(format!("{what}: a DELETE in Audit"));
            }
            if deletion.resource == "jobs" && kept.contains(&deletion.name.as_str()) {
                complaints.push(format!("{what}: a DELETE of what was to stay"));
            }
        }
        let mut accepted: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let is_accepted = |it: &&Deletion| (200..300).contains(&it.code);
        for deletion in deletions.iter().filter(is_accepted) {
            *accepted.entry((&deletion.resource, &deletion.name)).or_default() += 1;
        }
        for (resource, name) in expected {
            let count = accepted.get(&(*resource, *name)).copied().unwrap_or_default();
            if count != 1 {
                complaints.push(format!("{resource} {name}: {count} accepted deletions"));
            }
        }
        let last = deletions.iter().map(|it| it.at).max();
        let took = last.map_or_else(String::new, |at| {
            format!(", the last {} after Enforce", short(at.duration_since(enforced)))
        });
        let (count, wrong) = (deletions.len(), complaints.len());
        let mut lines = vec![
            String::new(),
            format!(
                "Retention: {count} deletions{took}, each by UID and version; {wrong} complaints"
            ),
        ];
        lines.extend(complaints.iter().map(|complaint| format!("  {complaint}")));
        Self { lines, met: complaints.is_empty() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::testing::at;

    fn deletion(resource: &str, name: &str, seconds: f64) -> Deletion {
        let (resource, name) = (resource.to_owned(), name.to_owned());
        Deletion { resource, name, at: at(seconds), fenced: true, code: 200 }
    }

    fn complaints(deletions: &[Deletion]) -> Vec<String> {
        let verdict = Verdict::of(deletions, at(10.0), &[("jobs", "a")], &["held"]);
        assert_eq!(verdict.met, verdict.lines.len() == 2);
        verdict.lines.into_iter().skip(2).collect()
    }

    #[test]
    fn deletions_of_what_is_due_are_as_promised_and_all_else_is_told() {
        let good = deletion("jobs", "a", 10.5);
        let conflict = Deletion { code: 409, ..good.clone() };
        let workload = deletion("workloads", "held", 11.0);
        assert_eq!(complaints(&[conflict, good.clone(), workload]), [""; 0]);
        let unfenced = Deletion { fenced: false, ..good.clone() };
        for (deletions, expected) in [
            (vec![], "  jobs a: 0 accepted deletions"),
            (vec![good.clone(), good.clone()], "  jobs a: 2 accepted deletions"),
            (vec![unfenced], "  jobs a: a DELETE without UID and version"),
            (vec![deletion("jobs", "a", 9.9)], "  jobs a: a DELETE in Audit"),
            (
                vec![good, deletion("jobs", "held", 11.0)],
                "  jobs held: a DELETE of what was to stay",
            ),
        ] {
            assert_eq!(complaints(&deletions), [expected]);
        }
    }
}
