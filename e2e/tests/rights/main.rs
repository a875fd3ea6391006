//! The rights that the chart gives are enough, and none of them is too much.
//!
//! First every story is played with all rights: it comes to its end, and nothing that is asked for is
//! refused. That tells which story takes which right. Then each right is taken away in turn, from a
//! program of its own: before the story that takes it is over, the API server's words for the missing right
//! are in the log, or in an answer, for whoever looks for the reason. The API server of the box runs the
//! admission plugin `OwnerReferencesPermissionEnforcement`, as that of OpenShift does.

#![expect(clippy::indexing_slicing, reason = "a test may fail loudly")]

mod gangs;
mod judgement;
mod operator;
mod story;
mod webhook;

use std::pin::pin;

use anyhow::{Result, bail, ensure};
use e2e::fixtures::PATIENCE;
use e2e::proxy::Proxy;
use e2e::rights::Grant;
use e2e::until::until_ok;
use futures::stream::{self, StreamExt as _};
use invariants::Request;

/// How many programs run at the same time.
const LANES: usize = 12;

/// A program that plays a story, with some rights.
trait Player {
    /// Plays to the end of the story.
    async fn play(&self) -> Result<()>;
    /// What it has said to whoever looks for the reason of trouble.
    fn said(&self) -> Result<String>;
    /// What stands between it and the API server.
    fn proxy(&self) -> &Proxy;
}

/// Plays a story with all rights; returns what was asked for.
async fn told(name: &str, player: &impl Player) -> Result<Vec<Request>> {
    if let Err(error) = player.play().await {
        bail!("{name} with all rights: {error:#}\n{}", player.said()?);
    }
    let requests = player.proxy().requests();
    let refused: Vec<_> = requests.iter().filter(|it| is_refused(it)).collect();
    ensure!(refused.is_empty(), "{name} with all rights was refused: {refused:#?}");
    Ok(requests)
}

/// Plays a story without one right; sees that this is in its way, and that nothing else is.
async fn misses(player: &impl Player, missing: &Grant, refusal: &str) -> Result<()> {
    tokio::select! {
        biased;
        said = says(player, refusal) => said?,
        Ok(()) = player.play() => {
            ensure!(is_for_news(missing), "nobody misses it");
            says(player, refusal).await?;
        }
    }
    let requests = player.proxy().requests();
    let refused = requests.iter().filter(|it| is_refused(it));
    let others: Vec<_> = refused.filter(|it| !missing.covers(it)).collect();
    // It is the creation of a child that is refused.
    let expected = others.is_empty() || missing.resource.ends_with("/finalizers");
    ensure!(expected, "something else was refused too: {others:#?}");
    Ok(())
}

async fn says(player: &impl Player, refusal: &str) -> Result<()> {
    until_ok(format!("{refusal:?} is said"), PATIENCE, || async {
        // Within a quotation, quotes are escaped.
        let said = player.said()?.replace("\\\"", "\"");
        ensure!(said.contains(refusal), "it has said:\n{said}");
        Ok(())
    })
    .await
}

/// Whether it is for news, which come later without it: with the next list, or the next look at the one
/// object that is watched.
fn is_for_news(grant: &Grant) -> bool {
    grant.verb == "watch" || (grant.verb == "list" && !grant.names.is_empty())
}

fn is_refused(request: &Request) -> bool {
    request.answer.code == Some(403)
}

/// Takes each right away in turn; returns what is to be said of those that are not missed.
async fn unmissed(grants: &[Grant], check: impl AsyncFn(&Grant) -> Result<()>) -> Vec<String> {
    let check = &check;
    let checks = stream::iter(grants).map(|grant| async move {
        check(grant).await.err().map(|error| format!("without {grant}: {error:#}"))
    });
    let mut checks = pin!(checks.buffer_unordered(LANES));
    let mut unmissed = Vec::new();
    while let Some(trouble) = checks.next().await {
        unmissed.extend(trouble);
    }
    unmissed
}

/// All rights but one.
fn without(grants: &[Grant], one: &Grant) -> Vec<Grant> {
    grants.iter().filter(|grant| *grant != one).cloned().collect()
}
