//! Reads from the API server what decides about an object.
//!
//! Everything is listed, also what there is one of: the engine has the right to list and mostly not that to get.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    sync::Arc,
};

use kube::Client;
use serde::Deserialize;
use trainjob_api::time::Timestamp;
use trainjob_core::facts::ObjectKey;
use trainjob_engine::{clock::Clock, error::RequestError};
use trainjob_retention_core::{
    facts::{Facts, Reader},
    finished::{Definition, Definitions},
    interner::Interner,
    keep_last::{Candidate, Groups},
    kind::{BuiltIn, GroupKind},
    labels::Labels,
    metadata::Metadata,
    plan::Answers,
    policies::{NamespacePolicies, Policies},
    policy::{Namespace, PolicyReference},
    stored::{self, PolicyKind},
    uid::Uid,
};

use super::{arguments::Asked, case::Case, error::ExplainError, lists};
use crate::{
    config::{Config, Target},
    discovery::{Answer, ask, kind::Kind},
    remover::{collection, owners::plural},
    status::SeenPolicy,
};

#[derive(Deserialize)]
struct Bare {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Kept {
    metadata: KeptMetadata,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct KeptMetadata {
    finalizers: Option<Vec<String>>,
    annotations: Option<BTreeMap<String, String>>,
}

/// The API server, and what the configuration of the engine says.
pub(super) struct Cluster {
    client: Client,
    targets: Vec<Target>,
    excluded: BTreeSet<Arc<str>>,
    is_configured: bool,
}

/// The policies for a kind, and what their statuses say.
struct Found {
    policies: Policies,
    not_understood: Vec<(PolicyReference, String)>,
    seen: BTreeMap<Uid, SeenPolicy>,
}

impl Cluster {
    /// Without a configuration, any kind that is built in may be asked about.
    pub(super) fn new(client: Client, config: &Config, is_configured: bool) -> Self {
        let built_in = |kind: BuiltIn| Target {
            api_group: kind.group().to_owned(),
            kind: kind.kind().to_owned(),
            resource: plural(kind).to_owned(),
            pods: false,
            owner_delete: false,
        };
        let targets =
            if is_configured { config.targets.clone() } else { BuiltIn::ALL.map(built_in).into() };
        let own = env::var("POD_NAMESPACE").ok().map(Arc::from);
        let excluded = config.excluded_namespaces.iter().cloned().chain(own).collect();
        Self { client, targets, excluded, is_configured }
    }

    /// For further questions.
    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    /// Reads all that decides about an object.
    pub(super) async fn read(&self, asked: &Asked, clock: &Clock) -> Result<Case, ExplainError> {
        let target = self.target(&asked.kind)?;
        let kind = GroupKind { group: (*target.api_group).into(), kind: (*target.kind).into() };
        let key = ObjectKey::new(asked.namespace.as_str(), asked.name.as_str());
        let Found { policies, not_understood, seen } = self.policies(&kind, &key.namespace).await?;
        let path = self.path(target, &key.namespace).await?;
        let named = format!("{} {key}", target.kind);
        let mut interner = Interner::default();
        let namespace = self.namespace(&key.namespace, &policies, &mut interner).await?;
        let text = lists::one(&self.client, &path, &key.name).await.map_err(cannot_read(&named))?;
        let text = text.ok_or_else(|| ExplainError::NoObject(named.clone()))?;
        let keys = policies.label_keys().clone();
        let reader = Reader::new(kind.built_in(), definitions(&kind, &policies), keys);
        let finished = reader.read(text.get(), &mut interner);
        let finished =
            finished.map_err(|source| ExplainError::Unreadable { what: named, source })?;
        let kept = serde_json::from_str::<Kept>(text.get()).ok().map(|kept| kept.metadata);
        let KeptMetadata { finalizers, annotations } = kept.unwrap_or_default();
        let now = clock.now();
        let mut case = Case {
            kind,
            key,
            now: now.reached().unwrap_or(now.stamp()),
            namespace,
            policies,
            not_understood,
            seen,
            facts: finished.map(|finished| finished.facts),
            finalizers: finalizers.unwrap_or_default(),
            annotations: annotations.unwrap_or_default(),
            groups: Groups::default(),
            is_configured: self.is_configured,
        };
        let there = case.policies.in_namespace(&case.namespace);
        let is_ranked = |facts: &Facts| !candidates(&there, facts, case.now).is_empty();
        if case.facts.as_ref().is_some_and(is_ranked) {
            let all = lists::all(&self.client, &path).await;
            for text in all.map_err(cannot_read(&target.resource))? {
                let finished = reader.read(text.get(), &mut interner).ok().flatten();
                let candidates = finished.map(|it| candidates(&there, &it.facts, case.now));
                candidates.iter().flatten().for_each(|candidate| case.groups.enter(candidate));
            }
        }
        Ok(case)
    }

