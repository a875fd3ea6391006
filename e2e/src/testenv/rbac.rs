//! What the chart lets a program do, permission by permission, so that a test can take one away and see that it is
//! missed.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use invariants::Request;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::testenv::cluster::Cluster;
use crate::testenv::product::{Granted, Rules, grant};
use crate::testenv::until::until_ok;
use crate::testenv::{operator, webhook};

/// How long the API server may take to hear of a role, on a busy machine.
const HEARD: Duration = Duration::from_mins(1);

/// One permission: a verb on a resource. The rules of a role are many of them, taken together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Whether it is for the whole cluster, or for the namespace of the program only.
    pub everywhere: bool,
    /// The verb.
    pub verb: String,
    /// The API group; the core group is the empty one.
    pub group: String,
    /// The plural, with a slash and the subresource where there is one.
    pub resource: String,
    /// The only objects that it is for; empty if it is for all.
    pub names: Vec<String>,
}

/// Everything that the operator may do.
pub fn of_operator() -> Result<Vec<Grant>> {
    all(operator::RULES)
}

/// Everything that the webhook may do.
pub fn of_webhook() -> Result<Vec<Grant>> {
    all(webhook::RULES)
}

/// Creates a `ServiceAccount` that may do just this, and returns its kubeconfig.
pub async fn account(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    grants: &[Grant],
) -> Result<PathBuf> {
    let rules = |everywhere: bool| {
        grants.iter().filter(|it| it.everywhere == everywhere).map(PolicyRule::from).collect()
    };
    let granted = Granted { cluster: rules(true), namespace: rules(false) };
    grant(cluster, namespace, name, &granted).await?;
    let client = cluster.client().await?;
    let user = format!("system:serviceaccount:{namespace}:{name}");
    for everywhere in [true, false] {
        if let Some(last) = grants.iter().rfind(|it| it.everywhere == everywhere) {
            in_force(&client, &user, namespace, last).await?;
        }
    }
    cluster.service_account_kubeconfig(namespace, name).await
}

impl Grant {
    /// Whether a request needs this permission.
    #[must_use]
    pub fn covers(&self, request: &Request) -> bool {
        let resource = match request.subresource.as_str() {
            "" => request.resource.clone(),
            subresource => format!("{}/{subresource}", request.resource),
        };
        // A list or a watch has its name in a selector.
        let is_named = request.name.is_empty() || self.names.is_empty();
        (&request.verb, &request.group, &resource) == (&self.verb, &self.group, &self.resource)
            && (is_named || self.names.contains(&request.name))
    }

    /// What the API server says to somebody who does not have it.
    #[must_use]
    pub fn refusal(&self) -> String {
        let Self { verb, group, resource, .. } = self;
        format!("cannot {verb} resource \"{resource}\" in API group \"{group}\"")
    }
}

impl Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, .. } = self;
        write!(f, "{verb} {resource}")?;
        if group.is_empty() { Ok(()) } else { write!(f, ".{group}") }
    }
}

impl From<&Grant> for PolicyRule {
    fn from(grant: &Grant) -> Self {
        Self {
            api_groups: Some(vec![grant.group.clone()]),
            resources: Some(vec![grant.resource.clone()]),
            verbs: vec![grant.verb.clone()],
            resource_names: (!grant.names.is_empty()).then(|| grant.names.clone()),
            ..Self::default()
        }
    }
}

/// Waits until the API server grants it: it hears of roles a moment after they were made.
async fn in_force(client: &Client, user: &str, namespace: &str, grant: &Grant) -> Result<()> {
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let (resource, subresource) = match grant.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (grant.resource.as_str(), None),
    };
    let review: SubjectAccessReview = serde_json::from_value(json!({"metadata": {}, "spec": {
        "user": user,
        "resourceAttributes": {
            "verb": grant.verb,
            "group": grant.group,
            "resource": resource,
            "subresource": subresource,
            "name": grant.names.first(),
            "namespace": namespace,
        },
    }}))?;
    until_ok(format!("{user} may {grant}"), HEARD, || async {
        let answer = api.create(&PostParams::default(), &review).await?;
        ensure!(answer.status.is_some_and(|status| status.allowed), "it may not yet");
        Ok(())
    })
    .await
}

fn all(rules: Rules) -> Result<Vec<Grant>> {
    let Granted { cluster, namespace } = rules.read()?;
    let places = [(true, cluster), (false, namespace)];
    Ok(places
        .into_iter()
        .flat_map(|(everywhere, rules)| rules.into_iter().map(move |rule| (everywhere, rule)))
        .flat_map(|(everywhere, rule)| apart(everywhere, &rule))
        .collect())
}

fn apart(everywhere: bool, rule: &PolicyRule) -> Vec<Grant> {
    let mut grants = Vec::new();
    for group in rule.api_groups.iter().flatten() {
        for resource in rule.resources.iter().flatten() {
            grants.extend(rule.verbs.iter().map(|verb| Grant {
                everywhere,
                verb: verb.clone(),
                group: group.clone(),
                resource: resource.clone(),
                names: rule.resource_names.clone().unwrap_or_default(),
            }));
        }
    }
    grants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_every_combination_of_what_it_lists() {
        let rule: PolicyRule = serde_json::from_value(json!({
            "apiGroups": ["", "g"], "resources": ["a", "b/status"], "verbs": ["get", "patch"],
            "resourceNames": ["n"],
        }))
        .unwrap();
        let grants = apart(false, &rule);
        let texts: Vec<_> = grants.iter().map(ToString::to_string).collect();
        let core = ["get a", "patch a", "get b/status", "patch b/status"];
        let group = ["get a.g", "patch a.g", "get b/status.g", "patch b/status.g"];
        assert_eq!(texts, [core, group].concat());
        assert!(grants.iter().all(|grant| grant.names == ["n"] && !grant.everywhere));
        assert_eq!(PolicyRule::from(&grants[7]).resources, Some(vec!["b/status".to_owned()]));
    }

    /// Whoever reads Secrets reads all of them: RBAC knows no labels.
    #[test]
    fn no_program_may_read_secrets_but_its_own_certificate() {
        for (grants, expected) in [(of_operator(), 0), (of_webhook(), 3)] {
            let grants = grants.unwrap();
            let about_secrets = |it: &&Grant| ["secrets", "*"].contains(&it.resource.as_str());
            let reads: Vec<_> =
                grants.iter().filter(about_secrets).filter(|it| it.verb != "create").collect();
            let read_or_watch = ["get", "list", "watch"];
            let count = reads.iter().filter(|it| read_or_watch.contains(&&*it.verb)).count();
            assert_eq!(count, expected, "{reads:?}");
            for permission in reads {
                assert!(!permission.everywhere, "{permission} everywhere");
                assert_eq!(permission.names, [webhook::SECRET], "{permission}");
                assert_eq!(permission.group, "", "{permission}");
            }
        }
    }

    #[test]
    fn no_rule_is_a_wildcard() {
        for permission in [of_operator().unwrap(), of_webhook().unwrap()].concat() {
            let parts = [&permission.verb, &permission.group, &permission.resource];
            assert!(!parts.iter().any(|part| part.contains('*')), "{permission}");
        }
    }
}
