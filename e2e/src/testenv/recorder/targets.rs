//! What the invariants of retention look at, read from objects as the API server sends them.
//!
//! Stated once more, and without the product: what a person would look at. Ends are read of the kinds that tests use.

use std::collections::BTreeMap;

use invariants::retention::{
    Action, Delete, End, Limits, Matching, Outcome, Owned, Policy, Rule, Target, Trip, Ttl,
};
use invariants::{Hold, Object, State};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use trainjob_api::time::Timestamp;

const TTL: &str = "lifecycle.trainjob.dev/ttl-seconds-after-finished";
const HOLD: &str = "lifecycle.trainjob.dev/hold-until";
const ORIGIN: &str = "kueue.x-k8s.io/multikueue-origin";
/// Seconds that a hold reaches where a policy does not say.
const MAXIMUM_HOLD: i64 = 2_592_000;

/// What rules look at of an object of the kind with this plural.
pub(super) fn object(plural: &str, item: &DynamicObject) -> Object {
    let metadata = &item.metadata;
    let controller = item.owner_references().iter().find(|it| it.controller == Some(true));
    Object {
        namespace: item.namespace().unwrap_or_default(),
        name: item.name_any(),
        uid: item.uid().unwrap_or_default(),
        created: metadata.creation_timestamp.as_ref().map(Timestamp::from).unwrap_or_default(),
        deleting: metadata.deletion_timestamp.as_ref().map(Timestamp::from),
        generation: metadata.generation.unwrap_or_default(),
        finalizers: item.finalizers().to_vec(),
        owner: controller.map(|owner| owner.uid.clone()),
        state: match plural {
            "namespaces" => State::Namespace(item.labels().clone()),
            "retentionpolicies" => State::Policy(Box::new(policy(false, &item.data))),
            "clusterretentionpolicies" => State::Policy(Box::new(policy(true, &item.data))),
            _ => State::Target(Box::new(target(plural, item))),
        },
    }
}

fn target(plural: &str, item: &DynamicObject) -> Target {
    let (data, annotations) = (&item.data, item.annotations());
    Target {
        resource: plural.to_owned(),
        labels: item.labels().clone(),
        end: end(plural, item),
        own_ttl: match plural {
            "jobs" | "jobsets" | "trainjobs" => seconds(data, "/spec/ttlSecondsAfterFinished"),
            _ => None,
        },
        annotation: annotations.get(TTL).map(|text| ttl(text)),
        hold: annotations
            .get(HOLD)
            .map(|text| time(&Value::from(text.as_str())).map_or(Hold::Unreadable, Hold::Until)),
        is_copy: item.labels().contains_key(ORIGIN),
    }
}

/// A number beyond the range of the field stands for its end.
fn ttl(text: &str) -> Ttl {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let most = i64::from(i32::MAX);
    let seconds = text.parse::<i64>().unwrap_or(most).min(most);
    if is_number { Ttl::Seconds(seconds) } else { Ttl::Unreadable }
}

