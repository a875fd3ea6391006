//! Objects that policies are about, and policies, as far as invariants look at them.

use std::collections::BTreeMap;

use trainjob_api::time::Timestamp;

/// An object of a kind that policies are about. What it has in common with all objects is in
/// [`Object`](crate::Object), whose `owner` is the UID of its controller.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The plural of its kind, as in paths.
    pub resource: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// How it has ended, if it has.
    pub end: Option<End>,
    /// The TTL by which the kind's controller deletes it, in seconds.
    pub own_ttl: Option<i64>,
    /// The TTL that its annotation asks for.
    pub annotation: Option<Ttl>,
    /// The hold that its annotation asks for.
    pub hold: Option<Hold>,
    /// Whether it is a copy that MultiKueue made.
    pub is_copy: bool,
}

/// How an object has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// How.
    pub outcome: Outcome,
    /// When; `None` if nothing tells.
    pub at: Option<Timestamp>,
}

/// The outcome of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It ended otherwise.
    Other,
    /// It is a Workload that Kueue has deactivated.
    Deactivated,
}

/// What an annotation asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// So many seconds.
    Seconds(i64),
    /// It cannot be read.
    Unreadable,
}

/// A policy. What it has in common with all objects is in [`Object`](crate::Object).
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of the API, and any may be set without the others"
)]
pub struct Policy {
    /// Whether it is a `ClusterRetentionPolicy`.
    pub is_of_cluster: bool,
    /// The plural of the kind that it is about.
    pub resource: String,
    /// The labels that it selects by.
    pub selector: BTreeMap<String, String>,
    /// The only namespaces that it is about; `None`: all but those that are excluded.
    pub namespaces: Option<Vec<String>>,
    /// The labels of the namespaces that it is about; empty: any.
    pub namespace_labels: BTreeMap<String, String>,
    /// Whether its mode is Enforce.
    pub enforces: bool,
    /// Its priority.
    pub priority: i32,
    /// Its rules.
    pub rules: Vec<Rule>,
    /// What it does about objects that have a controller.
    pub owned: Owned,
    /// Whether objects may bring a TTL in an annotation.
    pub allows_annotations: bool,
    /// Whether the TTL of the kind comes before the rules.
    pub respects_own_ttl: bool,
    /// How far holds reach beyond due, in seconds.
    pub maximum_hold: i64,
    /// What it bounds.
    pub limits: Limits,
    /// Where it has tripped, by its stored status.
    pub trip: Option<Trip>,
}

/// Bounds of a cluster policy, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// The least value.
    pub minimum: Option<i64>,
    /// The largest value.
    pub maximum: Option<i64>,
    /// How far holds reach.
    pub maximum_hold: Option<i64>,
}

/// Where a policy has tripped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trip {
    /// Everywhere.
    Everywhere,
    /// In these namespaces.
    Namespaces(Vec<String>),
}

/// What a policy does about objects that have a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owned {
    /// They are left alone.
    Skip,
    /// They go once it has finished or is gone.
    AfterOwner,
    /// They are deleted regardless.
    Any,
}

/// A rule of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What it matches.
    pub matching: Matching,
    /// What it says.
    pub action: Action,
    /// What is deleted by it.
    pub delete: Delete,
}

/// What a rule deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delete {
    /// The object.
    Object,
    /// The owner that controls the object.
    Owner,
}

/// What a rule matches: all that is given must fit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matching {
    /// The outcomes; empty: all.
    pub outcomes: Vec<Outcome>,
    /// The labels.
    pub labels: BTreeMap<String, String>,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Delete so many seconds after the start.
    Ttl(i64),
    /// Keep for ever.
    Keep,
    /// The next policy decides.
    Defer,
    /// Keep the newest `count` of each group.
    KeepLast {
        /// How many.
        count: usize,
        /// The labels that make a group.
        group_by: Vec<String>,
        /// No object goes sooner after its start, in seconds.
        minimum_age: i64,
        /// Every object goes so many seconds after its start.
        maximum_age: Option<i64>,
    },
}

/// A hold that an annotation asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Until this instant.
    Until(Timestamp),
    /// The annotation names no instant.
    Unreadable,
}
