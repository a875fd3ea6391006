//! Everything that was made for the TrainJobs of a namespace, to tell what a change of controllers leaves alone.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{Api, ListParams, ObjectMeta};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use trainjob_api::{JobSet, TrainJob};

const OF_JOBSET: &str = "jobset.sigs.k8s.io/jobset-name";

/// Objects by kind and name, each with the TrainJob that it is about and what must not change of it.
pub(super) type Objects = BTreeMap<String, (String, String)>;

/// All of them.
pub(super) async fn all(client: &Client, namespace: &str) -> Result<Objects> {
    let mut objects = Objects::new();
    for job in list::<TrainJob>(client, namespace, "").await? {
        let uid = job.uid().unwrap_or_default();
        objects.insert(format!("TrainJob {}", job.name_any()), (job.name_any(), uid));
    }
    for set in list::<JobSet>(client, namespace, "").await? {
        let about = format!("{} generation {:?}", uid(&set.metadata), set.metadata.generation);
        objects.insert(format!("JobSet {}", set.name_any()), (set.name_any(), about));
    }
    for job in list::<Job>(client, namespace, OF_JOBSET).await? {
        let about = (labelled(&job.metadata), uid(&job.metadata));
        objects.insert(format!("Job {}", job.name_any()), about);
    }
    for pod in list::<Pod>(client, namespace, OF_JOBSET).await? {
        let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
        let about = format!("{} {}", uid(&pod.metadata), phase.unwrap_or_default());
        objects.insert(format!("Pod {}", pod.name_any()), (labelled(&pod.metadata), about));
    }
    for secret in list::<Secret>(client, namespace, "").await? {
        let about = format!("{} {:?}", uid(&secret.metadata), secret.data);
        objects.insert(format!("Secret {}", secret.name_any()), (owner(&secret.metadata), about));
    }
    for map in list::<ConfigMap>(client, namespace, "").await? {
        let about = format!("{} {:?}", uid(&map.metadata), map.data);
        objects.insert(format!("ConfigMap {}", map.name_any()), (owner(&map.metadata), about));
    }
    Ok(objects)
}

/// Sees that `now` has what `before` had, and nothing else.
pub(super) fn same(before: &Objects, now: &Objects) -> Result<()> {
    let changed: Vec<&String> = before
        .keys()
        .chain(now.keys().filter(|name| !before.contains_key(*name)))
        .filter(|name| before.get(*name) != now.get(*name))
        .collect();
    let shown = |objects: &Objects, name: &str| match objects.get(name) {
        Some((_, about)) => about.chars().take(200).collect(),
        None => "none".to_owned(),
    };
    let tell = |name: &&String| {
        format!("{name}: before {}, now {}", shown(before, name), shown(now, name))
    };
    let told: Vec<String> = changed.iter().map(tell).collect();
    ensure!(told.is_empty(), "not the same:\n{}", told.join("\n"));
    Ok(())
}

async fn list<K>(client: &Client, namespace: &str, labels: &str) -> Result<Vec<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    Ok(api.list(&ListParams::default().labels(labels)).await?.items)
}

fn uid(metadata: &ObjectMeta) -> String {
    metadata.uid.clone().unwrap_or_default()
}

fn labelled(metadata: &ObjectMeta) -> String {
    let labels = metadata.labels.iter().flatten();
    labels.filter(|(name, _)| *name == OF_JOBSET).map(|(_, value)| value.clone()).collect()
}

fn owner(metadata: &ObjectMeta) -> String {
    let owners = metadata.owner_references.iter().flatten();
    owners.filter(|owner| owner.kind == "TrainJob").map(|owner| owner.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(given: &[(&str, &str)]) -> Objects {
        let entry = |(name, about): &(&str, &str)| {
            ((*name).to_owned(), ("job".to_owned(), (*about).to_owned()))
        };
        given.iter().map(entry).collect()
    }

    #[test]
    fn difference_names_removed_added_and_changed_objects() {
        let before = objects(&[("Pod a", "1"), ("Pod b", "2"), ("Pod c", "3")]);
        assert!(same(&before, &before).is_ok());
        let now = objects(&[("Pod a", "1"), ("Pod b", "4"), ("Pod d", "5")]);
        let told = same(&before, &now).unwrap_err().to_string();
        assert!(!told.contains("Pod a"), "{told}");
        for line in ["Pod b: before 2, now 4", "Pod c: before 3, now none", "Pod d: before none"] {
            assert!(told.contains(line), "{told}");
        }
    }
}
