//! The kinds of retention policies on a real API server: what is admitted, what is refused and in which words, what is
//! filled in, and what kubectl shows (`docs/retention.md`, 2 and 7). Nothing here executes a policy.
//!
//! All tests share one box, in which nothing runs but the API server.

#![expect(
    clippy::indexing_slicing,
    reason = "what is not in a JSON value is null, which no test expects"
)]

mod largest;
mod mistakes;
mod place;
mod refused;
mod shown;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use e2e::apply::apply;
use e2e::{workspace, yaml};
use http::Method;
use serde_json::{Value, json};

use self::place::{Kind, Place, least};

const EXAMPLES: &str = "examples/retention";

/// The policies of a folder of examples.
fn policies(folder: &str) -> Result<Vec<Value>> {
    yaml::documents(&workspace::read_all(folder)?.join("\n---\n"))
}

#[tokio::test]
async fn examples_are_admitted_and_nothing_of_them_is_dropped() -> Result<()> {
    let place = Place::new("examples").await?;
    let folders = [EXAMPLES.to_owned(), format!("{EXAMPLES}/kinds")];
    let mut count = 0;
    for manifest in
        folders.iter().map(|folder| policies(folder)).collect::<Result<Vec<_>>>()?.concat()
    {
        let stored = apply(&place.client, &place.namespace, vec![manifest.clone()]).await?;
        let stored = serde_json::to_value(&stored)?;
        ensure!(has(&stored[0]["spec"], &manifest["spec"]), "{manifest}\nis stored as\n{stored}");
        count += 1;
    }
    ensure!(count >= 16, "only {count} examples");
    Ok(())
}

/// Somebody may apply one to see what it says. It must not delete anything one day without having been looked at.
#[test]
fn recipes_for_kinds_that_nobody_tried_do_not_enforce_and_say_where_they_are_from() -> Result<()> {
    let folder = format!("{EXAMPLES}/kinds");
    for text in workspace::read_all(&folder)? {
        let recipe = yaml::documents(&text)?.swap_remove(0);
        let kind = recipe["spec"]["target"]["kind"].as_str().unwrap_or_default();
        ensure!(recipe["spec"].get("mode").is_none(), "{kind}");
        let head = text.lines().take_while(|line| line.starts_with('#'));
        let head = head.collect::<Vec<_>>().join(" ").replace("# ", "");
        ensure!(head.contains("The facts are from"), "{kind}: {head}");
        ensure!(head.contains("It was not run against the real controller"), "{kind}: {head}");
    }
    Ok(())
}

/// Whether `part` is in `whole`: its fields, at any depth.
fn has(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(field, part)| whole.get(field).is_some_and(|whole| has(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len()
                && whole.iter().zip(part).all(|(whole, part)| has(whole, part))
        }
        _ => whole == part,
    }
}

#[tokio::test]
async fn the_api_server_fills_in_what_the_documentation_says() -> Result<()> {
    let place = Place::new("defaults").await?;
    for kind in Kind::ALL {
        let mut spec = least();
        spec["rules"] = json!([
            {
                "name": "last", "match": {"outcomes": ["Failed"]},
                "action": {"keepLast": {"count": 1}}, "pods": {"ttlSecondsAfterFinished": 0},
            },
            {"name": "rest", "action": {"keep": true}},
        ]);
        spec["finished"] = json!({"conditions": [{"type": "Done", "outcome": "Other"}]});
        let mut expected = spec.clone();
        for (place, value) in [
            ("/rules/0/action/keepLast/minimumAgeSeconds", json!(0)),
            ("/rules/0/pods/phases", json!("Terminal")),
            ("/rules/0/delete", json!("Object")),
            ("/rules/1/delete", json!("Object")),
            ("/finished/conditions/0/status", json!("True")),
            ("/mode", json!("Audit")),
            ("/priority", json!(0)),
            ("/owned", json!("Skip")),
            ("/overrides", json!({"annotation": false, "ownTTL": "Respect"})),
            ("/holds", json!({"maximumSeconds": 2_592_000})),
            ("/propagation", json!("Foreground")),
            ("/deletesPerSecond", json!(20)),
            ("/breaker", json!({"maxCount": 50})),
        ] {
            place::set(&mut expected, place, value)?;
        }
        let answer = place.send(Method::POST, kind, "", &kind.policy("defaults", &spec)).await?;
        ensure!(answer.code == 201, "{}", answer.message());
        ensure!(answer.object["spec"] == expected, "{kind:?}: {}", answer.object["spec"]);
    }
    Ok(())
}

#[tokio::test]
async fn the_target_of_a_policy_is_immutable_and_the_rest_is_not() -> Result<()> {
    let place = Place::new("immutable").await?;
    for kind in Kind::ALL {
        let policy = kind.policy("immutable", &least());
        let answer = place.send(Method::POST, kind, "", &policy).await?;
        ensure!(answer.code == 201, "{}", answer.message());
        for target in [
            json!({"apiGroup": "jobset.x-k8s.io", "kind": "JobSet"}),
            json!({"apiGroup": "", "kind": "Pod"}),
        ] {
            let change = json!({"spec": {"target": target}});
            let answer = place.send(Method::PATCH, kind, "immutable", &change).await?;
            let expected = "target is immutable: make another policy for another kind";
            place::refused(&answer, "spec.target", expected)?;
        }
        let change = json!({"spec": {"mode": "Enforce", "priority": 7}});
        let answer = place.send(Method::PATCH, kind, "immutable", &change).await?;
        ensure!(answer.code == 200, "{}", answer.message());
    }
    Ok(())
}

/// kubectl of the cluster.
async fn kubectl(place: &Place, arguments: &[&str]) -> Result<String> {
    let (program, kubeconfig): (PathBuf, PathBuf) =
        (place.cluster.kubectl().to_owned(), place.cluster.kubeconfig());
    let mut command = std::process::Command::new(program);
    command.arg("--kubeconfig").arg(kubeconfig).args(["--namespace", &place.namespace]);
    command.args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{arguments:?}: {complaint}");
    Ok(String::from_utf8(output.stdout)?)
}
