//! Jobs of one namespace whose requests of one kind hang: a proxy keeps each from the API server for longer than the
//! operator waits.

use std::time::Duration;

use anyhow::Result;
use trainjob_api::time::Timestamp;

use super::super::jobs::{arm, create, suspended};
use super::case::Hang;
use super::load::{Beside, Round};
use super::neighbour::settled;
use crate::faults::proxy::{Fault, Proxy, Scope};

/// How long a request hangs.
const HELD: Duration = Duration::from_secs(30);
/// Seconds from when deadlines are set until they come.
const AHEAD: i64 = 2;

/// Measures the neighbour while these requests of another namespace hang.
pub(super) async fn beside(beside: &Beside<'_>, hang: Hang) -> Result<Round> {
    let Beside { rig, neighbour, jobs, .. } = *beside;
    let namespace = rig.cluster.namespace("hostile").await?;
    let by_creation = hang.verb == "create";
    if !by_creation {
        create(rig, &namespace, &suspended(), jobs).await?;
    }
    let proxy = Proxy::start(&rig.cluster, Scope::Cluster).await?;
    let raw = rig.raw_through(&proxy).await?;
    let _operator = rig.start_operator_through(&proxy, &configuration(hang)).await?;
    neighbour.settled(rig).await?;
    if !by_creation {
        settled(rig, &namespace, jobs).await?;
    }

    let hostile = namespace.clone();
    let hangs = proxy.inject(
        move |call| {
            call.namespace == hostile
                && call.verb == hang.verb
                && (&*call.resource, &*call.subresource) == (hang.resource, hang.subresource)
        },
        1..=usize::MAX,
        Fault::Delay(HELD),
    );
    let strikes = async {
        if by_creation {
            create(rig, &namespace, &suspended(), jobs).await?;
            return Ok(());
        }
        let now = Timestamp::from(std::time::SystemTime::now());
        arm(rig, &namespace, now.plus(AHEAD)).await
    };
    let measured = async {
        hangs.reached().await?;
        neighbour.lives(rig, &raw).await
    };
    let ((), served) = tokio::try_join!(strikes, measured)?;
    let count = hangs.befallen();
    Ok(Round { served, load: format!("{count} requests hung"), lacking: usize::from(count == 0) })
}

fn configuration(hang: Hang) -> String {
    let limit = |places| {
        format!("controller: {{groupKindConcurrency: {{TrainJob.trainer.kubeflow.org: {places}}}}}")
    };
    hang.places.map(limit).unwrap_or_default()
}
