//! Jobs in namespace `a`, and what follows for them.

mod audit;
mod deletions;
mod evaluations;
mod flows;
mod keep_last;
mod notices;
mod numbers;
mod owners;
mod pods;
mod release;
mod rights;
mod standby;
mod still_wanted;
mod surveys;

use std::{slice, time::Duration};

use serde_json::{Value, json};
use trainjob_api::time::Timestamp;
use trainjob_retention_core::{
    breaker::{Record, Trip},
    finished::Definitions,
    metadata::Metadata,
    plan::{FoundOwner, OwnerAnswer},
    policy::Propagation,
    stored::{self, StoredPolicy},
    uid::Uid,
    wish::HoldWish,
};

use super::*;

/// When all Jobs finish.
const END: Timestamp = Timestamp(1_795_329_000);
const JOBS: TargetId = TargetId(0);

/// So many seconds after the end.
fn at(seconds: i64) -> Now {
    Now::at(END.plus(seconds))
}

fn job() -> Target {
    let (api_group, kind, resource) = ("batch".to_owned(), "Job".to_owned(), "jobs".to_owned());
    Target { api_group, kind, resource, pods: false, owner_delete: false }
}

fn key(name: &str) -> Key {
    let object = ObjectKey::new("a", name);
    Key { target: JOBS, object }
}

/// A policy for the Jobs of namespace `a` with one rule, without a rate, changed in this way.
fn policy(action: &Value, change: &Value) -> StoredPolicy {
    let mut spec = json!({
        "target": {"apiGroup": "batch", "kind": "Job"},
        "mode": "Enforce",
        "propagation": "Background",
        "deletesPerSecond": 0,
        "rules": [{"name": "all", "action": action}],
    });
    let change = change.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(change);
    let policy = json!({"spec": spec, "metadata": {
        "name": "p", "namespace": "a", "uid": "p", "generation": 1,
        "creationTimestamp": "2026-11-22T06:00:00Z",
    }});
    stored::read(PolicyKind::Namespaced, &policy.to_string(), &mut Definitions::default()).unwrap()
}

fn ttl(seconds: i64) -> StoredPolicy {
    policy(&json!({"ttlSecondsAfterFinished": seconds}), &json!({}))
}

fn audited(seconds: i64) -> StoredPolicy {
    policy(&json!({"ttlSecondsAfterFinished": seconds}), &json!({"mode": "Audit"}))
}

fn keep_last(count: i64, label: &str) -> StoredPolicy {
    policy(&json!({"keepLast": {"count": count, "groupBy": [label]}}), &json!({}))
}

/// The text of a Job in this version that has finished so many seconds after the others.
fn finished(name: &str, version: u32, after: i64) -> String {
    let time = END.plus(after).to_string();
    json!({
        "metadata": {
            "name": name, "namespace": "a", "uid": format!("uid of {name}"),
            "resourceVersion": version.to_string(), "creationTimestamp": "2026-11-22T06:00:00Z",
            "labels": {"team": "x"},
        },
        "status": {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": time}]},
    })
    .to_string()
}

fn held(name: &str, version: u32, until: i64) -> String {
    let mut object: Value = serde_json::from_str(&finished(name, version, 0)).unwrap();
    let until = END.plus(until).to_string();
    object["metadata"]["annotations"] = json!({"lifecycle.trainjob.dev/hold-until": until});
    object.to_string()
}

/// A finished Job that a JobSet controls.
fn of_job_set(name: &str) -> String {
    of_job_set_after(name, 0)
}

/// The same, finished so many seconds after the others.
fn of_job_set_after(name: &str, after: i64) -> String {
    let mut object: Value = serde_json::from_str(&finished(name, 7, after)).unwrap();
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "s", "uid": "u",
        "controller": true,
    }]);
    object.to_string()
}

fn right(group: &str, name: &str, verb: Verb) -> Right {
    Right { resource: Resource { group: group.into(), name: name.into() }, verb }
}

fn until(seconds: i64) -> Step {
    Step::Wait(Wait { until: Some(END.plus(seconds)), longest: None })
}

/// A cluster, and a time that nobody sets.
struct Scene {
    state: ClusterState,
    monotonic: Duration,
    /// What the status of the policy says for the breaker.
    record: Option<Record>,
}

impl Scene {
    /// With these policies, and namespace `a`; no Job is known.
    fn before_the_list(policies: Vec<StoredPolicy>) -> Self {
        Self::about(&job(), policies)
    }

