//! What the API server stores here: Jobs, their owners, namespaces and policies, and their JSON texts.
//!
//! They are plain values, so that the judge can apply the rules of `docs/retention.md` to them without the program's code.
//! The program is told of them as texts, as a watch tells it.

use std::{fmt::Write as _, sync::Arc};

use trainjob_api::time::Timestamp;
use trainjob_core::facts::ObjectKey;
use trainjob_retention::cluster_state::PolicyKey;
use trainjob_retention_core::{breaker::Record, stored::PolicyKind};

/// The namespaces that there can be.
pub const NAMESPACES: [&str; 4] = ["a", "b", "c", "kube-system"];
/// The one that policies leave alone unless they name it or live there (R37).
pub const EXCLUDED: usize = 3;

/// How a Job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// `Complete`.
    Succeeded,
    /// `Failed`.
    Failed,
}

/// The TTL that an annotation asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// So many seconds.
    Seconds(i64),
    /// It cannot be read.
    Unreadable,
}

/// A Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Where it is, by the index in [`NAMESPACES`].
    pub namespace: usize,
    /// Its name.
    pub name: u32,
    /// Which of all objects of the name.
    pub uid: u64,
    /// Its version.
    pub version: u64,
    /// When it was created, in seconds.
    pub created: i64,
    /// How and when it ended.
    pub end: Option<(Outcome, i64)>,
    /// The label `team`.
    pub team: Option<u8>,
    /// The label `experiment`.
    pub experiment: Option<u8>,
    /// The TTL that it asks for by annotation.
    pub wish: Option<Wish>,
    /// Until when it is to be held, by annotation.
    pub hold: Option<i64>,
    /// `spec.ttlSecondsAfterFinished`.
    pub own_ttl: Option<i64>,
    /// Its controller owner: the UID of a JobSet.
    pub owner: Option<u64>,
    /// Whether a finalizer keeps it.
    pub finalizer: bool,
    /// Whether it is being deleted.
    pub terminating: bool,
}

impl Job {
    /// Its namespace and name.
    #[must_use]
    pub fn key(&self) -> (usize, u32) {
        (self.namespace, self.name)
    }

    /// From when on it is old (R30).
    #[must_use]
    pub fn start(&self) -> Option<i64> {
        self.end.map(|(_, at)| at.max(self.created))
    }

    /// As a watch shows it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(600);
        let Self { name, uid, version, .. } = self;
        let created = time(self.created);
        let namespace = NAMESPACES.get(self.namespace).copied().unwrap_or_default();
        // A text cannot fail to be written.
        let _ = write!(
            text,
            r#"{{"metadata":{{"name":"j{name}","namespace":"{namespace}","uid":"u{uid:08}","resourceVersion":"{version}","creationTimestamp":"{created}","#
        );
        if self.terminating {
            let _ = write!(text, r#""deletionTimestamp":"{created}","#);
        }
        if let Some(owner) = self.owner {
            let _ = write!(
                text,
                r#""ownerReferences":[{{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"s{owner}","uid":"s{owner}","controller":true}}],"#
            );
        }
        let labels = [("team", self.team), ("experiment", self.experiment)];
        let labels =
            labels.iter().filter_map(|(key, value)| Some(format!("\"{key}\":\"{}\"", (*value)?)));
        let wish = self.wish.map(|wish| match wish {
            Wish::Seconds(seconds) => seconds.to_string(),
            Wish::Unreadable => "7d".to_owned(),
        });
        let hold = self.hold.map(time);
        let annotations = [("ttl-seconds-after-finished", wish), ("hold-until", hold)];
        let annotations = annotations.into_iter().filter_map(|(key, value)| {
            Some(format!("\"lifecycle.trainjob.dev/{key}\":\"{}\"", value?))
        });
        let (labels, annotations) = (join(labels), join(annotations));
        let _ =
            write!(text, r#""labels":{{{labels}}},"annotations":{{{annotations}}}}},"spec":{{"#);
        if let Some(seconds) = self.own_ttl {
            let _ = write!(text, r#""ttlSecondsAfterFinished":{seconds}"#);
        }
        text.push('}');
        if let Some((outcome, at)) = self.end {
            let (kind, at) =
                (if outcome == Outcome::Failed { "Failed" } else { "Complete" }, time(at));
            let _ = write!(
                text,
                r#","status":{{"conditions":[{{"type":"{kind}","status":"True","reason":"R","lastTransitionTime":"{at}"}}]}}"#
            );
        }
        text.push('}');
        text
    }
}

/// The name of a Job, as the program names it.
#[must_use]
pub fn object_key((namespace, name): (usize, u32)) -> ObjectKey {
    let namespace = NAMESPACES.get(namespace).copied().unwrap_or_default();
    ObjectKey::new(namespace, format!("j{name}").as_str())
}

/// The Job that the program names so.
#[must_use]
pub fn job_key(key: &ObjectKey) -> Option<(usize, u32)> {
    let namespace = NAMESPACES.iter().position(|name| *name == &**key.namespace)?;
    Some((namespace, key.name.strip_prefix('j')?.parse().ok()?))
}

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// The label `env`.
    pub env: u8,
    /// Whether it is being deleted.
    pub terminating: bool,
}

/// What a rule does with the objects that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// `ttlSecondsAfterFinished`.
    Ttl(i64),
    /// `keep`.
    Keep,
    /// `defer`.
    Defer,
    /// `keepLast`.
    KeepLast {
        /// How many of each group.
        count: u16,
        /// Whether by `experiment`.
        grouped: bool,
        /// `minimumAgeSeconds`.
        minimum: i64,
        /// `maximumAgeSeconds`.
        maximum: Option<i64>,
    },
}

