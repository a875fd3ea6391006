//! Who makes a TrainJob again, as far as its metadata tells.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The annotation by which Argo CD tracks what belongs to an Application: its name, and what comes after a colon.
const ARGO_CD_ANNOTATION: &str = "argocd.argoproj.io/tracking-id";
/// The label that Argo CD uses for that where it is configured so. Helm charts use it too, for the name of a release.
const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
/// The kinds of Flux that apply objects, with the labels that name the one that applied an object.
const FLUX: [(&str, &str, &str); 2] = [
    ("Kustomization", "kustomize.toolkit.fluxcd.io/namespace", "kustomize.toolkit.fluxcd.io/name"),
    ("HelmRelease", "helm.toolkit.fluxcd.io/namespace", "helm.toolkit.fluxcd.io/name"),
];

/// Who made a TrainJob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Its controller owner.
    Owner {
        /// The owner's kind.
        kind: String,
        /// The owner's name.
        name: String,
    },
    /// Flux.
    Flux {
        /// `Kustomization` or `HelmRelease`.
        kind: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// An Application of Argo CD.
    ArgoCd {
        /// Its name.
        application: String,
    },
    /// Something that has an instance label: an Application of Argo CD, or a release of Helm.
    Instance {
        /// The label's value.
        name: String,
    },
    /// Its metadata does not tell.
    Unknown,
}

impl Origin {
    /// What an object's metadata says. The most certain comes first: an owner reference is nobody's convention.
    #[must_use]
    pub fn of(metadata: &ObjectMeta) -> Self {
        let mut owners = metadata.owner_references.iter().flatten();
        if let Some(owner) = owners.find(|owner| owner.controller == Some(true)) {
            return Self::Owner { kind: owner.kind.clone(), name: owner.name.clone() };
        }
        let label = |name: &str| metadata.labels.as_ref()?.get(name).cloned();
        let flux = FLUX.into_iter().find_map(|(kind, namespace, name)| {
            let namespace = label(namespace).unwrap_or_default();
            Some(Self::Flux { kind, namespace, name: label(name)? })
        });
        let annotations = metadata.annotations.as_ref();
        let tracked = || annotations?.get(ARGO_CD_ANNOTATION)?.split(':').next();
        let argo_cd = || Some(Self::ArgoCd { application: tracked()?.to_owned() });
        let instance = || Some(Self::Instance { name: label(INSTANCE_LABEL)? });
        flux.or_else(argo_cd).or_else(instance).unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for Origin {
    /// As the end of "made again by".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner { kind, name } => write!(f, "its owner {kind} {name}"),
            Self::Flux { kind, namespace, name } => write!(f, "Flux ({kind} {namespace}/{name})"),
            Self::ArgoCd { application } => write!(f, "Argo CD (Application {application})"),
            Self::Instance { name } => {
                write!(f, "what manages the instance {name} (label {INSTANCE_LABEL})")
            }
            Self::Unknown => f.write_str("a user or a program"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn owner_goes_before_labels_and_annotations_and_nothing_is_guessed() {
        let owner = json!([
            {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "1"},
            {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "w", "uid": "2", "controller": true},
        ]);
        let kustomize = json!({
            "kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
        });
        let helm = json!({
            "helm.toolkit.fluxcd.io/name": "train", "helm.toolkit.fluxcd.io/namespace": "team",
            "app.kubernetes.io/instance": "train",
        });
        let argo = json!({
            "argocd.argoproj.io/tracking-id": "train:trainer.kubeflow.org/TrainJob:team/job",
        });
        let instance = json!({"app.kubernetes.io/instance": "train"});
        for (metadata, expected) in [
            (json!({}), "a user or a program"),
            (json!({"ownerReferences": [owner[0]]}), "a user or a program"),
            (json!({"labels": {"app": "x"}, "annotations": {"a": "b"}}), "a user or a program"),
            (json!({"ownerReferences": owner, "labels": kustomize}), "its owner Workflow w"),
            (json!({"labels": kustomize}), "Flux (Kustomization flux-system/apps)"),
            (json!({"labels": helm}), "Flux (HelmRelease team/train)"),
            (json!({"annotations": argo, "labels": instance}), "Argo CD (Application train)"),
            (
                json!({"labels": instance}),
                "what manages the instance train (label app.kubernetes.io/instance)",
            ),
        ] {
            let said = of(&metadata).to_string();
            assert_eq!(said, expected, "{metadata}");
        }
    }

    fn of(metadata: &Value) -> Origin {
        Origin::of(&serde_json::from_value(metadata.clone()).unwrap())
    }
}
