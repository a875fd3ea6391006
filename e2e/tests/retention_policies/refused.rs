//! What the schema refuses, rule by rule, and in which words. The mistakes are in `mistakes.rs`.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use e2e::{workspace, yaml};
use http::Method;
use serde_json::{Value, json};

use super::mistakes::{Row, good, limits, rules};
use super::place::{Kind, Place, refused, set, without_nulls};

/// The messages of all CEL rules of both kinds.
fn messages() -> Result<BTreeSet<String>> {
    fn collect(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for rule in fields
                    .get("x-kubernetes-validations")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                {
                    into.extend(rule["message"].as_str().map(str::to_owned));
                }
                fields.values().for_each(|value| collect(value, into));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
            _ => {}
        }
    }
    let files = workspace::read_all("charts/trainjob-operator/files/retention-crds")?;
    let mut messages = BTreeSet::new();
    for definition in yaml::documents(&files.join("\n---\n"))? {
        collect(&definition, &mut messages);
    }
    Ok(messages)
}

/// Sends a policy with one mistake and sees what is said.
async fn check(place: &Place, kind: Kind, row: &Row) -> Result<()> {
    let mut spec = good(kind);
    for (at, to) in &row.changes {
        set(&mut spec, at, to.clone())?;
    }
    // What is to be left out is null until here.
    let policy = without_nulls(&kind.policy("refused", &spec));
    let answer = place.send(Method::POST, kind, "?dryRun=All", &policy).await?;
    refused(&answer, row.field, row.text)
}

async fn all_refused(place: &Place, rows: &[Row]) -> Result<()> {
    let mut problems = Vec::new();
    for kind in Kind::ALL {
        let fits = |row: &&Row| {
            kind == Kind::Cluster || !["/limits", "/namespaceSelector"].contains(&row.changes[0].0)
        };
        for row in rows.iter().filter(fits) {
            if let Err(problem) = check(place, kind, row).await {
                problems.push(format!("{kind:?}, {:?}: {problem:#}", row.changes));
            }
        }
    }
    ensure!(problems.is_empty(), "{}:\n{}", problems.len(), problems.join("\n"));
    Ok(())
}

#[tokio::test]
async fn every_rule_refuses_its_mistake_in_its_own_words() -> Result<()> {
    let place = Place::new("refused").await?;
    for kind in Kind::ALL {
        let policy = kind.policy("good", &good(kind));
        let answer = place.send(Method::POST, kind, "?dryRun=All", &policy).await?;
        ensure!(answer.code == 201, "{}", answer.message());
    }
    let rows = rules();
    all_refused(&place, &rows).await?;
    let mut seen: BTreeSet<String> = rows.iter().map(|row| row.text.to_owned()).collect();
    // The one rule about a change has a test of its own.
    seen.insert("target is immutable: make another policy for another kind".to_owned());
    let all = messages()?;
    ensure!(seen == all, "{:?}", seen.symmetric_difference(&all).collect::<Vec<_>>());
    Ok(())
}

#[tokio::test]
async fn values_out_of_range_and_malformed_strings_are_refused() -> Result<()> {
    let place = Place::new("limits").await?;
    all_refused(&place, &limits()).await
}

#[tokio::test]
async fn a_misspelt_field_is_refused_by_name() -> Result<()> {
    let place = Place::new("misspelt").await?;
    for (at, field) in [
        ("/rule", "spec.rule"),
        ("/rules/0/match/outcome", "spec.rules[0].match.outcome"),
        ("/rules/0/action/ttlSecondsAfterFinishd", "spec.rules[0].action.ttlSecondsAfterFinishd"),
        ("/finished/guard", "spec.finished.guard"),
        ("/limits", "spec.limits"),
    ] {
        let mut spec = good(Kind::Namespaced);
        set(&mut spec, at, json!({}))?;
        let policy = Kind::Namespaced.policy("misspelt", &spec);
        let answer = place.send(Method::POST, Kind::Namespaced, "?dryRun=All", &policy).await?;
        let expected = format!("unknown field \"{field}\"");
        ensure!(answer.code == 400 && answer.message().contains(&expected), "{}", answer.object);
    }
    Ok(())
}
