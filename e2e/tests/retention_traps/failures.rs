//! Deletions that fail, and objects that stay.

use anyhow::{Result, ensure};
use e2e::faults::retention::policy;
use e2e::fixtures::PATIENCE;
use e2e::proxy::{Call, Fault};
use e2e::until::until_ok;
use invariants::retention::Terms;
use serde_json::{Value, json};

use super::{WINDOW, is_enforcing, named, place, ttl};

/// What deletions are answered; `None`: nothing.
const ANSWERS: [Option<u16>; 7] =
    [Some(403), Some(404), Some(409), Some(429), Some(500), Some(503), None];

#[tokio::test(flavor = "multi_thread")]
async fn deletion_that_is_refused_or_lost_is_repeated_until_it_is_done() -> Result<()> {
    let place = place("refused").await?;
    place.apply(policy("jobs", "Job", &ttl(0))).await?;
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;
    let mut names = vec!["plain".to_owned()];
    for answer in ANSWERS {
        for times in [1, 3] {
            let code = answer.map_or("lost".to_owned(), |code| code.to_string());
            let name = format!("told-{code}-{times}");
            let fault = answer.map_or(Fault::DropReply, |status| Fault::Answer {
                status,
                retry_after: (status == 429).then_some(1),
            });
            let wanted = name.clone();
            let is_it = move |call: &Call| call.verb == "delete" && call.name == wanted;
            place.proxy.inject(is_it, 1..=times, fault);
            names.push(name);
        }
    }
    place.finished(names.clone(), &Value::Null).await?;
    place.becomes("jobs", &[]).await?;
    place.judge(&Terms::default()).await?;
    let deleted = place.deleted();
    for name in &names {
        let (asked, accepted) = deleted.get(name).copied().unwrap_or_default();
        let times: usize = name.rsplit('-').next().and_then(|it| it.parse().ok()).unwrap_or(0);
        // What was lost was done: the watch shows it.
        let expected = if name.contains("lost") { 1 } else { times + 1 };
        ensure!(accepted == 1 && asked >= expected, "{name}: {asked} asked, {accepted} accepted");
        ensure!(asked <= times + 1, "{name}: asked {asked} times");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn object_with_a_foreign_finalizer_is_deleted_once_and_delays_no_other() -> Result<()> {
    let place = place("finalizers").await?;
    place.apply(policy("jobs", "Job", &ttl(1))).await?;
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;
    place.finished(named("stays", 25), &json!({"finalizers": ["example.com/archive"]})).await?;
    place.finished(named("goes", 20), &Value::Null).await?;
    let stay: Vec<String> = named("stays", 25).collect();
    place.becomes("jobs", &stay.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    until_ok("each deletion was asked for", PATIENCE, || async {
        ensure!(place.deletions() >= 45, "{} were", place.deletions());
        Ok(())
    })
    .await?;
    place.asks_for_nothing_more(WINDOW).await?;
    for name in &stay {
        place.edit("jobs", name, &json!({"metadata": {"finalizers": null}})).await?;
    }
    place.becomes("jobs", &[]).await?;
    place.judge(&Terms::default()).await?;
    let twice: Vec<_> =
        place.deleted().into_iter().filter(|(_, counts)| *counts != (1, 1)).collect();
    ensure!(twice.is_empty(), "not once: {twice:?}");
    Ok(())
}
