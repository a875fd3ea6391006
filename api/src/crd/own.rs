//! The facts of our own types, and of JobSet's.
//!
//! Limits of length and range are not here: they are the types' `#[validate(…)]` attributes.

use super::fact::{
    BY_NAME,
    Fact::{
        self, AnyWidth, AtomicList, Default, Items, MapBy, MaxLength, MinProperties, OneOf,
        Required, Rule, RuleWhileImmutable, Set,
    },
    Facts,
    Literal::{Bool, Int, Str},
    of,
};
use crate::{
    constants::MANAGED_BY,
    v1alpha1::{CLUSTER_TRAINING_RUNTIME_KIND, GROUP},
    validate::{LONGEST_CONTAINER_NAME, LONGEST_WORD},
};

/// The rules on a TrainJob's name, which its children's names are made of.
pub(super) const TRAIN_JOB_NAME: [(&str, &str); 2] = [
    (
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "metadata.name must match RFC 1035 DNS label format",
    ),
    ("size(self.metadata.name) <= 63", "metadata.name must be no more than 63 characters"),
];

/// Once set, it stays as it is. It may still be removed or, if absent, added.
const IMMUTABLE: Fact = Rule("self == oldSelf", "field is immutable");
/// The same in JobSet's words.
const IMMUTABLE_IN_JOBSET: Fact = Rule("self == oldSelf", "Value is immutable");
/// A command line's words may be long, but not without limit.
const WORDS: [Fact; 2] = [AtomicList, Items(&[MaxLength(LONGEST_WORD as i64)])];

