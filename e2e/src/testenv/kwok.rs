//! KWOK, which plays the kubelets: what fake Pods do, and how fast.

use std::fs;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::testenv::site::Site;
use crate::testenv::yaml;

/// The annotation by which a fake Pod completes so long after it became ready (`stages/outcome.yaml`).
pub const COMPLETES_AFTER: &str = "pod-complete.stage.kwok.x-k8s.io/delay";

/// The file of its configuration in the box.
pub(crate) const CONFIGURATION: &str = "kwok.yaml";

/// The stages of KWOK's own release: nodes become ready and keep their leases, Pods are created,
/// initialised, ready.
const UPSTREAM: [&str; 6] = [
    "kustomize/stage/node/fast/node-initialize.yaml",
    "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "kustomize/stage/pod/general/pod-create.yaml",
    "kustomize/stage/pod/general/pod-init-container-running.yaml",
    "kustomize/stage/pod/general/pod-init-container-completed.yaml",
    "kustomize/stage/pod/general/pod-ready.yaml",
];

/// How Pods end, which is our own.
const OWN: [&str; 2] =
    [include_str!("../../stages/outcome.yaml"), include_str!("../../stages/deletion.yaml")];

/// Writes the configuration: the stages come from a file, not from the API, so that KWOK needs no
/// definitions there and knows its stages from the first Pod on.
pub(crate) fn configure(site: &Site) -> Result<()> {
    let mut documents = vec![json!({
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        // Parallel enough that a load run measures us and not KWOK, which takes 0 for what is
        // missing here; and an address for every Pod of such a run.
        "options": {
            "cidr": "10.0.0.0/8",
            "podPlayStageParallelism": 16,
            "nodePlayStageParallelism": 16,
            "nodeLeaseParallelism": 16,
            "podsOnNodeSyncParallelism": 4,
        },
    })];
    for file in UPSTREAM {
        for mut stage in yaml::documents(&site.modules()?.kwok.read(file)?)? {
            hurry(&mut stage);
            documents.push(stage);
        }
    }
    for text in OWN {
        documents.extend(yaml::documents(text)?);
    }
    fs::write(site.folder.join(CONFIGURATION), yaml::stream(&documents))
        .context("cannot write KWOK's configuration")
}

/// Takes the default delays of one to five seconds out of a Pod's stage. The annotations that set
/// a delay keep working.
fn hurry(stage: &mut Value) {
    if stage.pointer("/spec/resourceRef/kind") == Some(&json!("Pod"))
        && let Some(delay) = stage.pointer_mut("/spec/delay").and_then(Value::as_object_mut)
    {
        delay.remove("durationMilliseconds");
        delay.remove("jitterDurationMilliseconds");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_starts_at_once_unless_an_annotation_says_otherwise() {
        let annotated = json!({"expressionFrom": ".metadata.annotations[\"x\"]"});
        let mut stage = json!({"spec": {
            "resourceRef": {"kind": "Pod"},
            "delay": {"durationMilliseconds": 1000, "durationFrom": annotated},
        }});
        hurry(&mut stage);
        assert_eq!(stage.pointer("/spec/delay"), Some(&json!({"durationFrom": annotated})));
    }

    #[test]
    fn our_stages_are_stages_with_names_of_their_own() {
        let stages: Vec<Value> =
            OWN.iter().flat_map(|text| yaml::documents(text).unwrap()).collect();
        let mut names: Vec<&str> =
            stages.iter().map(|stage| stage["metadata"]["name"].as_str().unwrap()).collect();
        let ends = ["pod-complete", "pod-fail"];
        let deletions = ["pod-stop", "pod-never-started", "pod-kill", "pod-delete"];
        assert_eq!(names, [&ends[..], &deletions[..]].concat());
        names.dedup();
        assert!(stages.iter().all(|stage| stage["kind"] == "Stage"));
    }
}