    /// The target that somebody calls so: by its kind or its plural, with or without its group.
    fn target(&self, name: &str) -> Result<&Target, ExplainError> {
        let is_it = |target: &&Target| {
            [&target.kind, &target.resource].into_iter().any(|it| {
                let full = format!("{it}.{}", target.api_group);
                name.eq_ignore_ascii_case(it) || name.eq_ignore_ascii_case(&full)
            })
        };
        self.targets.iter().find(is_it).ok_or_else(|| {
            let known: Vec<_> = self.targets.iter().map(|target| target.kind.as_str()).collect();
            ExplainError::NoTarget { kind: name.to_owned(), known: known.join(", ") }
        })
    }

    async fn path(&self, target: &Target, namespace: &str) -> Result<String, ExplainError> {
        let Target { api_group, kind, resource, .. } = target;
        let served = ask::ask(&self.client, Kind { group: api_group, kind, resource }).await;
        match served.map_err(cannot_read(kind))? {
            Answer::Served(version) => {
                Ok(collection(api_group, &version, resource).in_namespace(namespace).to_string())
            }
            Answer::Absent(absence) => {
                Err(ExplainError::NotServed { kind: kind.clone(), absence: absence.to_string() })
            }
        }
    }

    /// The policies for a kind that may be about a namespace.
    async fn policies(&self, kind: &GroupKind, namespace: &str) -> Result<Found, ExplainError> {
        let mut definitions = Definitions::default();
        let (mut understood, mut others) = (Vec::new(), Vec::new());
        let (mut not_understood, mut seen) = (Vec::new(), BTreeMap::new());
        for (policy_kind, plural) in [
            (PolicyKind::Namespaced, "retentionpolicies"),
            (PolicyKind::Cluster, "clusterretentionpolicies"),
        ] {
            let all = collection("lifecycle.trainjob.dev", "v1alpha1", plural);
            let path = match policy_kind {
                PolicyKind::Namespaced => all.in_namespace(namespace),
                PolicyKind::Cluster => all,
            };
            let texts = lists::all(&self.client, &path.to_string()).await;
            let texts = texts.map_err(cannot_read(plural))?;
            for text in texts {
                match stored::read(policy_kind, text.get(), &mut definitions) {
                    Ok(stored) if stored.target == *kind => {
                        seen.insert(stored.policy.uid.clone(), SeenPolicy::read(text.get()));
                        understood.push(stored.policy);
                    }
                    Err(other) if other.concerns(kind) => {
                        not_understood.push((reference(text.get()), other.error.to_string()));
                        others.push(other.policy);
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        }
        let policies = Policies::new(kind.built_in(), understood, others);
        Ok(Found { policies, not_understood, seen })
    }

    async fn namespace(
        &self,
        name: &Arc<str>,
        policies: &Policies,
        interner: &mut Interner,
    ) -> Result<Namespace, ExplainError> {
        let what = format!("namespace {name}");
        let text = lists::one(&self.client, "/api/v1/namespaces", name).await;
        let text = text.map_err(cannot_read(&what))?;
        let bare = text.and_then(|text| serde_json::from_str::<Bare>(text.get()).ok());
        let Bare { metadata } = bare.ok_or(ExplainError::NoObject(what))?;
        Ok(Namespace {
            name: Arc::clone(name),
            labels: Labels::read(&metadata.labels, policies.namespace_label_keys(), interner),
            terminating: metadata.deletion_timestamp.is_some(),
            excluded: self.excluded.contains(name),
        })
    }
}

/// What finished means to some policy, or by itself where there is none.
fn definitions(kind: &GroupKind, policies: &Policies) -> Vec<Arc<Definition>> {
    let mut definitions = policies.definitions();
    let built_in = kind.built_in().map(|kind| Arc::new(Definition::BuiltIn(kind)));
    definitions.extend(built_in.filter(|built_in| !definitions.contains(built_in)));
    definitions
}

/// The places of an object in groups of which a rule keeps the last.
fn candidates(there: &NamespacePolicies, facts: &Facts, now: Timestamp) -> Vec<Candidate> {
    let governed = there.governing(facts).into_iter().chain(there.audited(facts));
    governed.filter_map(|governed| governed.candidate(&Answers::default(), now)).collect()
}

/// Which policy this is.
fn reference(text: &str) -> PolicyReference {
    let bare = serde_json::from_str::<Bare>(text);
    let Metadata { namespace, name, .. } = bare.map(|bare| bare.metadata).unwrap_or_default();
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    PolicyReference { namespace: namespace.map(Arc::from), name: name.into() }
}

fn cannot_read(what: &str) -> impl FnOnce(RequestError) -> ExplainError {
    let what = what.to_owned();
    move |source| ExplainError::Read { what, source }
}