pub(super) const FACTS: &[Facts] = &[
    // trainjob.rs
    of(
        "TrainJobSpec",
        &[],
        &[
            ("runtimeRef", &[Required, IMMUTABLE]),
            ("initializer", &[IMMUTABLE]),
            ("trainer", &[IMMUTABLE]),
            ("runtimePatches", &[MapBy(&["manager"])]),
            ("suspend", &[Default(Bool(false))]),
            (
                "activeDeadlineSeconds",
                &[RuleWhileImmutable("self == oldSelf", "field is immutable")],
            ),
            (
                "managedBy",
                &[
                    Default(Str(MANAGED_BY)),
                    Rule(
                        "self in ['trainer.kubeflow.org/trainjob-controller', 'kueue.x-k8s.io/multikueue']",
                        "ManagedBy must be trainer.kubeflow.org/trainjob-controller or kueue.x-k8s.io/multikueue if set",
                    ),
                    IMMUTABLE,
                ],
            ),
        ],
    ),
    of(
        "RuntimeRef",
        &[],
        &[
            ("name", &[Required]),
            ("apiGroup", &[Default(Str(GROUP))]),
            ("kind", &[Default(Str(CLUSTER_TRAINING_RUNTIME_KIND))]),
        ],
    ),
    of(
        "InitializerStep",
        &[],
        &[
            (
                "storageUri",
                &[Rule(
                    "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')",
                    "storageUri may be empty, or it must be a valid URI (scheme://...)",
                )],
            ),
            ("env", &[BY_NAME]),
        ],
    ),
    of(
        "Trainer",
        &[],
        &[
            ("command", &WORDS),
            ("args", &WORDS),
            ("env", &[BY_NAME]),
            (
                "numProcPerNode",
                &[Rule("self >= 1", "numProcPerNode must be greater than or equal to 1")],
            ),
        ],
    ),
    of(
        "TrainJobStatus",
        &[MinProperties(1)],
        &[
            ("conditions", &[MapBy(&["type"])]),
            ("jobsStatus", &[BY_NAME]),
            (
                "trainerStatus",
                &[Rule(
                    "has(self.lastUpdatedTime)",
                    "lastUpdatedTime is required when trainerStatus is present",
                )],
            ),
        ],
    ),
    of("TrainerStatus", &[], &[("metrics", &[AtomicList])]),
    // patches.rs
    of("RuntimePatch", &[], &[("manager", &[Required, IMMUTABLE])]),
    of("JobSetSpecPatch", &[], &[("replicatedJobs", &[BY_NAME])]),
    of("ReplicatedJobPatch", &[], &[("name", &[Required])]),
    of(
        "PodSpecPatch",
        &[],
        &[
            ("serviceAccountName", &[IMMUTABLE]),
            ("volumes", &[BY_NAME, IMMUTABLE]),
            ("initContainers", &[BY_NAME, IMMUTABLE]),
            ("containers", &[BY_NAME, IMMUTABLE]),
            ("imagePullSecrets", &[BY_NAME, IMMUTABLE]),
            ("securityContext", &[IMMUTABLE]),
            ("terminationGracePeriodSeconds", &[IMMUTABLE]),
            ("tolerations", &[AtomicList]),
            ("schedulingGates", &[BY_NAME]),
        ],
    ),
    of(
        "ContainerPatch",
        &[],
        &[("name", &[Required]), ("env", &[BY_NAME]), ("volumeMounts", &[BY_NAME])],
    ),
    // runtime.rs
    of("TrainingRuntimeSpec", &[MinProperties(1)], &[]),
    of(
        "MlPolicy",
        &[Rule(
            "[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost),has(self.flux)].filter(x, x).size() <= 1",
            "Only one of the policy can be configured",
        )],
        &[],
    ),
    of("EnvInjection", &[], &[("targets", &[MapBy(&["jobName"])])]),
    of(
        "EnvInjectionTarget",
        &[],
        &[
            ("jobName", &[Required]),
            (
                "containerNames",
                &[
                    Required,
                    Set,
                    Items(&[MaxLength(LONGEST_CONTAINER_NAME as i64)]),
                    Rule(
                        "!self.exists(c, c == 'node')",
                        "containerNames must not include the main node container because PET_* envs are always injected into it",
                    ),
                ],
            ),
        ],
    ),
    of(
        "MpiPolicy",
        &[],
        &[
            (
                "numProcPerNode",
                &[Default(Int(1)), Rule("self >= 1", "NumProcPerNode in mpiPolicy must be >= 1")],
            ),
            ("mpiImplementation", &[Default(Str("OpenMPI")), OneOf(&["OpenMPI", ""])]),
            ("sshAuthMountPath", &[Default(Str("/root/.ssh"))]),
            ("runLauncherAsNode", &[Default(Bool(false))]),
        ],
    ),
    of(
        "FluxPolicy",
        &[],
        &[(
            "numProcPerNode",
            &[Default(Int(1)), Rule("self >= 1", "NumProcPerNode in fluxPolicy must be >= 1")],
        )],
    ),
    of("CoschedulingPolicy", &[], &[("scheduleTimeoutSeconds", &[Default(Int(60))])]),
    of(
        "NetworkTopology",
        &[],
        &[
            ("mode", &[Default(Str("hard")), OneOf(&["hard", "soft"])]),
            ("highestTierAllowed", &[Default(Int(1)), AnyWidth]),
        ],
    ),
    // jobset.rs
    of("JobSetTemplateSpec", &[MinProperties(1)], &[]),
    of(
        "JobSetSpec",
        &[Rule(
            "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && self.replicatedJobs.exists(x, has(x.dependsOn)))",
            "StartupPolicy and DependsOn APIs are mutually exclusive",
        )],
        &[
            ("replicatedJobs", &[BY_NAME]),
            ("network", &[IMMUTABLE_IN_JOBSET]),
            ("successPolicy", &[IMMUTABLE_IN_JOBSET]),
            ("failurePolicy", &[IMMUTABLE_IN_JOBSET]),
            ("startupPolicy", &[IMMUTABLE_IN_JOBSET]),
            ("volumeClaimPolicies", &[AtomicList, IMMUTABLE_IN_JOBSET]),
        ],
    ),
    of(
        "ReplicatedJob",
        &[],
        &[
            ("name", &[Required]),
            ("groupName", &[Default(Str("default"))]),
            ("template", &[Required]),
            ("replicas", &[Default(Int(1))]),
            ("dependsOn", &[BY_NAME, IMMUTABLE_IN_JOBSET]),
        ],
    ),
    of(
        "DependsOn",
        &[],
        &[("name", &[Required]), ("status", &[Required, OneOf(&["Ready", "Complete"])])],
    ),
    of(
        "SuccessPolicy",
        &[],
        &[
            ("operator", &[Required, OneOf(&["All", "Any"])]),
            ("targetReplicatedJobs", &[AtomicList]),
        ],
    ),
    of(
        "FailurePolicy",
        &[],
        &[(
            "restartStrategy",
            &[Default(Str("Recreate")), OneOf(&["Recreate", "BlockingRecreate", "InPlaceRestart"])],
        )],
    ),
    of(
        "FailurePolicyRule",
        &[],
        &[
            ("name", &[Required]),
            (
                "action",
                &[
                    Required,
                    OneOf(&[
                        "FailJobSet",
                        "RestartJobSet",
                        "RestartJobSetAndIgnoreMaxRestarts",
                        "RestartJob",
                        "RestartJobAndIgnoreMaxRestarts",
                    ]),
                ],
            ),
            ("targetReplicatedJobs", &[AtomicList]),
        ],
    ),
    of(
        "StartupPolicy",
        &[],
        &[("startupPolicyOrder", &[Required, OneOf(&["AnyOrder", "InOrder"])])],
    ),
    of(
        "Coordinator",
        &[],
        &[("replicatedJob", &[Required]), ("jobIndex", &[AnyWidth]), ("podIndex", &[AnyWidth])],
    ),
    of(
        "VolumeClaimPolicy",
        // Upstream says it without `dyn`. API servers of 1.31 do not know the field in a rule, and refuse the definition.
        &[Rule(
            "self.templates.all(t, !has(dyn(t.metadata).namespace) || dyn(t.metadata).namespace == '')",
            "namespace cannot be set for VolumeClaimPolicies templates",
        )],
        &[("templates", &[AtomicList])],
    ),
    of(
        "RetentionPolicy",
        &[],
        &[("whenDeleted", &[Default(Str("Delete")), OneOf(&["Delete", "Retain"])])],
    ),
];