/// How an object has ended, if it has.
fn end(plural: &str, item: &DynamicObject) -> Option<End> {
    let data = &item.data;
    let by_condition = |good: &str, bad: &str| {
        let holds = |kind: &str| {
            let conditions = data.pointer("/status/conditions")?.as_array()?;
            let is_it = |it: &&Value| text(it, "/type") == kind && text(it, "/status") == "True";
            conditions.iter().find(is_it)
        };
        let good = holds(good).map(|it| (Outcome::Succeeded, it));
        let (outcome, condition) = good.or_else(|| Some((Outcome::Failed, holds(bad)?)))?;
        Some((outcome, time(condition.get("lastTransitionTime")?)))
    };
    let by_phase = |at: &str| {
        let outcome = match text(data, "/status/phase") {
            "Succeeded" => Outcome::Succeeded,
            "Failed" | "Error" => Outcome::Failed,
            _ => return None,
        };
        Some((outcome, data.pointer(at).and_then(time)))
    };
    let (outcome, at) = match plural {
        "jobs" | "trainjobs" => by_condition("Complete", "Failed")?,
        "jobsets" => by_condition("Completed", "Failed")?,
        "pods" => {
            let (outcome, _) = by_phase("/none")?;
            (outcome, containers_ended(data))
        }
        "workflows" => {
            let is_completed = item.labels().contains_key("workflows.argoproj.io/completed");
            by_phase("/status/finishedAt").filter(|_| is_completed)?
        }
        "mpijobs" => by_condition("Succeeded", "Failed")
            .map(|(outcome, _)| (outcome, data.pointer("/status/completionTime").and_then(time)))
            .filter(|(_, at)| at.is_some())?,
        "rayjobs" => {
            let deployed = text(data, "/status/jobDeploymentStatus");
            let is_over = matches!(deployed, "Complete" | "Failed");
            let outcome = match text(data, "/status/jobStatus") {
                "SUCCEEDED" => Outcome::Succeeded,
                "STOPPED" => Outcome::Other,
                _ => Outcome::Failed,
            };
            let at = data.pointer("/status/endTime").and_then(time);
            Some((outcome, at)).filter(|_| is_over)?
        }
        "workloads" => workload_ended(data)?,
        _ => by_phase("/status/finishedAt")?,
    };
    Some(End { outcome, at: at.or_else(|| written(item)) })
}

/// How and when a Workload has ended, if it has: its job has, or Kueue has given it up.
fn workload_ended(data: &Value) -> Option<(Outcome, Option<Timestamp>)> {
    let conditions = data.pointer("/status/conditions")?.as_array()?;
    let holds = |kind: &str| {
        let is_it = |it: &&Value| text(it, "/type") == kind && text(it, "/status") == "True";
        conditions.iter().find(is_it)
    };
    let is_given_up = |evicted: &&Value| {
        data.pointer("/spec/active") == Some(&Value::Bool(false))
            && text(evicted, "/reason").starts_with("DeactivatedDueTo")
    };
    let (outcome, condition) = match holds("Finished") {
        Some(finished) => {
            let outcome = match text(finished, "/reason") {
                "Succeeded" => Outcome::Succeeded,
                "Failed" => Outcome::Failed,
                _ => Outcome::Other,
            };
            (outcome, finished)
        }
        None => (Outcome::Deactivated, holds("Evicted").filter(is_given_up)?),
    };
    Some((outcome, condition.get("lastTransitionTime").and_then(time)))
}

/// When the last container of a Pod ended, if all have.
fn containers_ended(pod: &Value) -> Option<Timestamp> {
    let ended = pod.pointer("/status/containerStatuses")?.as_array()?;
    let all = pod.pointer("/spec/containers")?.as_array()?;
    let times = ended.iter().map(|it| time(it.pointer("/state/terminated/finishedAt")?));
    let times = times.collect::<Option<Vec<_>>>()?;
    times.into_iter().max().filter(|_| ended.len() == all.len())
}

/// When somebody wrote the status last, or else anything (R12).
fn written(item: &DynamicObject) -> Option<Timestamp> {
    let writers = item.metadata.managed_fields.as_deref().unwrap_or_default();
    let of_status = writers.iter().filter(|it| it.subresource.as_deref() == Some("status"));
    let newest = of_status.filter_map(|it| it.time.as_ref()).map(Timestamp::from).max();
    newest.or_else(|| writers.iter().filter_map(|it| it.time.as_ref()).map(Timestamp::from).max())
}

