//! Files that are no configuration.

use super::{data, file, text};

#[test]
fn a_file_that_is_no_configuration_is_refused() {
    let version = "config.trainer.kubeflow.org/v1alpha1";
    for (given, expected) in [
        ("", "empty, expected at least `apiVersion` and `kind`".to_owned()),
        ("text", "invalid type: string \"text\", expected a section of named fields".to_owned()),
        ("kind: Configuration", "missing field `apiVersion`".to_owned()),
        ("apiVersion: v1", format!("apiVersion: unknown value `v1`, expected `{version}`")),
        (
            &format!("apiVersion: {version}\nkind: ConfigMap"),
            "kind: unknown value `ConfigMap`, expected `Configuration`".to_owned(),
        ),
    ] {
        assert_eq!(text(given).unwrap_err(), format!("config.yaml: {expected}"), "{given}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_that_names_it() {
    let error = file(&data("missing.yaml")).unwrap_err();
    let path = data("missing.yaml");
    let expected = "cannot be read: No such file or directory (os error 2)";
    assert_eq!(error, format!("{}: {expected}", path.display()));
}