/// A rule of a policy. The last of each matches everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The outcome that it matches.
    pub outcome: Option<Outcome>,
    /// What it does.
    pub action: Action,
}

/// `owned`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owned {
    /// Objects that an owner controls are left alone.
    Skip,
    /// They go after it.
    AfterOwner,
    /// They go regardless.
    Any,
}

/// The bounds of a cluster policy, each in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// `minimumSeconds`.
    pub minimum: Option<i64>,
    /// `maximumSeconds`.
    pub maximum: Option<i64>,
    /// `maximumHoldSeconds`.
    pub hold: Option<i64>,
}

/// What a policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of the API, and any may be set without the others"
)]
pub struct Spec {
    /// Whether it deletes.
    pub enforces: bool,
    /// `priority`.
    pub priority: i32,
    /// `selector`: this value of `team`.
    pub team: Option<u8>,
    /// `namespaceSelector`: this value of `env`.
    pub env: Option<u8>,
    /// `rules`.
    pub rules: Vec<Rule>,
    /// `overrides.annotation`.
    pub annotation: bool,
    /// Whether `overrides.ownTTL` is `Respect`.
    pub respects_own_ttl: bool,
    /// `holds.maximumSeconds`.
    pub hold: i64,
    /// `limits`.
    pub limits: Limits,
    /// `owned`.
    pub owned: Owned,
    /// `deletesPerSecond`; 0 is no limit.
    pub rate: u32,
    /// `breaker.maxCount`.
    pub max_count: u32,
    /// A field that the program does not know.
    pub unknown: bool,
}

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Its namespace, by its index; `None`: it is of the cluster.
    pub namespace: Option<usize>,
    /// Its name.
    pub name: u32,
    /// Which of all policies of the name.
    pub uid: u64,
    /// Its version.
    pub version: u64,
    /// How often its spec was written.
    pub generation: i64,
    /// When it was created, in seconds.
    pub created: i64,
    /// What it says.
    pub spec: Spec,
    /// The trip that somebody acknowledged.
    pub acknowledged: Option<String>,
    /// What its status says for the breaker.
    pub record: Option<Record>,
}

impl Policy {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> PolicyKind {
        match self.namespace {
            Some(_) => PolicyKind::Namespaced,
            None => PolicyKind::Cluster,
        }
    }

    /// As the program names it.
    #[must_use]
    pub fn key(&self) -> PolicyKey {
        let namespace = self.namespace.and_then(|namespace| NAMESPACES.get(namespace));
        let namespace: Arc<str> = namespace.copied().unwrap_or_default().into();
        PolicyKey { kind: self.kind(), namespace, name: format!("p{}", self.name).into() }
    }