fn policy(is_of_cluster: bool, data: &Value) -> Policy {
    let spec = data.get("spec").cloned().unwrap_or_default();
    let rules = spec.get("rules").and_then(Value::as_array);
    let flag = |pointer: &str| spec.pointer(pointer).and_then(Value::as_bool);
    Policy {
        is_of_cluster,
        // As tests name their kinds.
        resource: format!("{}s", text(&spec, "/target/kind").to_lowercase()),
        selector: labels(&spec, "/selector/matchLabels"),
        namespaces: namespaces(&spec),
        namespace_labels: labels(&spec, "/namespaceSelector/matchLabels"),
        enforces: text(&spec, "/mode") == "Enforce",
        priority: seconds(&spec, "/priority").and_then(|it| it.try_into().ok()).unwrap_or(0),
        rules: rules.into_iter().flatten().map(rule).collect(),
        owned: match text(&spec, "/owned") {
            "AfterOwner" => Owned::AfterOwner,
            "Any" => Owned::Any,
            _ => Owned::Skip,
        },
        allows_annotations: flag("/overrides/annotation").unwrap_or(false),
        respects_own_ttl: text(&spec, "/overrides/ownTTL") != "Ignore",
        maximum_hold: seconds(&spec, "/holds/maximumSeconds").unwrap_or(MAXIMUM_HOLD),
        limits: Limits {
            minimum: seconds(&spec, "/limits/minimumSeconds"),
            maximum: seconds(&spec, "/limits/maximumSeconds"),
            maximum_hold: seconds(&spec, "/limits/maximumHoldSeconds"),
        },
        trip: trip(data),
    }
}

/// Tests select namespaces by their names, or by labels, or by both.
fn namespaces(spec: &Value) -> Option<Vec<String>> {
    let expressions = spec.pointer("/namespaceSelector/matchExpressions")?.as_array()?;
    let values = expressions.iter().filter_map(|it| it.get("values")?.as_array());
    Some(values.flatten().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn rule(rule: &Value) -> Rule {
    let outcomes = rule.pointer("/match/outcomes").and_then(Value::as_array);
    let outcomes = outcomes.into_iter().flatten().map(|it| match it.as_str() {
        Some("Succeeded") => Outcome::Succeeded,
        Some("Failed") => Outcome::Failed,
        Some("Deactivated") => Outcome::Deactivated,
        _ => Outcome::Other,
    });
    let matching = Matching {
        outcomes: outcomes.collect(),
        labels: labels(rule, "/match/labels/matchLabels"),
    };
    let delete = match text(rule, "/delete") {
        "Owner" => Delete::Owner,
        _ => Delete::Object,
    };
    Rule { matching, action: action(rule.get("action").unwrap_or(&Value::Null)), delete }
}

fn action(action: &Value) -> Action {
    if let Some(seconds) = seconds(action, "/ttlSecondsAfterFinished") {
        return Action::Ttl(seconds);
    }
    let Some(keep_last) = action.get("keepLast") else {
        let defers = action.get("defer").is_some();
        return if defers { Action::Defer } else { Action::Keep };
    };
    let group_by = keep_last.get("groupBy").and_then(Value::as_array);
    let keys = group_by.into_iter().flatten().filter_map(Value::as_str);
    Action::KeepLast {
        count: seconds(keep_last, "/count").and_then(|it| it.try_into().ok()).unwrap_or(usize::MAX),
        group_by: keys.map(str::to_owned).collect(),
        minimum_age: seconds(keep_last, "/minimumAgeSeconds").unwrap_or(0),
        maximum_age: seconds(keep_last, "/maximumAgeSeconds"),
    }
}

fn trip(policy: &Value) -> Option<Trip> {
    let trip = policy.pointer("/status/trip").filter(|trip| !trip.is_null())?;
    let named = trip.get("namespaces").and_then(Value::as_array);
    Some(named.map_or(Trip::Everywhere, |named| {
        Trip::Namespaces(named.iter().map(|it| text(it, "/name").to_owned()).collect())
    }))
}

fn labels(value: &Value, pointer: &str) -> BTreeMap<String, String> {
    let labels = value.pointer(pointer).and_then(Value::as_object);
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    labels.into_iter().flatten().filter_map(text).collect()
}

fn seconds(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer)?.as_i64()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A time. One at or before the start of 1970 is a zero that some controllers write (R12).
fn time(value: &Value) -> Option<Timestamp> {
    let time: Time = serde_json::from_value(value.clone()).ok()?;
    Some(Timestamp::from(&time)).filter(|time| time.0 > 0)
}
