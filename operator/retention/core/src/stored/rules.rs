//! The rules of a policy.

use std::sync::Arc;

use trainjob_api::lifecycle::v1alpha1::{finished as api_finished, rule as api};

use super::{
    error::{At, StoredError},
    seconds::seconds,
    selector::selector,
};
use crate::{
    kind::GroupKind,
    outcome::Outcome,
    pattern::ReasonPattern,
    policy::{
        Decide, Delete, KeepLast, Lifetime, Match, Phases, PodsStage, PolicyError, Rule,
        RuleAction, Rules,
    },
};

/// The rules of a policy for objects of this kind.
pub(super) fn rules(target: &GroupKind, stored: &[api::Rule]) -> Result<Rules, StoredError> {
    let mut rules = Vec::new();
    for (index, rule) in stored.iter().enumerate() {
        let field = format!("spec.rules[{index}]");
        if rule.matching.is_none() && index + 1 < stored.len() {
            return Err(PolicyError::UnreachableRules).at(&field);
        }
        let matching = rule.matching.as_ref();
        let matching =
            matching.map(|it| self::matching(&format!("{field}.match"), it)).transpose()?;
        let action = action(&field, target, rule)?;
        rules.push((matching, Rule { name: rule.name.as_str().into(), action }));
    }
    Rules::new(rules).at("spec.rules")
}

fn matching(field: &str, matching: &api::Match) -> Result<Match, StoredError> {
    let api::Match { outcomes, reasons, labels } = matching;
    let outcomes = outcomes.iter().map(|outcome| self::outcome(*outcome)).collect::<Vec<_>>();
    let reasons = self::reasons(field, reasons)?;
    let labels = labels.clone().unwrap_or_default();
    let labels = selector(&format!("{field}.labels"), &labels)?;
    // A list that is given is not empty by now.
    Match::new(given(outcomes), given(reasons), labels).at(field)
}

fn given<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

/// The patterns for reasons in the field `reasons` of the field with this path.
pub(super) fn reasons(field: &str, reasons: &[String]) -> Result<Vec<ReasonPattern>, StoredError> {
    let parse = |reason: &String| ReasonPattern::parse(reason).at(&format!("{field}.reasons"));
    reasons.iter().map(parse).collect()
}

fn action(field: &str, target: &GroupKind, rule: &api::Rule) -> Result<RuleAction, StoredError> {
    let at_action = format!("{field}.action");
    let ttl_field = "ttlSecondsAfterFinished";
    let lifetime = match &rule.action {
        api::Action::Defer(api::Yes) => {
            let decides = rule.pods.is_some() || rule.delete != api::DeleteTarget::Object;
            let deferred =
                if decides { Err(PolicyError::DeferDecides) } else { Ok(RuleAction::Defer) };
            return deferred.at(field);
        }
        api::Action::TtlSecondsAfterFinished(ttl) => {
            Lifetime::Ttl(seconds(&format!("{at_action}.{ttl_field}"), *ttl)?)
        }
        api::Action::Keep(api::Yes) => Lifetime::Never,
        api::Action::KeepLast(rule) => {
            Lifetime::KeepLast(keep_last(&format!("{at_action}.keepLast"), rule)?)
        }
    };
    let delete = match rule.delete {
        api::DeleteTarget::Object => Delete::Object,
        api::DeleteTarget::Owner => Delete::Owner,
    };
    let at_pods = format!("{field}.pods");
    let pods = rule.pods.map(|pods| {
        let ttl = seconds(&format!("{at_pods}.{ttl_field}"), pods.ttl_seconds_after_finished)?;
        let phases = match pods.phases {
            api::PodPhases::Terminal => Phases::Terminal,
            api::PodPhases::All => Phases::All,
        };
        PodsStage::new((&target.group, &target.kind), ttl, phases).at(&at_pods)
    });
    Decide::new(lifetime, pods.transpose()?, delete).map(RuleAction::Decide).at(&at_pods)
}

fn keep_last(field: &str, rule: &api::KeepLast) -> Result<KeepLast, StoredError> {
    let age = |name: &str, age: u32| seconds(&format!("{field}.{name}"), age);
    let minimum = age("minimumAgeSeconds", rule.minimum_age_seconds)?;
    let maximum = rule.maximum_age_seconds.map(|it| age("maximumAgeSeconds", it)).transpose()?;
    let group_by = rule.group_by.iter().map(|key| Arc::from(key.as_str())).collect();
    KeepLast::new(rule.count.into(), group_by, minimum, maximum).at(field)
}

const fn outcome(outcome: api_finished::Outcome) -> Outcome {
    match outcome {
        api_finished::Outcome::Succeeded => Outcome::Succeeded,
        api_finished::Outcome::Failed => Outcome::Failed,
        api_finished::Outcome::Deactivated => Outcome::Deactivated,
        api_finished::Outcome::Other => Outcome::Other,
    }
}
