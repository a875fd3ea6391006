//! What a runtime patch may say.

use anyhow::Result;
use serde_json::{Value, json};

use super::check;
use super::parts::{node, patch, patch_of, plain, replicated_job, runtime};
use super::row::Row;

fn with(what: &'static str, patches: Value) -> Row {
    let pod = json!({
        "restartPolicy": "Never",
        "volumes": [{"name": "data", "emptyDir": {}}],
        "initContainers": [{"name": "prepare", "image": "example.com/prepare:1"}],
        "containers": [
            {"name": "node", "image": "example.com/train:1"},
            {"name": "sidecar", "image": "example.com/side:1", "env": [{"name": "A", "value": "1"}]},
        ],
    });
    let replicated_jobs = json!([replicated_job("node", Some("trainer"), &pod)]);
    let runtime = runtime(&json!({"numNodes": 1}), &replicated_jobs);
    Row::new(what, runtime, json!({"runtimePatches": patches}))
}

#[tokio::test]
async fn a_manager_has_a_domain() -> Result<()> {
    check("manager", managers()).await
}

fn managers() -> Vec<Row> {
    let row =
        |what, manager: &str| with(what, json!([{"manager": "a.io/b"}, {"manager": manager}]));
    let denied = |row: Row, value: &str, why: &str| {
        row.denied(&format!("spec.runtimePatches[1].manager: Invalid value: \"{value}\": {why}"))
    };
    let prefix = "must be a domain-prefixed path (such as \"acme.io/foo\")";
    let domain = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let path = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
    vec![
        row("that of Kueue", "kueue.x-k8s.io/manager"),
        denied(row("no domain", "me"), "me", prefix),
        denied(row("nothing before", "/me"), "/me", prefix),
        denied(row("nothing after", "a.io/"), "a.io/", prefix),
        denied(row("no domain name", "A.io/b"), "A.io", domain),
        denied(row("no path", "a.io/b c"), "b c", path),
    ]
}

#[tokio::test]
async fn patch_of_a_name_unknown_to_the_runtime_is_denied() -> Result<()> {
    check("names", names()).await
}

fn names() -> Vec<Row> {
    let row = |what, job: &str, pod: Value| {
        with(what, json!([{"manager": "a.io/b"}, patch("a.io/c", job, &pod)]))
    };
    let denied = |row: Row, name: &str, why: &str| {
        row.denied(&format!("spec.runtimePatches[1]: Invalid value: \"{name}\": {why}"))
    };
    let job = "must not have replicated job that doesn't exist in the runtime job template";
    let init = "must not have initContainer that doesn't exist in the runtime job node";
    let container = "must not have container that doesn't exist in the runtime job node";
    vec![
        row("a container", "node", json!({"containers": [{"name": "sidecar"}]})),
        row("an init container", "node", json!({"initContainers": [{"name": "prepare"}]})),
        row("a volume", "node", json!({"volumes": [{"name": "new", "emptyDir": {}}]})),
        denied(row("no such job", "other", json!({})), "other", job),
        denied(
            row("no such container", "node", json!({"containers": [{"name": "x"}]})),
            "x",
            container,
        ),
        denied(
            row("no such init container", "node", json!({"initContainers": [{"name": "x"}]})),
            "x",
            init,
        ),
        denied(
            row(
                "an init container as a container",
                "node",
                json!({"containers": [{"name": "prepare"}]}),
            ),
            "prepare",
            container,
        ),
    ]
}

#[tokio::test]
async fn patch_of_environment_variables_of_ancestor_replicated_jobs_is_denied() -> Result<()> {
    check("variables", variables()).await
}

