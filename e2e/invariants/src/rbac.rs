//! S9: what the operator asks for, beside what it has declared that it may.

use crate::{
    history::{History, Request},
    rules::broken,
    violation::{Rule, Violation},
};

/// A rule of RBAC, as in a role: everything that combines one of each list. `*` stands for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RbacRule {
    /// API groups; the core group is the empty one.
    pub groups: Vec<String>,
    /// Plurals, with a slash and the subresource where there is one.
    pub resources: Vec<String>,
    /// Verbs.
    pub verbs: Vec<String>,
}

impl RbacRule {
    fn covers(&self, request: &Request) -> bool {
        has(&self.groups, &request.group)
            && has(&self.verbs, &request.verb)
            && has(&self.resources, &resource(request))
    }
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|it| it == "*" || it == wanted)
}

fn resource(request: &Request) -> String {
    match request.subresource.as_str() {
        "" => request.resource.clone(),
        subresource => format!("{}/{subresource}", request.resource),
    }
}

/// Every request that none of these `rules` covers.
#[must_use]
pub fn undeclared_requests(history: &History, rules: &[RbacRule]) -> Vec<Violation> {
    // What is no resource, such as `/version`, is open to everybody.
    let requests = history.requests.iter().filter(|request| !request.resource.is_empty());
    let uncovered = requests.filter(|request| !rules.iter().any(|rule| rule.covers(request)));
    uncovered
        .map(|request| {
            let Request { verb, group, .. } = request;
            let resource = resource(request);
            let what =
                format!("was asked for without a rule: {verb} {resource} of group {group:?}");
            broken(Rule::S9, request, what)
        })
        .collect()
}

/// Every combination that these `rules` allow and none of the requests used: verb, resource, group.
#[must_use]
pub fn unused_rules<'a>(
    requests: impl IntoIterator<Item = &'a Request>,
    rules: &[RbacRule],
) -> Vec<String> {
    let mut unused = Vec::new();
    for RbacRule { groups, resources, verbs } in rules {
        for group in groups {
            for resource in resources {
                unused.extend(verbs.iter().map(|verb| (verb, resource, group)));
            }
        }
    }
    for request in requests {
        let resource = resource(request);
        unused.retain(|(verb, of, group)| {
            (*verb, *of, *group) != (&request.verb, &resource, &request.group)
        });
    }
    unused.iter().map(|(verb, resource, group)| format!("{verb} {resource} {group}")).collect()
}
