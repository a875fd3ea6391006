use std::{fs, path::PathBuf};

use schemars::schema_for;
use serde_json::Value;

use super::*;

const HEADER: &str =
    "apiVersion: config.lifecycle.trainjob.dev/v1alpha1\nkind: RetentionConfiguration\n";

fn load(text: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("config.yaml");
    fs::write(&path, format!("{HEADER}{text}")).unwrap();
    let flags = Flags { config: Some(path), ..Flags::default() };
    Config::load(&flags).map_err(|error| {
        let error = error.to_string();
        error.split_once(": ").map_or(error.clone(), |(_, problem)| problem.to_owned())
    })
}

#[test]
fn without_a_file_there_are_the_defaults_and_a_warning_that_nothing_is_watched() {
    let config = Config::load(&Flags::default()).unwrap();
    assert_eq!(config, load("").unwrap());
    assert_eq!((config.deletes_per_second, config.concurrency), (Some(50.0), 32));
    assert_eq!(config.leader_election, None);
    assert_eq!(config.clock_jump_pause(), Duration::from_mins(1));
    let excluded: Vec<_> = config.excluded_namespaces.iter().map(|name| &**name).collect();
    assert_eq!(excluded, ["kube-node-lease", "kube-public", "kube-system"]);
    assert_eq!(config.warnings().len(), 1);
}

#[test]
fn a_file_says_what_is_watched_and_how_fast_it_is_deleted() {
    let config = load(
        "retention:\n  targets:\n  - {apiGroup: batch, kind: Job, resource: jobs, pods: true}\n  \
         deletesPerSecond: 0\n  concurrency: 4\n  excludedNamespaces: [ci]\n\
         leaderElection: {leaderElect: true, resourceNamespace: ops}\n",
    );
    let config = config.unwrap();
    let job = Target {
        api_group: "batch".to_owned(),
        kind: "Job".to_owned(),
        resource: "jobs".to_owned(),
        pods: true,
        owner_delete: false,
    };
    assert_eq!(config.targets, [job]);
    assert_eq!((config.deletes_per_second, config.concurrency), (None, 4));
    assert!(config.excluded_namespaces.contains("ci") && config.warnings().is_empty());
    let election = config.leader_election.unwrap();
    assert_eq!(
        (&*election.name, election.namespace.as_deref()),
        ("trainjob-retention", Some("ops"))
    );
}

#[test]
fn errors_name_the_field() {
    let job = "{apiGroup: batch, kind: Job, resource: jobs}";
    for (text, expected) in [
        ("retentio: {}".to_owned(), "unknown field `retentio`"),
        ("retention: {target: []}".to_owned(), "retention.target: unknown field `target`"),
        (
            "retention: {targets: [{apiGroup: batch, kind: Job}]}".to_owned(),
            "retention.targets[0]: missing field `resource`",
        ),
        (
            format!("retention: {{targets: [{job}, {job}]}}"),
            "retention.targets[1].kind: `Job` is there already, expected once",
        ),
        (
            "retention: {targets: [{apiGroup: \"\", kind: Secret, resource: secrets}]}".to_owned(),
            "retention.targets[0].kind: `Secret` of the core group, expected Pod",
        ),
        (
            "retention: {targets: [{apiGroup: batch, kind: Job, resource: jobs/x}]}".to_owned(),
            "retention.targets[0].resource: \"jobs/x\", expected a plural name such as jobs",
        ),
        ("retention: {concurrency: 0}".to_owned(), "retention.concurrency: invalid value"),
        ("retention: [1]".to_owned(), "retention: invalid type: sequence"),
        (
            "metrics: {secureServing: false, auth: {enabled: true}}".to_owned(),
            "metrics.auth.enabled: true, but metrics.secureServing is false",
        ),
        (
            "leaderElection: {leaderElect: true, renewDeadline: 15s}".to_owned(),
            "leaderElection.renewDeadline: 15s is too long",
        ),
        (
            "health: {readinessEndpointName: healthz}".to_owned(),
            "health.readinessEndpointName: `/healthz` is the liveness endpoint",
        ),
        ("metrics: {nearestDeadlines: 1}".to_owned(), "unknown field `nearestDeadlines`"),
    ] {
        let error = load(&text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// The settings below a schema, by their paths.
fn settings(root: &Value, schema: &Value, path: &str, into: &mut BTreeSet<String>) {
    let name = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
    let schema = name.map_or(schema, |name| &root["$defs"][name]);
    match schema["properties"].as_object() {
        None => {
            into.insert(path.to_owned());
        }
        Some(fields) => {
            for (name, schema) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                settings(root, schema, &path, into);
            }
        }
    }
}

#[test]
fn every_setting_is_documented_and_nothing_else_is() {
    let schema = schema_for!(Configuration).to_value();
    let mut expected = BTreeSet::new();
    settings(&schema, &schema, "", &mut expected);
    expected.retain(|path| path.contains('.'));
    let page = include_str!("../../../../docs/retention.md");
    let table = page.split_once("| setting |").unwrap().1.split("\n\n").next().unwrap();
    let documented: BTreeSet<_> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next().map(str::to_owned))
        .collect();
    assert_eq!(documented, expected);
}
