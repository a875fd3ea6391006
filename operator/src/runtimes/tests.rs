//! What is read from a folder, and whose a runtime is.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

fn runtime(name: &str) -> Value {
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "annotations": {OWNER[0]: "release", OWNER[1]: "system"}},
        "spec": {"mlPolicy": {"numNodes": 1}},
    })
}

/// Reads a folder with these files.
fn load(files: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Result<RuntimesConfig, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let own: BTreeMap<_, _> =
        flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let from = folder.path().display().to_string();
    let flags = Flags {
        own: own.into_iter().chain([(FROM.0, from.clone())]).collect(),
        ..Flags::default()
    };
    RuntimesConfig::load(&flags).map_err(|error| error.to_string().replace(&from, "FOLDER"))
}

#[test]
fn a_folder_has_a_runtime_in_each_file() {
    let text = |name| runtime(name).to_string();
    let (torch, jax) = (text("torch"), text("jax"));
    let config =
        load(&[("torch.json", &torch), ("jax.json", &jax), ("README", "no")], &[]).unwrap();
    let names: Vec<_> = config.runtimes.iter().map(DynamicObject::name_any).collect();
    assert_eq!(names, ["jax", "torch"]);
    assert_eq!((config.remove, config.timeout), (false, DEFAULT));
    assert_eq!(serde_json::to_value(&config.runtimes[1]).unwrap(), runtime("torch"));

    let config = load(&[("jax.json", &jax)], &[("remove", "true"), ("timeout", "5m")]).unwrap();
    assert_eq!((config.remove, config.timeout), (true, Duration::from_mins(5)));
}

#[test]
fn what_is_no_runtime_of_a_release_is_refused_by_file_and_field() {
    let without = |path: &str| {
        let mut runtime = runtime("torch");
        let (parent, field) = path.rsplit_once('/').unwrap();
        runtime.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(field);
        runtime.to_string()
    };
    let other =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}).to_string();
    for (text, expected) in [
        ("{".to_owned(), "FOLDER/torch.json: EOF"),
        (other, "FOLDER/torch.json: kind: \"Secret\", expected ClusterTrainingRuntime"),
        (without("/metadata/name"), "FOLDER/torch.json: metadata.name: missing, expected"),
        (
            without("/metadata/annotations"),
            "FOLDER/torch.json: metadata.annotations[meta.helm.sh/release-name]: missing, expected",
        ),
    ] {
        let error = load(&[("torch.json", &text)], &[]).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let error = load(&[], &[]).unwrap_err();
    assert!(error.starts_with("--from: FOLDER has no file *.json, expected one"), "{error}");
    let torch = runtime("torch").to_string();
    let error = load(&[("torch.json", &torch)], &[("timeout", "0s")]).unwrap_err();
    assert!(error.starts_with("--timeout: 0s, expected a length of time"), "{error}");
    let error = RuntimesConfig::load(&Flags::default()).unwrap_err().to_string();
    assert_eq!(error, "--from: missing, expected the folder with the runtimes");
}

#[test]
fn a_runtime_is_of_the_release_that_helm_notes_in_it() {
    let metadata = |name: &str, release: Option<&str>| {
        let mut runtime: DynamicObject = serde_json::from_value(runtime(name)).unwrap();
        let annotations = runtime.annotations_mut();
        match release {
            Some(release) => annotations.insert(OWNER[0].to_owned(), release.to_owned()),
            None => annotations.remove(OWNER[0]),
        };
        runtime.metadata
    };
    let ours = metadata("torch", Some("release"));
    for (there, expected) in [
        (metadata("torch", Some("release")), true),
        (metadata("torch", Some("other")), false),
        (metadata("torch", None), false),
        (ObjectMeta::default(), false),
    ] {
        assert_eq!(is_of_same_release(&there, &ours), expected, "{there:?}");
    }
}
