//! Every TrainJob and every runtime that the CRDs admit is read, and built or refused with a message that
//! names the field to change. Nothing panics.
//!
//! `PROPTEST_CASES=100000 cargo test -p trainjob-core --test schema_properties` takes longer.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod generator;

use std::{collections::HashSet, sync::LazyLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use trainjob_api::{ClusterTrainingRuntime, TrainJob, crd, jobset::JobSetView, time::Timestamp};
use trainjob_core::{
    Action, Now, Observed,
    build::{BuildError, Objects, Runtime, build, name_problem, snapshot, update_suspended},
    facts::{JobFacts, JobSetFacts},
    mark::Accounting,
    observed::{
        KnownRuntime, Listed, PodGroups, Presence, ReadJobSet, Reading, Readings, Settings,
    },
    plan,
    take_over::Comparison,
};

use crate::generator::Generator;

/// The `spec` of a kind's schema.
static TRAIN_JOB: LazyLock<JSONSchemaProps> =
    LazyLock::new(|| spec_of(&crd::train_job_crd(crd::FieldUpdates::default())));
static RUNTIME: LazyLock<JSONSchemaProps> =
    LazyLock::new(|| spec_of(&crd::cluster_training_runtime_crd()));
/// The name of every field of either.
static FIELDS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let mut fields = HashSet::from(["spec".to_owned(), "metadata".to_owned(), "name".to_owned()]);
    fields_of(&TRAIN_JOB, &mut fields);
    fields_of(&RUNTIME, &mut fields);
    fields
});

fn spec_of(crd: &CustomResourceDefinition) -> JSONSchemaProps {
    let schema = crd.spec.versions[0].schema.clone().unwrap().open_api_v3_schema.unwrap();
    schema.properties.unwrap()["spec"].clone()
}

fn fields_of(schema: &JSONSchemaProps, fields: &mut HashSet<String>) {
    for (name, schema) in schema.properties.iter().flatten() {
        fields.insert(name.clone());
        fields_of(schema, fields);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        fields_of(items, fields);
    }
}

/// A TrainJob, as it is stored.
fn job(seed: u64, richness: u32) -> Value {
    let mut generator = Generator::new(seed, richness);
    let name = generator.one_of(&[
        "tj",
        "a",
        "a-name-that-is-as-long-as-a-name-of-a-job-may-be-in-kubernetes",
    ]);
    let spec = generator.field("spec", &TRAIN_JOB);
    json!({
        "metadata": {"name": name, "namespace": "ns", "uid": "uid", "resourceVersion": "7"},
        "spec": spec,
    })
}

fn runtime(seed: u64, richness: u32) -> Value {
    let mut generator = Generator::new(seed, richness);
    let name = generator.one_of(&["plain", "torchtune-llama3.2-1b", "torchtune-of-nothing"]);
    json!({"metadata": {"name": name}, "spec": generator.field("spec", &RUNTIME)})
}

fn read_job(stored: &Value) -> TrainJob {
    let read = serde_json::from_value(stored.clone());
    read.unwrap_or_else(|error| panic!("{error}: {stored}"))
}

fn read_runtime(stored: &Value) -> Runtime {
    let read = serde_json::from_value::<ClusterTrainingRuntime>(stored.clone());
    read.unwrap_or_else(|error| panic!("{error}: {stored}")).into()
}

/// Whether a message has the path of a field in it.
fn names_a_field(message: &str) -> bool {
    let words = message.split(|c: char| c.is_whitespace() || "\"':,;[]()".contains(c));
    words.into_iter().any(|word| {
        word.contains('.')
            && word.trim_end_matches('.').split('.').all(|part| FIELDS.contains(part))
    })
}