    /// As a watch shows it, without its status.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { name, uid, version, generation, spec, .. } = self;
        let created = time(self.created);
        let mut metadata = format!(
            r#""name":"p{name}","uid":"p{uid:08}","resourceVersion":"{version}","generation":{generation},"creationTimestamp":"{created}""#
        );
        if let Some(namespace) = self.namespace.and_then(|namespace| NAMESPACES.get(namespace)) {
            let _ = write!(metadata, r#","namespace":"{namespace}""#);
        }
        if let Some(id) = &self.acknowledged {
            let _ = write!(
                metadata,
                r#","annotations":{{"lifecycle.trainjob.dev/acknowledge-trip":"{id}"}}"#
            );
        }
        format!(
            r#"{{"metadata":{{{metadata}}},"spec":{{{}}}}}"#,
            spec.text(self.namespace.is_none())
        )
    }
}

impl Spec {
    fn text(&self, of_cluster: bool) -> String {
        let mut fields = vec![
            r#""target":{"apiGroup":"batch","kind":"Job"}"#.to_owned(),
            format!(r#""mode":"{}""#, if self.enforces { "Enforce" } else { "Audit" }),
            format!(r#""priority":{}"#, self.priority),
            format!(r#""deletesPerSecond":{}"#, self.rate),
            format!(r#""breaker":{{"maxCount":{}}}"#, self.max_count),
            format!(r#""holds":{{"maximumSeconds":{}}}"#, self.hold),
        ];
        let owned = match self.owned {
            Owned::Skip => "Skip",
            Owned::AfterOwner => "AfterOwner",
            Owned::Any => "Any",
        };
        fields.push(format!(r#""owned":"{owned}""#));
        let own_ttl = if self.respects_own_ttl { "Respect" } else { "Ignore" };
        let annotation = self.annotation;
        fields.push(format!(r#""overrides":{{"annotation":{annotation},"ownTTL":"{own_ttl}"}}"#));
        if let Some(team) = self.team {
            fields.push(format!(r#""selector":{{"matchLabels":{{"team":"{team}"}}}}"#));
        }
        if let Some(env) = self.env.filter(|_| of_cluster) {
            fields.push(format!(r#""namespaceSelector":{{"matchLabels":{{"env":"{env}"}}}}"#));
        }
        let Limits { minimum, maximum, hold } = self.limits;
        let limits = [
            ("minimumSeconds", minimum),
            ("maximumSeconds", maximum),
            ("maximumHoldSeconds", hold),
        ];
        let limits = join(
            limits.iter().filter_map(|(name, value)| Some(format!("\"{name}\":{}", (*value)?))),
        );
        if of_cluster && !limits.is_empty() {
            fields.push(format!(r#""limits":{{{limits}}}"#));
        }
        if self.unknown {
            fields.push(r#""later":1"#.to_owned());
        }
        let rules = self.rules.iter().enumerate().map(|(index, rule)| rule.text(index));
        fields.push(format!(r#""rules":[{}]"#, join(rules)));
        fields.join(",")
    }
}

impl Rule {
    fn text(&self, index: usize) -> String {
        let matched = self.outcome.map_or_else(String::new, |outcome| {
            format!(r#","match":{{"outcomes":["{outcome:?}"]}}"#)
        });
        let action = match self.action {
            Action::Ttl(seconds) => format!(r#""ttlSecondsAfterFinished":{seconds}"#),
            Action::Keep => r#""keep":true"#.to_owned(),
            Action::Defer => r#""defer":true"#.to_owned(),
            Action::KeepLast { count, grouped, minimum, maximum } => {
                let group = if grouped { r#","groupBy":["experiment"]"# } else { "" };
                let maximum = maximum.map_or_else(String::new, |maximum| {
                    format!(r#","maximumAgeSeconds":{maximum}"#)
                });
                format!(
                    r#""keepLast":{{"count":{count},"minimumAgeSeconds":{minimum}{group}{maximum}}}"#
                )
            }
        };
        format!(r#"{{"name":"r{index}"{matched},"action":{{{action}}}}}"#)
    }
}

fn join(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(",")
}

fn time(seconds: i64) -> String {
    Timestamp(seconds).to_string()
}
