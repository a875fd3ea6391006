//! The built-in kinds of retention policies, read from objects that their controllers made (`docs/retention.md`, R10).
//!
//! kube-controller-manager makes the ends of Jobs, the JobSet controller those of JobSets, the operator those of TrainJobs
//! and Kueue those of Workloads. No kubelet runs here: KWOK writes the ends of Pods by the stages of this project, and the
//! eviction of one is written as the kubelet writes it. No controller makes records of TrainJobs yet.
//!
//! From its creation on, every version that is seen of an object has an end if and only if its own fields tell one. So an
//! end that is read too early fails the test, too.

#![expect(
    clippy::indexing_slicing,
    reason = "what is not in a JSON value is null, which no test expects"
)]

mod objects;
mod told;

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use e2e::fixtures::PATIENCE;
use e2e::kueue::{Clock, QueueOptions, Setting};
use e2e::until::until;
use http::Request;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use trainjob_retention_core::facts::Reader;
use trainjob_retention_core::finished::Definition;
use trainjob_retention_core::interner::Interner;
use trainjob_retention_core::kind::BuiltIn;
use trainjob_retention_core::labels::LabelKeys;
use trainjob_retention_core::outcome::Outcome;

use self::told::{Told, holds};

/// The kinds that have controllers here, with the resources that they are served as.
const KINDS: [(BuiltIn, &str); 5] = [
    (BuiltIn::Job, "jobs"),
    (BuiltIn::Pod, "pods"),
    (BuiltIn::JobSet, "jobsets"),
    (BuiltIn::TrainJob, "trainjobs"),
    (BuiltIn::Workload, "workloads"),
];

