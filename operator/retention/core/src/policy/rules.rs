//! The rules of a policy: the first that fits an object says what becomes of it.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    error::PolicyError,
    rule::{Decide, Lifetime, Match},
};
use crate::{facts::Finish, labels::Labels};

/// How many rules a policy may have.
const MOST_RULES: usize = 32;
/// How long a DNS label may be.
const LONGEST_NAME: usize = 63;

/// The rules of a policy. The last fits everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    before: Box<[(Match, Rule)]>,
    last: Rule,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name, a DNS label, unique among the rules of its policy.
    pub name: Arc<str>,
    /// What it says.
    pub action: RuleAction,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleAction {
    /// Nothing: the next policy decides.
    Defer,
    /// What becomes of the object.
    Decide(Decide),
}

impl Rules {
    /// Takes rules in their order.
    ///
    /// # Errors
    ///
    /// If there are none or too many, their names are not unique or no DNS labels, or the last one does not fit
    /// everything.
    pub fn new(rules: Vec<(Option<Match>, Rule)>) -> Result<Self, PolicyError> {
        if !(1..=MOST_RULES).contains(&rules.len()) {
            return Err(PolicyError::RuleCount(rules.len()));
        }
        let mut names = BTreeSet::new();
        for (_, rule) in &rules {
            if !is_name(&rule.name) {
                return Err(PolicyError::RuleName(rule.name.to_string()));
            }
            if !names.insert(Arc::clone(&rule.name)) {
                return Err(PolicyError::SameRuleName(rule.name.to_string()));
            }
        }
        let mut before = Vec::new();
        for (matches, rule) in rules {
            let Some(matches) = matches else {
                // Rules after it, if there are any, say nothing.
                return Ok(Self { before: before.into(), last: rule });
            };
            before.push((matches, rule));
        }
        Err(PolicyError::LastRuleMatches)
    }

    /// The rules in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.before.iter().map(|(_, rule)| rule).chain([&self.last])
    }

    /// The first rule that fits a finished object.
    #[must_use]
    pub fn first(&self, finish: &Finish, labels: &Labels) -> &Rule {
        let fitting = self.before.iter().find(|(matches, _)| matches.fits(finish, labels));
        fitting.map_or(&self.last, |(_, rule)| rule)
    }

    /// The keys of the labels that they read.
    pub fn label_keys(&self) -> impl Iterator<Item = &Arc<str>> {
        let grouped = self.iter().filter_map(|rule| match &rule.action {
            RuleAction::Decide(decide) => Some(decide.lifetime()),
            RuleAction::Defer => None,
        });
        let grouped = grouped.filter_map(|lifetime| match lifetime {
            Lifetime::KeepLast(keep_last) => Some(keep_last.group_by()),
            Lifetime::Ttl(_) | Lifetime::Never => None,
        });
        self.before.iter().flat_map(|(matches, _)| matches.label_keys()).chain(grouped.flatten())
    }
}

fn is_name(name: &str) -> bool {
    let is_outer = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=LONGEST_NAME).contains(&name.len())
        && name.chars().all(|c| is_outer(c) || c == '-')
        && name.starts_with(is_outer)
        && name.ends_with(is_outer)
}
