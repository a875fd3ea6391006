//! The facts of retention policies (`docs/retention.md`, R5): defaults, forms of strings, and the rules that no type
//! states. Limits of length and range are the types' `#[schemars(…)]` attributes.
//!
//! There is no webhook behind these rules. An API server estimates before it stores a definition what a rule can cost
//! at most, from the limits of lists and strings, so each list and string that a rule looks at has one.

use super::fact::{
    Fact::{
        self, AtomicList, AtomicMap, Default, Items, MapBy, MaxLength, MaxProperties, Maximum,
        MinLength, MinProperties, OneOf, Pattern, Rule, RuleAt, Values,
    },
    Facts,
    Literal::{Bool, EmptyObject, Int, Str},
    of,
};

/// The most seconds that fit in the fields of other kinds, too: 68 years.
const MOST_SECONDS: f64 = 2_147_483_647.0;

const DNS_LABEL: Fact = Pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
const LABEL_KEY: Fact = Pattern(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
);
const ANNOTATION_KEYS: Fact = Pattern(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?\*?$",
);
const LABEL_VALUE: [Fact; 2] =
    [MaxLength(63), Pattern("^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")];
/// Names of fields with dots between them, and no indices.
const PATH: Fact = Pattern(r"^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*$");
const REASONS: [Fact; 2] =
    [AtomicList, Items(&[MinLength(1), MaxLength(253), Pattern(r"^[^*\s]*\*?$")])];
const PHASE_VALUES: [Fact; 2] = [AtomicList, Items(&[MinLength(1), MaxLength(253)])];
/// The outcomes that a policy can define: Kueue alone deactivates.
const DEFINABLE: Fact = OneOf(&["Succeeded", "Failed", "Other"]);

/// Kinds that need `finished` (R9), and kinds whose Pods may go earlier (R22).
const SPEC: &[Fact] = &[
    RuleAt {
        rule: "has(self.finished) || (self.target.apiGroup + '/' + self.target.kind) in ['batch/Job', '/Pod', 'jobset.x-k8s.io/JobSet', 'trainer.kubeflow.org/TrainJob', 'kueue.x-k8s.io/Workload', 'lifecycle.trainjob.dev/TrainJobRecord']",
        message: "only Job of batch, Pod of the core group, JobSet of jobset.x-k8s.io, TrainJob of trainer.kubeflow.org, Workload of kueue.x-k8s.io and TrainJobRecord of lifecycle.trainjob.dev can do without, spelled like this, and the group without a version; for another kind say what finished means",
        path: ".finished",
        reason: "FieldValueRequired",
    },
    RuleAt {
        rule: "!self.rules.exists(r, has(r.pods)) || (self.target.apiGroup + '/' + self.target.kind) in ['batch/Job', 'jobset.x-k8s.io/JobSet', 'trainer.kubeflow.org/TrainJob', 'kubeflow.org/PyTorchJob', 'kubeflow.org/TFJob', 'kubeflow.org/MPIJob', 'kubeflow.org/XGBoostJob', 'kubeflow.org/PaddleJob', 'kubeflow.org/JAXJob', 'argoproj.io/Workflow', 'tekton.dev/TaskRun', 'tekton.dev/PipelineRun', 'batch.volcano.sh/Job']",
        message: "pods is only for kinds whose Pods carry a label: Job, JobSet, TrainJob, the kinds of kubeflow.org, Argo Workflow, Tekton TaskRun and PipelineRun, Volcano Job",
        path: ".rules",
        reason: "FieldValueForbidden",
    },
];

const SPEC_FIELDS: &[(&str, &[Fact])] = &[
    (
        "target",
        &[Rule("self == oldSelf", "target is immutable: make another policy for another kind")],
    ),
    ("mode", &[Default(Str("Audit"))]),
    ("priority", &[Default(Int(0))]),
    (
        "rules",
        &[
            AtomicList,
            Rule(
                "self.all(r, self.exists_one(other, other.name == r.name))",
                "each rule has a name of its own",
            ),
            Rule(
                "size(self) == 0 || !has(self[size(self) - 1].match)",
                "the last rule has no match, so that every object has a rule; its action may be keep or defer",
            ),
            Rule(
                "self.filter(r, !has(r.match)).size() <= 1",
                "only the last rule has no match: those after it would never be reached",
            ),
        ],
    ),
    ("owned", &[Default(Str("Skip"))]),
    ("overrides", &[Default(EmptyObject)]),
    ("holds", &[Default(EmptyObject)]),
    ("propagation", &[Default(Str("Foreground"))]),
    ("deletesPerSecond", &[Default(Int(20))]),
    ("breaker", &[Default(EmptyObject)]),
];

