//! What kubectl shows of policies.

use anyhow::{Context, Result, bail, ensure};
use e2e::fixtures::PATIENCE;
use e2e::until::until_ok;
use http::Method;
use serde_json::{Value, json};

use super::kubectl;
use super::place::{Kind, Place, least};

fn status() -> Value {
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-11-22T06:30:02Z",
        })
    };
    json!({
        "counts": {"finished": 4120, "due": 12},
        "next": [
            {"namespace": "a", "name": "j1", "at": "2126-11-22T06:31:07Z"},
            {"namespace": "a", "name": "j2", "at": "2126-11-22T06:31:08Z"},
        ],
        "conditions": [
            condition("Ready", "True", "Watching"),
            condition("Enforcing", "False", "AuditMode"),
        ],
    })
}

/// The words of each line.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[tokio::test]
async fn get_shows_the_columns_of_a_policy_before_and_after_its_first_status() -> Result<()> {
    const HEADER: [&str; 9] =
        ["NAME", "KIND", "MODE", "READY", "ENFORCING", "FINISHED", "DUE", "NEXT", "AGE"];
    let place = Place::new("columns").await?;
    for (kind, short) in Kind::ALL.into_iter().zip(["rp", "crp"]) {
        let name = "columns";
        let answer = place.send(Method::POST, kind, "", &kind.policy(name, &least())).await?;
        ensure!(answer.code == 201, "{}", answer.message());
        // A cell that is empty is no word.
        let text = kubectl(&place, &["get", short, name]).await?;
        let [header, row] = &*rows(&text) else { bail!("{text}") };
        ensure!(*header == HEADER, "{text}");
        ensure!(row.starts_with(&[name, "Job", "Audit"]) && row.len() == 4, "{text}");

        let path = format!("{name}/status");
        let answer = place.send(Method::PATCH, kind, &path, &json!({"status": status()})).await?;
        ensure!(answer.code == 200, "{}", answer.message());
        ensure!(answer.object["status"] == status(), "{}", answer.object);
        let text = kubectl(&place, &["get", kind.plural(), name]).await?;
        let row = rows(&text).pop().context("no row")?;
        let expected =
            [name, "Job", "Audit", "True", "AuditMode", "4120", "12", "2126-11-22T06:31:07Z"];
        ensure!(row.starts_with(&expected), "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn explain_says_what_each_field_is_for() -> Result<()> {
    let place = Place::new("explain").await?;
    // The API server publishes the schemas of a CRD some time after it serves the kind.
    for plural in Kind::ALL.map(Kind::plural) {
        until_ok(format!("the schema of {plural} is published"), PATIENCE, async || {
            kubectl(&place, &["explain", plural]).await
        })
        .await?;
    }
    for (path, type_, text) in [
        (
            "rp",
            "",
            "When finished objects of one kind are deleted in the namespace that the policy is in.",
        ),
        (
            "crp",
            "",
            "When finished objects of one kind are deleted, in all namespaces or in selected ones.",
        ),
        (
            "rp.spec.mode",
            "FIELD: mode <string>",
            "Audit deletes nothing and shows in the status what Enforce would delete. Enforce deletes. Default Audit.",
        ),
        ("rp.spec.mode", "ENUM:", "Audit Enforce"),
        (
            "crp.spec.rules.action.ttlSecondsAfterFinished",
            "FIELD: ttlSecondsAfterFinished <integer>",
            "They are deleted so many seconds after their start, 0 to 2147483647.",
        ),
        (
            "crp.spec.finished.guards.while.annotation",
            "FIELD: annotation <string>",
            "One that ends in * stands for all annotations whose keys begin so",
        ),
        (
            "crp.spec.limits.maximumSeconds",
            "FIELD: maximumSeconds <integer>",
            "An object about which no policy decides stays.",
        ),
        (
            "rp.spec.owned",
            "FIELD: owned <string>",
            "needs the right to get objects of the owner's kind, which the chart gives it by owners of the target",
        ),
        ("rp.status.countedAt", "FIELD: countedAt <string>", "counted every half minute"),
        ("rp.status.trip.id", "FIELD: id <string>", "lifecycle.trainjob.dev/acknowledge-trip"),
    ] {
        let explained = kubectl(&place, &["explain", path]).await?;
        // kubectl breaks lines where it likes.
        let words = explained.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [type_, text] {
            ensure!(words.contains(expected), "{path}: {expected:?} is not in\n{explained}");
        }
    }
    let fields = kubectl(&place, &["explain", "rp.spec", "--recursive"]).await?;
    for expected in ["target\t<Object> -required-", "rules\t<[]Object> -required-"] {
        ensure!(fields.contains(expected), "{expected:?} is not in\n{fields}");
    }
    Ok(())
}
