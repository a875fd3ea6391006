use std::{collections::BTreeSet, fs, path::PathBuf};

use schemars::schema_for;
use serde_json::Value;

use super::*;

const HEADER: &str =
    "apiVersion: config.lifecycle.trainjob.dev/v1alpha1\nkind: AccountingConfiguration\n";

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
fn without_a_file_there_are_the_defaults() {
    let config = Config::load(&Flags::default()).unwrap();
    assert_eq!(config, load("").unwrap());
    assert_eq!(config.settings, settings::Settings::default());
    assert_eq!((config.concurrency, config.namespaces_shown), (64, Some(1_000)));
    assert!(config.copy_labels.is_empty() && config.warnings().is_empty());
    let election = config.leader_election.unwrap();
    assert_eq!((&*election.name, election.namespace), ("trainjob-accounting", None));
}

#[test]
fn a_file_says_how_pods_are_counted() {
    let config = load(
        "accounting:\n  batchPeriod: 1s\n  holdLimit: \"0\"\n  gpuResources: [example.com/gpu]\n  \
         copyLabels: [cost-center]\n  failureMessages: false\n  concurrency: 4\n\
         metrics: {byNamespace: false}\n\
         leaderElection: {leaderElect: false, resourceNamespace: ops}\n",
    );
    let config = config.unwrap();
    let settings = settings::Settings {
        gpu_resources: vec!["example.com/gpu".to_owned()],
        batch_period: Duration::from_secs(1),
        hold_limit: None,
        failure_messages: false,
    };
    assert_eq!(config.settings, settings);
    assert_eq!((&config.copy_labels[..], config.concurrency), (&["cost-center".to_owned()][..], 4));
    assert_eq!((config.leader_election, config.namespaces_shown), (None, None));
    assert_eq!(config.lease, (Some("ops".to_owned()), "trainjob-accounting".to_owned()));
    assert_eq!(config.warnings.len(), 1, "the operator marks no Pod");
}

#[test]
fn errors_name_the_field() {
    let many: Vec<_> = (0..17).map(|number| format!("label-{number}")).collect();
    let many = format!("accounting: {{copyLabels: [{}]}}\n", many.join(", "));
    for (text, field) in [
        ("accounting: {mode: Exact}\n", "mode"),
        ("accounting: {batchPeriod: 500ms}\n", "accounting.batchPeriod"),
        ("accounting: {batchPeriod: 61s}\n", "accounting.batchPeriod"),
        ("accounting: {holdLimit: 9s}\n", "accounting.holdLimit"),
        ("accounting: {holdLimit: 25h}\n", "accounting.holdLimit"),
        ("accounting: {concurrency: 0}\n", "accounting.concurrency"),
        (&many, "accounting.copyLabels"),
        ("metrics: {secureServing: false, auth: {enabled: true}}\n", "metrics.auth.enabled"),
        ("health: {readinessEndpointName: healthz}\n", "health.readinessEndpointName"),
        ("leaderElection: {renewDeadline: 15s}\n", "leaderElection.renewDeadline"),
        ("accounting: {}\naccounting: {}\n", "accounting"),
        ("kind: Configuration\n", "kind"),
    ] {
        let error = load(text).unwrap_err();
        assert!(error.contains(field), "{text}: {error}");
    }
}

#[test]
fn flags_of_commands_are_lengths_of_time_within_bounds() {
    let bounds = Duration::from_secs(1)..=Duration::from_hours(1);
    let default = Duration::from_mins(2);
    let read = |text: Option<&str>| {
        let own = text.map(|text| ("after", text.to_owned())).into_iter().collect();
        let flags = Flags { own, ..Flags::default() };
        flags.duration(("after", "--after"), default, &bounds).map_err(|error| error.to_string())
    };
    assert_eq!(read(None), Ok(default));
    assert_eq!(read(Some("90s")), Ok(Duration::from_secs(90)));
    for wrong in ["soon", "0", "2h", "-1s", ""] {
        assert!(read(Some(wrong)).unwrap_err().starts_with("--after: "), "{wrong}");
    }
}

/// The settings of the file, by their path, as its schema has them.
fn settings_of(schema: &Value, whole: &Value, path: &str) -> BTreeSet<String> {
    let schema = match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => whole.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return BTreeSet::from([path.to_owned()]);
    };
    let inner = properties.iter().flat_map(|(name, of)| {
        let dot = if path.is_empty() { "" } else { "." };
        settings_of(of, whole, &format!("{path}{dot}{name}"))
    });
    inner.collect()
}

#[test]
fn every_setting_is_documented_and_nothing_else() {
    let schema = serde_json::to_value(schema_for!(Configuration)).unwrap();
    let mut expected = settings_of(&schema, &schema, "");
    expected.remove("apiVersion");
    expected.remove("kind");
    let page = include_str!("../../../../docs/accounting.md");
    let section = page.split("\n### ").find(|part| part.starts_with("Configuration of"));
    let rows = section.unwrap().lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: BTreeSet<_> =
        rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect();
    assert_eq!(documented, expected);
}