fn variables() -> Vec<Row> {
    let env = json!([{"name": "B", "value": "1"}]);
    let row = |what, list: &str, container: &str| {
        let pod = json!({list: [{"name": container, "env": env}]});
        with(what, json!([patch("a.io/b", "node", &pod)]))
    };
    let replicated_jobs = json!([replicated_job(
        "node",
        Some("trainer"),
        &json!({
            "restartPolicy": "Never",
            "initContainers": [{"name": "dataset-initializer", "image": "example.com/fetch:1"}],
            "containers": [{"name": "node", "image": "example.com/train:1"}],
        })
    )]);
    let as_init = Row {
        runtime: runtime(&json!({"numNodes": 1}), &replicated_jobs),
        ..row("of an init container", "initContainers", "dataset-initializer")
    };
    let text = |name: &str| {
        format!(
            "spec.runtimePatches[0]: Invalid value: \"{name}\": must not have envs for the dataset-initializer, model-initializer, node containers"
        )
    };
    vec![
        row("of a sidecar", "containers", "sidecar"),
        row("of the trainer's replicated job", "containers", "node").denied(&text("node")),
        as_init.denied(&text("dataset-initializer")),
    ]
}

#[tokio::test]
async fn patch_that_gives_a_field_two_sources_is_denied() -> Result<()> {
    check("sources", sources()).await
}

fn sources() -> Vec<Row> {
    let row = |what, pod: Value| with(what, json!([patch("a.io/b", "node", &pod)]));
    let env = |variable: Value| json!({"containers": [{"name": "sidecar", "env": [variable]}]});
    let from_secret =
        json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    let claim = json!({"claimName": "c"});
    let ending = "a patch adds to what the runtime has, use another name";
    vec![
        row("another value", env(json!({"name": "A", "value": "2"}))),
        row("a value and a source", env(from_secret)).denied(&format!(
            "spec.runtimePatches[0]: Invalid value: \"A\": the variable in container sidecar of the runtime job node would have value and valueFrom.secretKeyRef: {ending}"
        )),
        row("two volumes in one", json!({"volumes": [{"name": "data", "persistentVolumeClaim": claim}]}))
            .denied(&format!(
                "spec.runtimePatches[0]: Invalid value: \"data\": the volume of the runtime job node would have emptyDir and persistentVolumeClaim: {ending}"
            )),
    ]
}

#[tokio::test]
async fn patch_of_metadata_other_than_labels_and_annotations_gives_a_warning() -> Result<()> {
    check("metadata", metadata()).await
}

fn metadata() -> Vec<Row> {
    let row = |what, metadata: Value| {
        let job = json!({"name": "node", "template": {"metadata": metadata}});
        Row::new(what, plain(), json!({"runtimePatches": [patch_of("a.io/b", &job)]}))
    };
    let heard =
        "spec.runtimePatches[0]: labels and annotations are all that has an effect of metadata";
    vec![
        row("labels", json!({"labels": {"a": "b"}, "annotations": {"a": "b"}})),
        row("a name", json!({"name": "x"})).warned(heard),
        row("a finalizer", json!({"finalizers": ["a.io/b"]})).warned(heard),
    ]
}

#[tokio::test]
async fn updates_by_kueue_are_admitted() -> Result<()> {
    check("kueue", kueue()).await
}

fn kueue() -> Vec<Row> {
    let empty = json!({"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": {}}}});
    let of_user = patch("a.io/b", "node", &json!({"nodeSelector": {"disk": "ssd"}}));
    let admitted = patch_of(
        "kueue.x-k8s.io/manager",
        &json!({"name": "node", "template": {"spec": {"template": {
            "metadata": {"labels": {"kueue.x-k8s.io/podset": "node"}},
            "spec": {"nodeSelector": {"zone": "a"}, "tolerations": [{"operator": "Exists"}]},
        }}}}),
    );
    let job = |suspend: bool, entry: &Value| json!({"suspend": suspend, "runtimePatches": [of_user, entry]});
    let row = |what, spec| Row::new(what, runtime(&json!({"numNodes": 1}), &json!([node()])), spec);
    vec![
        row("an empty entry behind the user's", job(true, &empty)),
        row("patched and resumed in one request", job(true, &empty)).then(job(false, &admitted)),
        row("patched first", job(true, &empty)).then(job(true, &admitted)),
        row("resumed", job(true, &admitted)).then(job(false, &admitted)),
        row("suspended", job(false, &admitted)).then(job(true, &admitted)),
        // docs/compatibility.md, "Releases": the only request that later ones take and 1.31 does not.
        row("emptied again", job(true, &admitted)).then(job(true, &empty)).not_applied_by_oldest(
            "spec.runtimePatches[1].trainingRuntimeSpec.template.spec: Invalid value: \"null\"",
        ),
    ]
}
