//! The facts of Kubernetes' own types: those its API description states and k8s-openapi drops.
//!
//! How lists and maps merge decides what a server-side apply of a runtime or a runtime patch keeps;
//! the server's defaults decide what may be left out. The types are those of Kubernetes 1.36.

use super::fact::{
    BY_NAME,
    Fact::{
        AtomicList, AtomicMap, Default, GranularMap, MapBy, MaxLength, MinLength, Minimum, OneOf,
        Only, Optional, Pattern, Set,
    },
    Facts,
    Literal::{Bool, Str},
    of,
};

pub(super) const FACTS: &[Facts] = &[
    of("io.k8s.api.batch.v1.PodFailurePolicy", &[], &[("rules", &[AtomicList])]),
    of("io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesRequirement", &[], &[("values", &[Set])]),
    of("io.k8s.api.batch.v1.PodFailurePolicyRule", &[], &[("onPodConditions", &[AtomicList])]),
    of("io.k8s.api.batch.v1.SuccessPolicy", &[], &[("rules", &[AtomicList])]),
    of(
        "io.k8s.api.core.v1.AzureDiskVolumeSource",
        &[],
        &[("fsType", &[Default(Str("ext4"))]), ("readOnly", &[Default(Bool(false))])],
    ),
    of("io.k8s.api.core.v1.Capabilities", &[], &[("add", &[AtomicList]), ("drop", &[AtomicList])]),
    of("io.k8s.api.core.v1.CephFSVolumeSource", &[], &[("monitors", &[AtomicList])]),
    of("io.k8s.api.core.v1.ConfigMapEnvSource", &[AtomicMap], &[("name", &[Default(Str(""))])]),
    of("io.k8s.api.core.v1.ConfigMapKeySelector", &[AtomicMap], &[("name", &[Default(Str(""))])]),
    of(
        "io.k8s.api.core.v1.ConfigMapProjection",
        &[AtomicMap],
        &[("items", &[AtomicList]), ("name", &[Default(Str(""))])],
    ),
    of(
        "io.k8s.api.core.v1.ConfigMapVolumeSource",
        &[AtomicMap],
        &[("items", &[AtomicList]), ("name", &[Default(Str(""))])],
    ),
    of(
        "io.k8s.api.core.v1.Container",
        &[],
        &[
            ("args", &[AtomicList]),
            ("command", &[AtomicList]),
            ("env", &[BY_NAME]),
            ("envFrom", &[AtomicList]),
            ("ports", &[MapBy(&["containerPort", "protocol"])]),
            ("resizePolicy", &[AtomicList]),
            ("restartPolicyRules", &[AtomicList]),
            ("volumeDevices", &[MapBy(&["devicePath"])]),
            ("volumeMounts", &[MapBy(&["mountPath"])]),
        ],
    ),
    of("io.k8s.api.core.v1.ContainerPort", &[], &[("protocol", &[Default(Str("TCP"))])]),
    of("io.k8s.api.core.v1.ContainerRestartRuleOnExitCodes", &[], &[("values", &[Set])]),
    of("io.k8s.api.core.v1.DownwardAPIProjection", &[], &[("items", &[AtomicList])]),
    of("io.k8s.api.core.v1.DownwardAPIVolumeSource", &[], &[("items", &[AtomicList])]),
    of(
        "io.k8s.api.core.v1.EphemeralContainer",
        &[],
        &[
            ("args", &[AtomicList]),
            ("command", &[AtomicList]),
            ("env", &[BY_NAME]),
            ("envFrom", &[AtomicList]),
            ("ports", &[MapBy(&["containerPort", "protocol"])]),
            ("resizePolicy", &[AtomicList]),
            ("restartPolicyRules", &[AtomicList]),
            ("volumeDevices", &[MapBy(&["devicePath"])]),
            ("volumeMounts", &[MapBy(&["mountPath"])]),
        ],
    ),
    of("io.k8s.api.core.v1.ExecAction", &[], &[("command", &[AtomicList])]),
    of(
        "io.k8s.api.core.v1.FCVolumeSource",
        &[],
        &[("targetWWNs", &[AtomicList]), ("wwids", &[AtomicList])],
    ),
    of(
        "io.k8s.api.core.v1.FileKeySelector",
        &[AtomicMap],
        &[("optional", &[Default(Bool(false))])],
    ),
    of("io.k8s.api.core.v1.GRPCAction", &[], &[("service", &[Default(Str(""))])]),
    of("io.k8s.api.core.v1.HTTPGetAction", &[], &[("httpHeaders", &[AtomicList])]),
    of("io.k8s.api.core.v1.HostAlias", &[], &[("hostnames", &[AtomicList])]),
    of(
        "io.k8s.api.core.v1.ISCSIVolumeSource",
        &[],
        &[("iscsiInterface", &[Default(Str("default"))]), ("portals", &[AtomicList])],
    ),
    of("io.k8s.api.core.v1.LocalObjectReference", &[AtomicMap], &[("name", &[Default(Str(""))])]),
    of(
        "io.k8s.api.core.v1.NodeAffinity",
        &[],
        &[("preferredDuringSchedulingIgnoredDuringExecution", &[AtomicList])],
    ),
    of("io.k8s.api.core.v1.NodeSelector", &[AtomicMap], &[("nodeSelectorTerms", &[AtomicList])]),
    of("io.k8s.api.core.v1.NodeSelectorRequirement", &[], &[("values", &[AtomicList])]),
    of(
        "io.k8s.api.core.v1.NodeSelectorTerm",
        &[AtomicMap],
        &[("matchExpressions", &[AtomicList]), ("matchFields", &[AtomicList])],
    ),
    of("io.k8s.api.core.v1.ObjectFieldSelector", &[AtomicMap], &[]),
    of("io.k8s.api.core.v1.PersistentVolumeClaim", &[], &[("metadata", &[Optional])]),
    of("io.k8s.api.core.v1.PersistentVolumeClaimSpec", &[], &[("accessModes", &[AtomicList])]),
    of(
        "io.k8s.api.core.v1.PersistentVolumeClaimStatus",
        &[],
        &[
            ("accessModes", &[AtomicList]),
            ("allocatedResourceStatuses", &[GranularMap]),
            ("conditions", &[MapBy(&["type"])]),
        ],
    ),
    of(
        "io.k8s.api.core.v1.PodAffinity",
        &[],
        &[
            ("preferredDuringSchedulingIgnoredDuringExecution", &[AtomicList]),
            ("requiredDuringSchedulingIgnoredDuringExecution", &[AtomicList]),
        ],
    ),
    of(
        "io.k8s.api.core.v1.PodAffinityTerm",
        &[],
        &[
            ("matchLabelKeys", &[AtomicList]),
            ("mismatchLabelKeys", &[AtomicList]),
            ("namespaces", &[AtomicList]),
        ],
    ),
    of(
        "io.k8s.api.core.v1.PodAntiAffinity",
        &[],
        &[
            ("preferredDuringSchedulingIgnoredDuringExecution", &[AtomicList]),
            ("requiredDuringSchedulingIgnoredDuringExecution", &[AtomicList]),
        ],
    ),
    of(
        "io.k8s.api.core.v1.PodDNSConfig",
        &[],
        &[("nameservers", &[AtomicList]), ("options", &[AtomicList]), ("searches", &[AtomicList])],
    ),
    of(
        "io.k8s.api.core.v1.PodSecurityContext",
        &[],
        &[("supplementalGroups", &[AtomicList]), ("sysctls", &[AtomicList])],
    ),
    of(
        "io.k8s.api.core.v1.PodSpec",
        &[],
        &[
            ("containers", &[BY_NAME]),
            ("ephemeralContainers", &[BY_NAME]),
            ("hostAliases", &[MapBy(&["ip"])]),
            ("imagePullSecrets", &[BY_NAME]),
            ("initContainers", &[BY_NAME]),
            ("nodeSelector", &[AtomicMap]),
            ("readinessGates", &[AtomicList]),
            ("resourceClaims", &[BY_NAME]),
            ("schedulingGates", &[BY_NAME]),
            ("tolerations", &[AtomicList]),
            ("topologySpreadConstraints", &[MapBy(&["topologyKey", "whenUnsatisfiable"])]),
            ("volumes", &[BY_NAME]),
        ],
    ),
    of("io.k8s.api.core.v1.ProjectedVolumeSource", &[], &[("sources", &[AtomicList])]),
    of(
        "io.k8s.api.core.v1.RBDVolumeSource",
        &[],
        &[
            ("keyring", &[Default(Str("/etc/ceph/keyring"))]),
            ("monitors", &[AtomicList]),
            ("pool", &[Default(Str("rbd"))]),
            ("user", &[Default(Str("admin"))]),
        ],
    ),
    of("io.k8s.api.core.v1.ResourceFieldSelector", &[AtomicMap], &[]),
    of("io.k8s.api.core.v1.ResourceRequirements", &[], &[("claims", &[BY_NAME])]),
    of(
        "io.k8s.api.core.v1.ScaleIOVolumeSource",
        &[],
        &[("fsType", &[Default(Str("xfs"))]), ("storageMode", &[Default(Str("ThinProvisioned"))])],
    ),
    of("io.k8s.api.core.v1.SecretEnvSource", &[AtomicMap], &[("name", &[Default(Str(""))])]),
    of("io.k8s.api.core.v1.SecretKeySelector", &[AtomicMap], &[("name", &[Default(Str(""))])]),
    of(
        "io.k8s.api.core.v1.SecretProjection",
        &[AtomicMap],
        &[("items", &[AtomicList]), ("name", &[Default(Str(""))])],
    ),
    of("io.k8s.api.core.v1.SecretVolumeSource", &[], &[("items", &[AtomicList])]),
    of("io.k8s.api.core.v1.TopologySpreadConstraint", &[], &[("matchLabelKeys", &[AtomicList])]),
    of("io.k8s.api.core.v1.TypedLocalObjectReference", &[AtomicMap], &[]),
    of(
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        &[Pattern(
            r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        )],
        &[],
    ),
    of(
        "io.k8s.apimachinery.pkg.apis.meta.v1.Condition",
        &[],
        &[
            ("message", &[MaxLength(32_768)]),
            ("observedGeneration", &[Minimum(0.0)]),
            (
                "reason",
                &[
                    MinLength(1),
                    MaxLength(1_024),
                    Pattern(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
                ],
            ),
            ("status", &[OneOf(&["True", "False", "Unknown"])]),
            (
                "type",
                &[
                    MaxLength(316),
                    Pattern(
                        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                    ),
                ],
            ),
        ],
    ),
    of(
        "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
        &[AtomicMap],
        &[("matchExpressions", &[AtomicList])],
    ),
    of(
        "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement",
        &[],
        &[("values", &[AtomicList])],
    ),
    of(
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        &[Only(&["annotations", "finalizers", "labels", "name", "namespace"])],
        &[],
    ),
];
