//! A life with what goes wrong in it, and what was asked for meanwhile.

use std::future::pending;
use std::sync::Arc;

use anyhow::Result;
use futures::future::join_all;
use invariants::Request;

use super::brown_out;
use super::case::Case;
use super::life::{Made, Player, live};
use super::purpose::purpose;
use super::strike::Strike;
use crate::faults::proxy::{Call, Proxy};

/// Lives a life with what goes wrong in this case. Returns how it ended, and how many different things did go wrong.
pub(super) async fn disturbed(
    player: &impl Player,
    proxy: &Proxy,
    case: Option<&Case>,
) -> (Result<()>, usize) {
    let blows = case.into_iter().flat_map(Case::blows);
    let strikes: Vec<Strike> = blows.map(|blow| Strike::prepare(proxy, blow)).collect();
    let brown_out = case.and_then(|case| {
        Some(brown_out::UnderWay::prepare(proxy, case.brown_out()?, &case.to_string()))
    });
    let lived = Box::pin(live(player, proxy, &strikes));
    let endless = strikes.iter().filter(|strike| strike.is_endless()).map(Strike::lasts);
    let ended = async {
        join_all(endless).await;
        pending().await
    };
    let end = match &brown_out {
        None => tokio::select! { end = lived => end, never = ended => never },
        Some(brown_out) => {
            tokio::select! { end = lived => end, never = brown_out.run() => never }
        }
    };
    let struck = strikes.iter().filter(|strike| strike.count() > 0).count()
        + brown_out.iter().filter(|brown_out| brown_out.has_struck()).count();
    (end, struck)
}

/// What was asked for in a life, and whether it was done.
pub(super) fn made(calls: &[Arc<Call>], requests: &[Request]) -> Vec<Made> {
    let is_work = |call: &Call| !call.is_watch() && !call.is_for_time();
    let work = calls.iter().zip(requests).filter(|(call, _)| is_work(call));
    work.map(|(call, request)| {
        let done = request.answer.code.is_some_and(|code| (200..300).contains(&code));
        Made { purpose: purpose(call), done }
    })
    .collect()
}
