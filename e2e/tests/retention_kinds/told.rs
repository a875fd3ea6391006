//! What an object tells of its end, stated once more and without the core: what a person would look at.

use anyhow::{Context, Result, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde_json::Value;
use trainjob_api::time::Timestamp;
use trainjob_retention_core::facts::Finished;
use trainjob_retention_core::kind::BuiltIn;
use trainjob_retention_core::outcome::{Bond, Outcome};
use trainjob_retention_core::seconds::Seconds;

/// The end of an object.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) outcome: Outcome,
    pub(crate) reason: String,
    time: Timestamp,
    own_ttl: Option<i64>,
    awaits_release: bool,
    bond: Bond,
}

/// The condition of this type, if it is true.
pub(crate) fn holds<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|it| it["type"] == kind && it["status"] == "True")
}

impl Told {
    /// What an object tells; `None` if it has not ended.
    pub(crate) fn of(kind: BuiltIn, object: &Value) -> Result<Option<Self>> {
        match kind {
            BuiltIn::Job | BuiltIn::TrainJob => Self::by_condition(object, ["Complete", "Failed"]),
            BuiltIn::JobSet => Self::by_condition(object, ["Completed", "Failed"]),
            BuiltIn::Pod => Self::of_pod(object),
            BuiltIn::Workload => Self::of_workload(object),
            BuiltIn::TrainJobRecord => Ok(None),
        }
    }

    fn new(outcome: Outcome, reason: &str, time: Timestamp) -> Self {
        Self {
            outcome,
            reason: reason.to_owned(),
            time,
            own_ttl: None,
            awaits_release: false,
            bond: Bond::None,
        }
    }

    fn by_condition(object: &Value, [good, bad]: [&str; 2]) -> Result<Option<Self>> {
        let good = holds(object, good).map(|condition| (Outcome::Succeeded, condition));
        let bad = holds(object, bad).map(|condition| (Outcome::Failed, condition));
        let Some((outcome, condition)) = good.or(bad) else { return Ok(None) };
        let reason = text(&condition["reason"]);
        let is_train_job = object["spec"].get("runtimeRef").is_some();
        Ok(Some(Self {
            own_ttl: object["spec"]["ttlSecondsAfterFinished"].as_i64(),
            awaits_release: is_train_job && reason == "DeadlineExceeded",
            ..Self::new(outcome, reason, time(&condition["lastTransitionTime"])?)
        }))
    }

    fn of_pod(pod: &Value) -> Result<Option<Self>> {
        let (spec, status) = (&pod["spec"], &pod["status"]);
        let outcome = match text(&status["phase"]) {
            "Succeeded" => Outcome::Succeeded,
            "Failed" => Outcome::Failed,
            _ => return Ok(None),
        };
        let containers = status["containerStatuses"].as_array();
        let ended: Vec<_> =
            containers.into_iter().flatten().map(|it| &it["state"]["terminated"]).collect();
        let failed = ended.iter().find(|ended| ended["exitCode"] != 0);
        let of_container = failed.map_or("", |ended| text(&ended["reason"]));
        let reason = status["reason"].as_str().unwrap_or(of_container);
        let all = spec["containers"].as_array().context("no containers")?.len();
        let times = if ended.len() == all {
            ended.iter().map(|ended| time(&ended["finishedAt"])).collect::<Result<Vec<_>>>()?
        } else {
            let writers = pod["metadata"]["managedFields"].as_array().context("no writers")?;
            let of_status = writers.iter().filter(|writer| writer["subresource"] == "status");
            of_status.map(|writer| time(&writer["time"])).collect::<Result<_>>()?
        };
        let last = times.into_iter().max().context("no time")?;
        Ok(Some(Self::new(outcome, reason, last)))
    }

    fn of_workload(workload: &Value) -> Result<Option<Self>> {
        if let Some(finished) = holds(workload, "Finished") {
            let reason = text(&finished["reason"]);
            let (outcome, bond) = match reason {
                "Succeeded" => (Outcome::Succeeded, Bond::None),
                "Failed" => (Outcome::Failed, Bond::None),
                _ => (Outcome::Other, Bond::UntilOwnerFinished),
            };
            let at = time(&finished["lastTransitionTime"])?;
            return Ok(Some(Self { bond, ..Self::new(outcome, reason, at) }));
        }
        let Some(evicted) = holds(workload, "Evicted") else { return Ok(None) };
        let given_up = text(&evicted["reason"]).strip_prefix("DeactivatedDueTo");
        let Some(reason) = given_up.filter(|_| workload["spec"]["active"] == false) else {
            return Ok(None);
        };
        let at = time(&evicted["lastTransitionTime"])?;
        Ok(Some(Self { bond: Bond::OnlyWithOwner, ..Self::new(Outcome::Deactivated, reason, at) }))
    }
}

/// Sees that what was read of an object is what it tells.
pub(crate) fn compare(object: &Value, told: Option<&Told>, read: Option<&Finished>) -> Result<()> {
    let (told, Finished { namespace, name, facts }) = match (told, read) {
        (Some(told), Some(read)) => (told, read),
        (None, None) => return Ok(()),
        (told, read) => anyhow::bail!("it tells {told:?}, and is read as {read:?}"),
    };
    let [finish] = &*facts.finishes else { anyhow::bail!("{:?}", facts.finishes) };
    let end = (finish.outcome, &*finish.reason, finish.time.get());
    ensure!(end == (told.outcome, &*told.reason, Some(told.time)), "{told:?}: {finish:?}");
    let own_ttl = finish.own_ttl.map(Seconds::get);
    ensure!(own_ttl == told.own_ttl, "{told:?}: {finish:?}");
    let guards = (finish.guards.release, finish.guards.archive);
    ensure!(guards == (told.awaits_release, false), "{told:?}: {finish:?}");
    ensure!(finish.bond == told.bond, "{told:?}: {finish:?}");

    let metadata = &object["metadata"];
    let version = facts.resource_version.to_string();
    let identity = (facts.uid.to_string(), &*version, facts.terminating.get().is_some());
    let expected = (
        text(&metadata["uid"]).to_owned(),
        text(&metadata["resourceVersion"]),
        metadata.get("deletionTimestamp").is_some(),
    );
    ensure!(identity == expected, "{facts:?}");
    let place = (&**namespace, &**name, facts.created);
    let created = time(&metadata["creationTimestamp"])?;
    let expected = (text(&metadata["namespace"]), text(&metadata["name"]), created);
    ensure!(place == expected, "{facts:?}");
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let controller = owners.into_iter().find(|owner| owner["controller"] == true);
    let controller = controller.map(|owner| text(&owner["uid"]).to_owned());
    ensure!(facts.controller().map(|owner| owner.uid.to_string()) == controller, "{facts:?}");
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn time(value: &Value) -> Result<Timestamp> {
    let time = Time::deserialize(value).with_context(|| format!("no time: {value}"))?;
    Ok(Timestamp::from(&time))
}