    /// The same for any kind of objects.
    fn about(target: &Target, policies: Vec<StoredPolicy>) -> Self {
        let mut scene = Self {
            state: ClusterState::new(slice::from_ref(target), BTreeSet::new(), None),
            monotonic: Duration::from_secs(1_000),
            record: None,
        };
        for stored in policies {
            scene.set(stored);
        }
        for kind in [PolicyKind::Namespaced, PolicyKind::Cluster] {
            scene.state.list_ends(Source::Policies(kind), scene.monotonic);
        }
        let metadata = Metadata { name: "a".to_owned(), ..Metadata::default() };
        scene.state.namespace(metadata);
        scene.state.list_ends(Source::Namespaces, scene.monotonic);
        scene
    }

    /// With these Jobs, evaluated at this time.
    fn new(policies: Vec<StoredPolicy>, jobs: &[String], now: Now) -> Self {
        let mut scene = Self::before_the_list(policies);
        scene.list(jobs, now);
        scene.evaluate(now);
        scene
    }

    fn set(&mut self, stored: StoredPolicy) -> Effects {
        let key = PolicyKey {
            kind: PolicyKind::Namespaced,
            namespace: "a".into(),
            name: stored.policy.name.clone(),
        };
        self.state.policy(key, Ok(stored), self.record.clone(), self.monotonic)
    }

    fn list(&mut self, jobs: &[String], now: Now) {
        let source = Source::Target(JOBS);
        self.state.list_begins(source);
        for job in jobs {
            self.state.object(JOBS, job, None, now);
        }
        self.state.list_ends(source, self.monotonic);
    }

    fn see(&mut self, name: &str, text: &str, now: Now) -> Effects {
        self.state.object(JOBS, text, Some(&key(name).object), now)
    }

    /// Evaluates all there is, and returns what is queued.
    fn evaluate(&mut self, now: Now) -> Vec<String> {
        let mut queued = Vec::new();
        while let Some(slice) = self.state.evaluate(2, now) {
            queued.extend(slice.look.into_iter().map(|(_, key)| key.object.name.to_string()));
        }
        self.store(now);
        queued
    }

    /// Judges the policy, and stores what comes of that.
    fn store(&mut self, now: Now) {
        self.state.judge(now, self.monotonic);
        let policy = Uid::from("p");
        if let Some(record) = self.state.record(&policy) {
            self.record = Some(record.clone());
            self.state.stored_record(&policy, record);
        }
    }

    /// How many objects wait for an acknowledgement.
    fn tripped(&self) -> Option<u64> {
        self.state.tripped(&Uid::from("p")).map(Trip::count)
    }

    fn look(&mut self, name: &str, now: Now) -> Step {
        self.state.look(&key(name), now, self.monotonic)
    }

    /// Looks, and once more if the object gets leave.
    fn step(&mut self, name: &str, now: Now) -> Step {
        match self.look(name, now) {
            Step::Line => {
                assert_eq!(self.state.give_leave(now, self.monotonic), Ok(key(name)));
                self.look(name, now)
            }
            step => step,
        }
    }

    /// So many seconds pass, and the watches are live then.
    fn pass(&mut self, seconds: u64) {
        self.monotonic += Duration::from_secs(seconds);
        for source in ClusterState::sources(JOBS) {
            self.state.heard(source, self.monotonic);
        }
    }

    fn deletes(&mut self, name: &str, now: Now) -> bool {
        matches!(self.step(name, now), Step::Delete(_))
    }

    /// The JobSet that controls a Job is so.
    fn owner_is(&mut self, name: &str, answer: OwnerAnswer, now: Now) {
        self.state.answered(&key(name), &Uid::from("u"), answer, now, self.monotonic);
    }

    /// Asks what is to be asked about rights, with these missing. Returns what was asked about.
    fn review(&mut self, missing: &[Right]) -> Vec<Right> {
        let asked = self.state.rights_to_ask(self.monotonic);
        for right in &asked {
            let answer = Some(!missing.contains(right));
            self.state.right_answered(right, answer, self.monotonic);
        }
        asked
    }

    /// The rules that the policy lacks, each as its verbs and its resource.
    fn missing(&self) -> Vec<String> {
        let rules = self.state.missing_rules(&Uid::from("p"));
        let rules = rules.iter().map(|rule| {
            format!("{} {}/{}", rule.verbs.join(","), rule.api_groups[0], rule.resources[0])
        });
        rules.collect()
    }

    fn reply(&mut self, name: &str, reply: Reply) -> Option<Duration> {
        let uid = Uid::from(format!("uid of {name}").as_str());
        let (wait, _) = self.state.replied(&key(name), &uid, reply, self.monotonic);
        wait
    }
}
