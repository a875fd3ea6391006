//! Workloads: Kueue's record of a job.

use kube::api::{Api, DynamicObject};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use super::queues::resource;

/// The Workloads of a namespace.
#[must_use]
pub fn workloads(client: Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client, namespace, &resource("Workload"))
}

/// A Workload as Kueue stored it.
#[derive(Debug, Clone)]
pub struct Workload(pub DynamicObject);

impl Workload {
    /// The name of the job that it is of.
    #[must_use]
    pub fn job(&self) -> Option<&str> {
        self.0.owner_references().first().map(|owner| owner.name.as_str())
    }

    /// Whether a condition is true.
    #[must_use]
    pub fn is(&self, condition: &str) -> bool {
        self.condition(condition).is_some_and(|it| it["status"] == "True")
    }

    /// The reason of a condition, whatever its status.
    #[must_use]
    pub fn reason(&self, condition: &str) -> Option<&str> {
        self.condition(condition)?.get("reason")?.as_str()
    }

    /// A condition.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Value> {
        let conditions = self.0.data.pointer("/status/conditions")?.as_array()?;
        conditions.iter().find(|condition| condition["type"] == kind)
    }

    /// What its conditions say, in one line.
    #[must_use]
    pub fn brief(&self) -> String {
        let conditions = self.0.data.pointer("/status/conditions").and_then(Value::as_array);
        let text = |condition: &Value, field: &str| {
            condition.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let said: Vec<String> = conditions
            .into_iter()
            .flatten()
            .map(|it| {
                let part = |field| text(it, field);
                format!(
                    "{}={} {}: {}",
                    part("type"),
                    part("status"),
                    part("reason"),
                    part("message")
                )
            })
            .collect();
        said.join("; ")
    }
}
