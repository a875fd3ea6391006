//! What a request is about, as its method and its path say.

use http::{Method, Uri};

/// The kinds that a program sends requests about: the plural of each, as in a path, and its name.
pub type Kinds = &'static [(&'static str, &'static str)];

/// What is asked for, in the words of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
}

impl Verb {
    pub(super) const ALL: [Self; 7] =
        [Self::Get, Self::List, Self::Watch, Self::Create, Self::Update, Self::Patch, Self::Delete];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

/// The place of a kind in the list of those that a program knows; the last one is for all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KindNumber(pub(super) usize);

impl KindNumber {
    pub(super) fn name(self, kinds: Kinds) -> &'static str {
        kinds.get(self.0).map_or("other", |(_, name)| name)
    }
}

/// What a request is about.
pub(super) fn of(kinds: Kinds, method: &Method, uri: &Uri) -> (Verb, KindNumber) {
    let (plural, is_named) = resource(uri.path());
    let number = kinds.iter().position(|(known, _)| Some(*known) == plural);
    (verb(method, uri.query(), is_named), KindNumber(number.unwrap_or(kinds.len())))
}

fn verb(method: &Method, query: Option<&str>, is_named: bool) -> Verb {
    match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ if is_watch(query) => Verb::Watch,
        _ if is_named => Verb::Get,
        _ => Verb::List,
    }
}

/// Whether a GET with this query is a watch.
pub(crate) fn is_watch(query: Option<&str>) -> bool {
    let is_watch = |pair| matches!(pair, "watch=true" | "watch=1");
    query.is_some_and(|query| query.split('&').any(is_watch))
}

/// The plural in a path, and whether a name follows it. What is no path of a resource has neither.
fn resource(path: &str) -> (Option<&str>, bool) {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let prefixes = match parts.next() {
        Some("api") => 1,
        Some("apis") => 2,
        _ => return (None, true),
    };
    let mut parts = parts.skip(prefixes);
    let (first, second, third) = (parts.next(), parts.next(), parts.next());
    match (first, third) {
        (Some("namespaces"), Some(plural)) => (Some(plural), parts.next().is_some()),
        _ => (first, second.is_some() || first.is_none()),
    }
}
