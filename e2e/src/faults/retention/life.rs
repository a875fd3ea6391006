//! The lives of objects under retention policies that faults are put into.

#![expect(clippy::indexing_slicing, reason = "the objects that are indexed are written here")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use invariants::retention::Terms;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};

use super::ground::Ground;
use super::objects::policy;
use super::place::Place;
use crate::faults::case::Case;
use crate::faults::disturb::{disturbed, made};
use crate::faults::life::{Life, Player};
use crate::faults::scenario::Scenario;
use crate::testenv::until::until_ok;

/// Long enough for an engine that was refused a list three times, and asks again after half a minute each time.
const PATIENCE: Duration = Duration::from_mins(3);

/// How late what is due may be, in milliseconds: the same.
const ALLOWANCE: i64 = 170_000;

/// Who tells events.
const REPORTER: &str = "trainjob-retention";

/// What judging such a life depends on.
pub(in crate::faults) fn terms() -> Terms {
    Terms { allowance: ALLOWANCE, ..Terms::default() }
}

/// Lives one life, in a namespace and behind a proxy of its own.
pub(in crate::faults) async fn live(
    ground: &Arc<Ground>,
    scenario: Scenario,
    case: Option<&Case>,
) -> Result<Life> {
    let place = Place::prepare(Arc::clone(ground), scenario.name()).await?;
    let player = Playing { scenario, place: &place };
    let (end, struck) = disturbed(&player, &place.proxy, case).await;
    let history = place.history().await?;
    let calls = made(&place.proxy.calls(), &history.requests);
    let events: Api<Event> = Api::namespaced(place.client.clone(), &place.namespace);
    let events = events.list(&ListParams::default()).await?.items;
    let own = events.into_iter().filter(|it| it.reporting_controller.as_deref() == Some(REPORTER));
    let life = Life {
        calls,
        history,
        left: place.names("jobs").await?,
        told: own.filter_map(|event| event.reason).collect(),
        struck,
        trouble: end.err().map(|error| format!("{error:#}")),
        ..Life::default()
    };
    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    namespaces.delete(&place.namespace, &DeleteParams::background()).await?;
    Ok(life)
}

/// A life that is being played.
struct Playing<'a> {
    scenario: Scenario,
    place: &'a Place,
}

/// The policy of a life.
fn jobs(ttl: i64) -> Value {
    policy("jobs", "Job", &json!({"ttlSecondsAfterFinished": ttl}))
}

impl Playing<'_> {
    async fn three_end(&self) -> Result<()> {
        let names = (0..3).map(|number| format!("job-{number:03}"));
        self.place.finished(names, &Value::Null).await
    }

    /// A policy that lets a Job go after its owner, both of which have ended.
    async fn child_and_owner(&self) -> Result<()> {
        let mut after = jobs(0);
        after["spec"]["owned"] = json!("AfterOwner");
        after["spec"]["selector"] = json!({"matchLabels": {"child": "yes"}});
        self.place.apply(after).await?;
        let owner = self.place.create("owner", &Value::Null, &Value::Null).await?;
        self.place.finish("owner").await?;
        let reference = json!({
            "apiVersion": "batch/v1", "kind": "Job", "name": "owner", "controller": true,
            "uid": owner.uid(),
        });
        let metadata = json!({"labels": {"child": "yes"}, "ownerReferences": [reference]});
        self.place.finished(["child".to_owned()], &metadata).await
    }

    /// Waits until the policy has tripped, and acknowledges that.
    async fn acknowledge(&self) -> Result<()> {
        until_ok("all are gone", PATIENCE, || async {
            // It is counted again, with another id, by an engine that has just been started.
            let status = self.place.status("jobs", |status| !status.is_null()).await?;
            if let Some(id) = status.pointer("/trip/id").and_then(Value::as_str) {
                let mut acknowledged = tripping();
                let annotations = json!({"lifecycle.trainjob.dev/acknowledge-trip": id});
                acknowledged["metadata"]["annotations"] = annotations;
                self.place.apply(acknowledged).await?;
            }
            let left = self.place.names("jobs").await?;
            ensure!(left.is_empty(), "{left:?} are there");
            Ok(())
        })
        .await
    }
}

/// A policy that three finished Jobs trip.
fn tripping() -> Value {
    let mut tripping = jobs(0);
    tripping["spec"]["breaker"] = json!({"maxCount": 2});
    tripping
}

impl Player for Playing<'_> {
    async fn begin(&self) -> Result<()> {
        match self.scenario {
            Scenario::PolicyTtl => self.place.apply(jobs(1)).await,
            Scenario::PolicyOverdue => {
                self.three_end().await?;
                self.place.apply(jobs(0)).await
            }
            Scenario::PolicyTrip => {
                self.three_end().await?;
                self.place.apply(tripping()).await
            }
            Scenario::PolicyOwner => self.child_and_owner().await,
            other => bail!("{other} is not a life of the retention engine"),
        }
    }

    async fn launch(&self) -> Result<()> {
        self.place.start().await
    }

    fn kill(&self) {
        self.place.kill();
    }

    async fn ready(&self) -> Result<()> {
        until_ok("an engine is ready", PATIENCE, || async {
            self.place.engine()?.wait_ready().await
        })
        .await
    }

    async fn play(&self) -> Result<()> {
        self.ready().await?;
        match self.scenario {
            Scenario::PolicyTtl => self.three_end().await?,
            Scenario::PolicyTrip => self.acknowledge().await?,
            _ => {}
        }
        // What users see of it.
        self.ended().await
    }

    async fn ended(&self) -> Result<()> {
        let expected = self.scenario.leaves();
        until_ok(format!("{expected:?} is left"), PATIENCE, || async {
            let left = self.place.names("jobs").await?;
            ensure!(left == expected, "{left:?} are there");
            Ok(())
        })
        .await
    }

    fn still_runs(&self) -> Result<()> {
        let engine = self.place.engine()?;
        match engine.process().ended() {
            None => Ok(()),
            Some(status) => bail!("the engine ended by itself: {status}\n{}", engine.log()?),
        }
    }
}