pub(super) const FACTS: &[Facts] = &[
    // policy.rs
    of("RetentionPolicySpec", SPEC, SPEC_FIELDS),
    of("ClusterRetentionPolicySpec", SPEC, SPEC_FIELDS),
    of(
        "Target",
        &[RuleAt {
            rule: "self.apiGroup != '' || self.kind == 'Pod'",
            message: "of the core group only Pod can be a target",
            path: ".kind",
            reason: "FieldValueInvalid",
        }],
        &[
            (
                "apiGroup",
                &[Pattern(r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$")],
            ),
            ("kind", &[Pattern("^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$")]),
        ],
    ),
    of(
        "Overrides",
        &[],
        &[("annotation", &[Default(Bool(false))]), ("ownTTL", &[Default(Str("Respect"))])],
    ),
    of("Holds", &[], &[("maximumSeconds", &[Default(Int(2_592_000))])]),
    of(
        "Limits",
        &[
            MinProperties(1),
            RuleAt {
                rule: "!has(self.minimumSeconds) || !has(self.maximumSeconds) || self.minimumSeconds <= self.maximumSeconds",
                message: "minimumSeconds is at most maximumSeconds",
                path: ".minimumSeconds",
                reason: "FieldValueInvalid",
            },
        ],
        &[],
    ),
    of("Breaker", &[], &[("maxCount", &[Default(Int(50))])]),
    // rule.rs
    of(
        "Rule",
        &[
            RuleAt {
                rule: "!has(self.pods) || !has(self.action.ttlSecondsAfterFinished) || self.pods.ttlSecondsAfterFinished <= self.action.ttlSecondsAfterFinished",
                message: "the Pods go at the same time as their object at the latest: the TTL of pods is at most that of action",
                path: ".pods.ttlSecondsAfterFinished",
                reason: "FieldValueInvalid",
            },
            RuleAt {
                rule: "!has(self.pods) || !has(self.action.keepLast) || !has(self.action.keepLast.maximumAgeSeconds) || self.pods.ttlSecondsAfterFinished <= self.action.keepLast.maximumAgeSeconds",
                message: "the Pods go at the same time as their object at the latest: the TTL of pods is at most maximumAgeSeconds",
                path: ".pods.ttlSecondsAfterFinished",
                reason: "FieldValueInvalid",
            },
            RuleAt {
                rule: "!has(self.action.defer) || !has(self.pods)",
                message: "a rule that defers decides nothing, about Pods neither",
                path: ".pods",
                reason: "FieldValueForbidden",
            },
            RuleAt {
                rule: "!has(self.action.defer) || !has(self.delete) || self.delete == 'Object'",
                message: "a rule that defers decides nothing, about owners neither",
                path: ".delete",
                reason: "FieldValueForbidden",
            },
        ],
        &[("name", &[DNS_LABEL]), ("delete", &[Default(Str("Object"))])],
    ),
    of(
        "Match",
        &[Rule(
            "has(self.outcomes) || has(self.reasons) || has(self.labels)",
            "a match has outcomes, reasons or labels; a rule for everything has no match",
        )],
        &[("outcomes", &[AtomicList]), ("reasons", &REASONS), ("labels", &[MinProperties(1)])],
    ),
    of(
        "Action",
        &[Rule(
            "[has(self.ttlSecondsAfterFinished), has(self.keep), has(self.defer), has(self.keepLast)].exists_one(given, given)",
            "an action is exactly one of ttlSecondsAfterFinished, keep, defer and keepLast",
        )],
        &[
            ("ttlSecondsAfterFinished", &[Maximum(MOST_SECONDS)]),
            ("keep", &[Rule("self", "keep is true, or is left out")]),
            ("defer", &[Rule("self", "defer is true, or is left out")]),
        ],
    ),
    of(
        "KeepLast",
        &[RuleAt {
            rule: "!has(self.minimumAgeSeconds) || !has(self.maximumAgeSeconds) || self.minimumAgeSeconds <= self.maximumAgeSeconds",
            message: "minimumAgeSeconds is at most maximumAgeSeconds",
            path: ".minimumAgeSeconds",
            reason: "FieldValueInvalid",
        }],
        &[
            ("groupBy", &[AtomicList, Items(&[MinLength(1), MaxLength(317), LABEL_KEY])]),
            ("minimumAgeSeconds", &[Default(Int(0))]),
        ],
    ),
    of("RulePods", &[], &[("phases", &[Default(Str("Terminal"))])]),
    // selector.rs
    of(
        "Selector",
        &[AtomicMap],
        &[
            (
                "matchLabels",
                &[
                    MaxProperties(16),
                    Values(&LABEL_VALUE),
                    Rule(
                        r"self.all(key, key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",
                        "the keys of matchLabels are keys of labels",
                    ),
                ],
            ),
            ("matchExpressions", &[AtomicList]),
        ],
    ),
    of(
        "LabelExpression",
        &[VALUES_AS_ASKED],
        &[("key", &[LABEL_KEY]), ("values", &[AtomicList, Items(&LABEL_VALUE)])],
    ),
    // finished.rs
    of(
        "Finished",
        &[
            Rule(
                "has(self.conditions) || has(self.phase)",
                "finished has conditions, a phase, or both",
            ),
            RuleAt {
                rule: "!has(self.phase) || !has(self.phase.otherwise) || has(self.requires)",
                message: "phase.otherwise needs requires: without it every object would be finished",
                path: ".requires",
                reason: "FieldValueRequired",
            },
        ],
        &[
            ("requires", &[AtomicList]),
            ("conditions", &[AtomicList]),
            ("reasonPath", &[PATH]),
            ("timePath", &[PATH]),
            ("ownTTL", &[AtomicList]),
            (
                "guards",
                &[
                    AtomicList,
                    Rule(
                        "self.all(g, self.exists_one(other, other.name == g.name))",
                        "each guard has a name of its own",
                    ),
                ],
            ),
        ],
    ),
    of(
        "FinishedCondition",
        &[],
        &[("status", &[Default(Str("True"))]), ("reasons", &REASONS), ("outcome", &[DEFINABLE])],
    ),
    of(
        "Phase",
        &[Rule(
            "has(self.outcomes) || has(self.otherwise)",
            "a phase has outcomes, otherwise, or both",
        )],
        &[("path", &[PATH]), ("otherwise", &[DEFINABLE])],
    ),
    of(
        "PhaseOutcomes",
        &[
            MinProperties(1),
            Rule(
                "(!has(self.Succeeded) || !has(self.Failed) || !self.Succeeded.exists(v, v in self.Failed)) && (!has(self.Succeeded) || !has(self.Other) || !self.Succeeded.exists(v, v in self.Other)) && (!has(self.Failed) || !has(self.Other) || !self.Failed.exists(v, v in self.Other))",
                "each value has one outcome",
            ),
        ],
        &[("Succeeded", &PHASE_VALUES), ("Failed", &PHASE_VALUES), ("Other", &PHASE_VALUES)],
    ),
    of("OwnTtlField", &[], &[("path", &[PATH]), ("outcomes", &[AtomicList, Items(&[DEFINABLE])])]),
    of("Guard", &[], &[("name", &[DNS_LABEL]), ("while", &[AtomicList])]),
    of(
        "Requirement",
        &[
            Rule(
                "[has(self.path), has(self.label), has(self.annotation)].exists_one(given, given)",
                "exactly one of path, label and annotation is tested",
            ),
            VALUES_AS_ASKED,
        ],
        &[
            ("path", &[MinLength(1), MaxLength(253), PATH]),
            ("label", &[MinLength(1), MaxLength(317), LABEL_KEY]),
            ("annotation", &[MinLength(1), MaxLength(317), ANNOTATION_KEYS]),
            ("values", &[AtomicList, Items(&[MaxLength(253)])]),
        ],
    ),
    // status.rs
    of(
        "RetentionPolicyStatus",
        &[],
        &[
            ("rules", &[MapBy(&["name"])]),
            ("next", &[AtomicList]),
            ("missingRules", &[AtomicList]),
            ("conditions", &[MapBy(&["type"])]),
        ],
    ),
    of("RuleStatus", &[], &[("name", &[Fact::Required])]),
    of("WaitingObjects", &[], &[("namespaces", &[MapBy(&["name"])])]),
    of("Trip", &[], &[("id", &[Fact::Required]), ("namespaces", &[MapBy(&["name"])])]),
    of("TrippedNamespace", &[], &[("name", &[Fact::Required])]),
    of(
        "MissingRule",
        &[],
        &[
            ("apiGroups", &[AtomicList, Items(&[MaxLength(253)])]),
            ("resources", &[AtomicList, Items(&[MaxLength(63)])]),
            ("verbs", &[AtomicList, Items(&[MaxLength(32)])]),
        ],
    ),
];

/// The columns of both kinds: name, type and path (R7). When the next deletion is due is a string, because kubectl shows
/// a date in the future as invalid.
pub(super) const COLUMNS: [(&str, &str, &str); 8] = [
    ("Kind", "string", ".spec.target.kind"),
    ("Mode", "string", ".spec.mode"),
    ("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
    ("Enforcing", "string", ".status.conditions[?(@.type==\"Enforcing\")].reason"),
    ("Finished", "integer", ".status.counts.finished"),
    ("Due", "integer", ".status.counts.due"),
    ("Next", "string", ".status.next[0].at"),
    ("Age", "date", ".metadata.creationTimestamp"),
];

/// As in Kubernetes' own selectors.
const VALUES_AS_ASKED: Fact = Rule(
    "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
    "In and NotIn have values, Exists and DoesNotExist have none",
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::v1alpha1::policy::{BUILT_IN_KINDS, KINDS_WITH_PODS};

    #[test]
    fn the_rules_name_the_kinds_that_the_types_name() {
        let kinds = |text: &str| {
            let list = text.rsplit_once('[').unwrap().1.trim_end_matches(']');
            list.split(", ").map(|kind| kind.trim_matches('\'').to_owned()).collect::<Vec<_>>()
        };
        let named = |of: &[(&str, &str)]| {
            of.iter().map(|(group, kind)| format!("{group}/{kind}")).collect::<Vec<_>>()
        };
        let [RuleAt { rule: finished, .. }, RuleAt { rule: pods, .. }] = SPEC else {
            panic!("{SPEC:?}")
        };
        assert_eq!(kinds(finished), named(&BUILT_IN_KINDS));
        assert_eq!(kinds(pods), named(&KINDS_WITH_PODS));
    }
}