fn observed<'a>(
    job: &'a TrainJob,
    facts: &'a JobFacts,
    job_set: Option<&'a JobSetFacts>,
    runtime: &'a Runtime,
    readings: &'a Readings,
    settings: &'a Settings,
) -> Observed<'a> {
    let pod_groups = PodGroups { coscheduling: Presence::Absent, volcano: Presence::NotServed };
    Observed {
        job: facts,
        manifest: facts.finished.is_none().then_some(job),
        job_set,
        pod_groups,
        runtime: KnownRuntime::There(runtime),
        readings,
        settings,
        accounting: Accounting::default(),
        comparison: Comparison::Due,
        listed: Listed::Everything,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(2_000),
        // A seed is as short as any other.
        max_shrink_iters: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_admitted_is_built_or_refused_by_the_name_of_a_field(
        seeds: (u64, u64),
        richness in 0..6_u32,
    ) {
        let (job, runtime) = (read_job(&job(seeds.0, richness)), read_runtime(&runtime(seeds.1, richness)));
        match build(&job, &runtime) {
            Ok(Objects { job_set, .. }) => prop_assert_eq!(name_problem(&job_set), None),
            Err(BuildError::Snapshot(problem)) => prop_assert!(false, "{problem}"),
            Err(error) => prop_assert!(names_a_field(&error.to_string()), "{error}"),
        }
    }

    #[test]
    fn what_is_admitted_is_planned_until_its_jobset_is_there_or_it_waits(
        seeds: (u64, u64),
        richness in 0..6_u32,
    ) {
        let (job, runtime) = (read_job(&job(seeds.0, richness)), read_runtime(&runtime(seeds.1, richness)));
        let (facts, settings) = (JobFacts::of(&job), Settings::default());
        let kept = snapshot::render(&job, &runtime).unwrap();
        for snapshot in [Reading::NotRead, Reading::Absent, Reading::Found(kept)] {
            let readings = Readings { snapshot, ..Readings::default() };
            let observed = observed(&job, &facts, None, &runtime, &readings, &settings);
            // It is made, or failed, or something has to be read, or it is said what it waits for.
            let idle = plan(&observed, Now::at(Timestamp(1_000))).actions.is_empty();
            prop_assert_eq!(idle, facts.managed_elsewhere);
        }
    }

    #[test]
    fn a_suspended_job_may_become_any_other(
        seeds: (u64, u64, u64),
        richness in 0..6_u32,
    ) {
        let runtime = read_runtime(&runtime(seeds.0, richness));
        let [mut before, mut after] = [seeds.1, seeds.2].map(|seed| read_job(&job(seed, richness)));
        for job in [&mut before, &mut after] {
            job.metadata.name = Some("tj".to_owned());
            job.spec.suspend = Some(true);
        }
        let (Ok(built), Ok(desired)) = (build(&before, &runtime), build(&after, &runtime)) else {
            return Ok(());
        };
        if let Some(update) = update_suspended(&built.job_set, &desired.job_set) {
            prop_assert_eq!(update_suspended(&update.updated, &desired.job_set), None);
            prop_assert!(update.patch().is_ok());
        }
        let mut stored = built.job_set;
        stored.metadata.uid = Some("uid-of-jobset".to_owned());
        stored.metadata.resource_version = Some("70".to_owned());
        stored.metadata.creation_timestamp = Some(Timestamp(900).into());
        let view: JobSetView = serde_json::from_value(serde_json::to_value(&stored).unwrap()).unwrap();
        let (facts, of_job_set) = (JobFacts::of(&after), JobSetFacts::of(&view));
        let readings = Readings {
            snapshot: Reading::Found(snapshot::render(&after, &runtime).unwrap()),
            job_set: ReadJobSet::of(&stored).ok(),
            ..Readings::default()
        };
        let settings = Settings::default();
        let observed = observed(&after, &facts, Some(&of_job_set), &runtime, &readings, &settings);
        let planned = plan(&observed, Now::at(Timestamp(1_000)));
        // A JobSet that is there is changed, never made again beside it.
        let creates = |action: &Action| matches!(action, Action::CreateJobSet { .. });
        prop_assert!(!planned.actions.iter().any(creates));
    }

    #[test]
    fn a_snapshot_gives_back_any_runtime_that_is_admitted(seed: u64, richness in 0..6_u32) {
        let runtime = read_runtime(&runtime(seed, richness));
        let mut of_job = read_job(&json!({
            "metadata": {"name": "tj", "namespace": "ns", "uid": "uid"},
            "spec": {"runtimeRef": {"name": "plain"}},
        }));
        of_job.spec.runtime_ref.name = runtime.metadata.name.clone().unwrap();
        let kept = snapshot::render(&of_job, &runtime).unwrap();
        prop_assert_eq!(snapshot::read(&of_job, &kept), Ok(runtime));
    }
}
