//! The facts of records (`docs/accounting.md`, 5): bounds, list types, and that a record is about one TrainJob for ever.

use super::fact::{
    Fact::{self, AtomicList, Items, MapBy, MaxLength, MaxProperties, MinLength, Rule},
    Facts, of,
};

/// A name of a resource, a reason or an exit code is a key, and keys have no schema: only their number is bounded.
const RESOURCES: Fact = MaxProperties(8);
const WORDS: Fact = MaxProperties(32);

const SUMS: &[(&str, &[Fact])] =
    &[("reasons", &[WORDS]), ("seconds", &[RESOURCES]), ("wasted", &[RESOURCES])];

pub(super) const FACTS: &[Facts] = &[
    of(
        "TrainJobRecordSpec",
        &[Rule("self == oldSelf", "a record is about one TrainJob for ever")],
        &[],
    ),
    of(
        "TrainJobRecordStatus",
        &[],
        &[
            ("jobSets", &[AtomicList]),
            ("causes", &[AtomicList]),
            ("replicatedJobs", &[MapBy(&["name"])]),
            ("exitCodes", &[MaxProperties(17)]),
            ("firstFailures", &[AtomicList]),
            ("settling", &[AtomicList, Items(&[MinLength(1), MaxLength(64)])]),
            ("lost", &[MaxProperties(8)]),
            ("inexact", &[Fact::Set, Items(&[MinLength(1), MaxLength(32)])]),
            ("conditions", &[MapBy(&["type"])]),
        ],
    ),
    of("RecordedReplicatedJob", &[], &[("name", &[Fact::Required]), ("attempts", &[AtomicList])]),
    of(
        "Totals",
        &[],
        &[("seconds", &[RESOURCES]), ("wasted", &[RESOURCES]), ("wastedByCause", &[WORDS])],
    ),
    of("Attempt", &[], SUMS),
    of(
        "EarlierAttempts",
        &[],
        &[
            ("reasons", &[WORDS]),
            ("seconds", &[RESOURCES]),
            ("wasted", &[RESOURCES]),
            ("wastedByCause", &[WORDS]),
        ],
    ),
];

/// The columns: name, type and path.
pub(super) const COLUMNS: [(&str, &str, &str); 8] = [
    ("Job", "string", ".spec.trainJob.name"),
    ("Outcome", "string", ".status.outcome"),
    ("GPU-Hours", "string", ".status.totals.gpuHours"),
    ("Wasted", "string", ".status.totals.wastedGpuHours"),
    ("Failed", "integer", ".status.totals.pods.failed"),
    ("Restarts", "integer", ".status.totals.restarts"),
    ("Final", "string", ".status.conditions[?(@.type==\"Final\")].status"),
    ("Age", "date", ".metadata.creationTimestamp"),
];