/// An object: its kind, its name (for a Workload that of its owner), the condition or the phase by which it has come as far
/// as it comes, and how and why it has ended, if it has.
type Row = (BuiltIn, &'static str, &'static str, Option<(Outcome, &'static str)>);

const ROWS: [Row; 25] = [
    (BuiltIn::Job, "completes", "Complete", Some((Outcome::Succeeded, "CompletionsReached"))),
    (BuiltIn::Job, "by-policy", "Complete", Some((Outcome::Succeeded, "SuccessPolicy"))),
    (BuiltIn::Job, "fails", "Failed", Some((Outcome::Failed, "BackoffLimitExceeded"))),
    (BuiltIn::Job, "fails-by-policy", "Failed", Some((Outcome::Failed, "PodFailurePolicy"))),
    (BuiltIn::Job, "overdue", "Failed", Some((Outcome::Failed, "DeadlineExceeded"))),
    (BuiltIn::Job, "waits", "Suspended", None),
    (BuiltIn::Pod, "completes", "Succeeded", Some((Outcome::Succeeded, ""))),
    (BuiltIn::Pod, "fails", "Failed", Some((Outcome::Failed, "Error"))),
    (BuiltIn::Pod, "out-of-memory", "Failed", Some((Outcome::Failed, "OOMKilled"))),
    (BuiltIn::Pod, "evicted", "Failed", Some((Outcome::Failed, "Evicted"))),
    (BuiltIn::Pod, "runs", "Running", None),
    (BuiltIn::JobSet, "completes", "Completed", Some((Outcome::Succeeded, "AllJobsCompleted"))),
    (BuiltIn::JobSet, "fails", "Failed", Some((Outcome::Failed, "FailedJobs"))),
    (BuiltIn::JobSet, "fails-again", "Failed", Some((Outcome::Failed, "ReachedMaxRestarts"))),
    (BuiltIn::JobSet, "waits", "Suspended", None),
    (BuiltIn::TrainJob, "trains", "Complete", Some((Outcome::Succeeded, "AllJobsCompleted"))),
    (BuiltIn::TrainJob, "breaks", "Failed", Some((Outcome::Failed, "FailedJobs"))),
    (BuiltIn::TrainJob, "too-long", "Failed", Some((Outcome::Failed, "DeadlineExceeded"))),
    (BuiltIn::TrainJob, "paused", "Suspended", None),
    (BuiltIn::Workload, "queued", "Finished", Some((Outcome::Succeeded, "Succeeded"))),
    (BuiltIn::Workload, "queued-fails", "Finished", Some((Outcome::Failed, "Failed"))),
    (BuiltIn::Workload, "out-of-sync", "Finished", Some((Outcome::Other, "OutOfSync"))),
    (
        BuiltIn::Workload,
        "given-up",
        "Evicted",
        Some((Outcome::Deactivated, "MaximumExecutionTimeExceeded")),
    ),
    (BuiltIn::Workload, "stopped", "Evicted", None),
    (BuiltIn::Workload, "stays", "Admitted", None),
];

#[tokio::test(flavor = "multi_thread")]
async fn ends_are_read_as_the_controllers_of_the_built_in_kinds_tell_them() -> Result<()> {
    let setting = Setting::shared(Clock::Creation).await?;
    setting
        .test("kinds", QueueOptions::default(), async |case| {
            let begun = Instant::now();
            objects::create(case).await?;
            let created = begun.elapsed().as_secs();
            let (client, namespace) = (&case.tenant.client, case.tenant.namespace.as_str());
            // What is read wrongly is not looked at again: it might be right the next time.
            let ended = until("all objects have ended", PATIENCE, || async {
                match look(client, namespace).await {
                    Ok(seen) => {
                        ROWS.iter().all(|row| find(&seen, row).is_some()).then_some(Ok(seen))
                    }
                    wrong => Some(wrong),
                }
            });
            let seen = match ended.await {
                Ok(seen) => seen?,
                Err(waited) => {
                    let seen = look(client, namespace).await?;
                    let missing: Vec<_> =
                        ROWS.iter().filter(|row| find(&seen, row).is_none()).collect();
                    bail!("{waited:#}: {missing:?}\n{seen:#?}")
                }
            };
            let ended = begun.elapsed().as_secs();
            println!("all objects created after {created} s, all ended after {ended} s");
            for row in &ROWS {
                let told = &find(&seen, row).context("it was there")?.told;
                let end = told.as_ref().map(|told| (told.outcome, told.reason.as_str()));
                ensure!(end == row.3, "{row:?}: {told:?}");
            }
            Ok(())
        })
        .await
}

/// An object, and what it tells of its end, which is what was read.
#[derive(Debug)]
struct Seen {
    kind: BuiltIn,
    object: Value,
    told: Option<Told>,
}

/// The object of a row, if it has come as far as it comes.
fn find<'a>(seen: &'a [Seen], (kind, name, sign, _): &Row) -> Option<&'a Seen> {
    seen.iter().find(|seen| {
        let object = &seen.object;
        let own = match kind {
            BuiltIn::Workload => &object["metadata"]["ownerReferences"][0]["name"],
            _ => &object["metadata"]["name"],
        };
        let has_come = holds(object, sign).is_some() || object["status"]["phase"] == *sign;
        seen.kind == *kind && own == *name && has_come
    })
}

/// All objects of a namespace. An error if one is not read as it tells itself, in one of the versions that are known.
async fn look(client: &Client, namespace: &str) -> Result<Vec<Seen>> {
    let mut all = Vec::new();
    for (kind, resource) in KINDS {
        let definition = Arc::new(Definition::BuiltIn(kind));
        let reader = Reader::new(Some(kind), vec![definition], LabelKeys::default());
        for version in kind.versions() {
            for text in list(client, namespace, (kind, version, resource)).await? {
                let object: Value = serde_json::from_str(text.get())?;
                let told = Told::of(kind, &object)?;
                let read = reader.read(text.get(), &mut Interner::default())?;
                told::compare(&object, told.as_ref(), read.as_ref())
                    .with_context(|| format!("{kind:?} in {version}: {object:#}"))?;
                all.push(Seen { kind, object, told });
            }
        }
    }
    Ok(all)
}

/// The texts of the objects in a list, as the API server sends them.
async fn list(
    client: &Client,
    namespace: &str,
    (kind, version, resource): (BuiltIn, &str, &str),
) -> Result<Vec<Box<RawValue>>> {
    #[derive(Deserialize)]
    struct List {
        items: Vec<Box<RawValue>>,
    }
    let group = match kind.group() {
        "" => "api".to_owned(),
        group => format!("apis/{group}"),
    };
    let path = format!("/{group}/{version}/namespaces/{namespace}/{resource}");
    let text = client.request_text(Request::get(path).body(Vec::new())?).await?;
    Ok(serde_json::from_str::<List>(&text)?.items)
}
