//! RBAC: the permissions that the chart grants are sufficient, and each of them is necessary.
//!
//! First every scenario is played with all permissions: it comes to its end, and nothing that is asked for is
//! refused. That tells which scenario needs which permission. Then each permission is taken away in turn, from a
//! program of its own: before the scenario that needs it is over, the API server's words for the missing permission
//! are in the log, or in an answer, for whoever looks for the reason. The API server of the box runs the
//! admission plugin `OwnerReferencesPermissionEnforcement`, as that of OpenShift does.

#![expect(clippy::indexing_slicing, reason = "a test may fail loudly")]

mod gangs;
mod operator;
mod question;
mod scenario;
mod webhook;

use std::fmt::Debug;
use std::pin::pin;

use anyhow::{Context, Result, bail, ensure};
use e2e::fixtures::PATIENCE;
use e2e::proxy::Proxy;
use e2e::rbac::Grant;
use e2e::until::until_ok;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt as _};
use invariants::Request;

/// How many programs run at the same time.
const LANES: usize = 12;

/// A program that plays a scenario, with some permissions.
trait Player {
    /// Plays to the end of the scenario.
    async fn play(&self) -> Result<()>;
    /// What it has said to whoever looks for the reason of trouble.
    fn said(&self) -> Result<String>;
    /// What stands between it and the API server.
    fn proxy(&self) -> &Proxy;
}

/// Plays a scenario with all permissions; returns what was asked for.
async fn told(name: &str, player: &impl Player) -> Result<Vec<Request>> {
    if let Err(error) = player.play().await {
        bail!("{name} with all permissions: {error:#}\n{}", player.said()?);
    }
    let requests = player.proxy().requests();
    let refused: Vec<_> = requests.iter().filter(|it| is_refused(it)).collect();
    ensure!(refused.is_empty(), "{name} with all permissions was refused: {refused:#?}");
    Ok(requests)
}

/// Plays a scenario without one permission; sees that this is in its way, and that nothing else is.
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

/// What one kind of program goes through.
trait Play {
    /// A scenario that it plays.
    type Scenario: Copy + Debug + 'static;
    /// A program that plays one.
    type Player<'a>: Player
    where
        Self: 'a;
    /// All scenarios. Where several need a permission, the first is played without it.
    const SCENARIOS: &'static [Self::Scenario];

    /// Starts a program with these permissions.
    async fn start(&self, scenario: Self::Scenario, grants: &[Grant]) -> Result<Self::Player<'_>>;

    /// Whether a scenario in which this was asked for needs a permission, and needs it.
    fn takes(scenario: Self::Scenario, requests: &[Request], grant: &Grant) -> bool {
        let _ = scenario;
        requests.iter().any(|request| grant.covers(request))
    }

    /// What the API server says where a permission is missing.
    fn refusal(grant: &Grant) -> String {
        grant.refusal()
    }
}

/// Plays all scenarios with all permissions, and then takes each permission away in turn.
async fn each_is_missed<P: Play>(play: &P, grants: &[Grant]) -> Result<()> {
    let played = P::SCENARIOS.iter().map(|scenario| async move {
        let player = play.start(*scenario, grants).await?;
        anyhow::Ok((*scenario, told(&format!("{scenario:?}"), &player).await?))
    });
    let played = try_join_all(played).await?;
    let first = |grant: &Grant| {
        let takes = |(scenario, requests): &&(P::Scenario, Vec<Request>)| {
            P::takes(*scenario, requests, grant)
        };
        played.iter().find(takes).map(|(scenario, _)| *scenario)
    };
    let unused: Vec<_> = grants.iter().filter(|it| first(it).is_none()).collect();
    ensure!(unused.is_empty(), "no scenario takes {unused:#?}");

    let first = &first;
    let checks = stream::iter(grants).map(|missing| async move {
        let others: Vec<_> = grants.iter().filter(|it| *it != missing).cloned().collect();
        let missed = async {
            let scenario = first(missing).context("no scenario takes it")?;
            misses(&play.start(scenario, &others).await?, missing, &P::refusal(missing)).await
        };
        missed.await.err().map(|error| format!("without {missing}: {error:#}"))
    });
    let mut checks = pin!(checks.buffer_unordered(LANES));
    let mut unmissed = Vec::new();
    while let Some(trouble) = checks.next().await {
        unmissed.extend(trouble);
    }
    ensure!(unmissed.is_empty(), "{unmissed:#?}");
    Ok(())
}
