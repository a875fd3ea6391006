//! What is looked at on the way.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{
    BROKEN, Crew, DEFINITIONS, DOWNGRADE, GUIDE, Journey, KEPT, NAMESPACE, OPERATOR, PATIENCE,
    PATIENT,
};
use crate::testenv::fixtures::{COMPLETES, COMPLETES_AFTER, FAILS, runtime, train_job};
use crate::testenv::release::programs::Programs;
use crate::testenv::until::until_ok;

/// What the events say.
const MESSAGES: &str = "jsonpath={.items[*].message}";
/// Where a definition has the rules of the deadline.
const DEADLINE: &str = "jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.activeDeadlineSeconds}";

impl Journey<'_> {
    /// Compares what was written down with what is there: only what jobs had that have ended may be gone.
    pub(super) async fn nothing_is_lost(&self, heading: &str) -> Result<()> {
        let gone = self.guide.follow(heading).await?;
        let ended = |line: &&str| line.contains("-due") || line.contains("-finishing");
        let lost: Vec<&str> = gone.lines().filter(|line| !ended(line)).collect();
        ensure!(lost.is_empty(), "the guide finds lost: {lost:?}");
        ensure!(!gone.contains("TrainJob"), "the guide finds lost: {gone}");
        Ok(())
    }

    /// Deletes what was made for jobs that Kubeflow Trainer cannot resume otherwise, as the guide says; it must
    /// have said so itself.
    pub(super) async fn frees(&self, crew: &Crew) -> Result<()> {
        for (namespace, job) in crew.stuck() {
            let about = format!("involvedObject.name={job},reason=TrainJobResourcesCreationFailed");
            let get = ["get", "events", "--namespace", namespace, "--field-selector", &about];
            let get: Vec<&str> = get.into_iter().chain(["--output", MESSAGES]).collect();
            until_ok(format!("Trainer says that it cannot resume {job}"), PATIENCE, || async {
                let said = self.kubectl(&get).await?;
                ensure!(said.contains(" is invalid: "), "it says {said:?}");
                Ok(())
            })
            .await?;
            let mut guide = self.guide.turn_to(GUIDE)?;
            guide.set("JOB_NAMESPACE", namespace);
            guide.set("JOB", job);
            guide.follow("Jobs that do not resume").await?;
        }
        Ok(())
    }

    /// A suspended job is not stopped by its deadline, as it was not before.
    pub(super) async fn is_patient(&self) -> Result<()> {
        let types = "jsonpath={.status.conditions[?(@.status==\"True\")].type}";
        let state = self.kubectl(&["get", "trainjob", PATIENT, "-o", types]).await?;
        ensure!(state == "Suspended", "{PATIENT} is {state:?}");
        Ok(())
    }

    /// A job fails, somebody deletes its JobSet, and it stays as it is.
    pub(super) async fn breaks(&self) -> Result<()> {
        let job = train_job(BROKEN, FAILS, &json!({}));
        self.cluster.apply_yaml("default", &job.to_string()).await?;
        self.kubectl(&["wait", "trainjob", BROKEN, "--for=condition=Failed", "--timeout=240s"])
            .await?;
        self.kubectl(&["delete", "jobset", BROKEN, "--wait"]).await?;
        Ok(())
    }

    /// Trainer 2.3 makes the JobSet of a failed job again, as the guide warns.
    pub(super) async fn tries_again(&self) -> Result<()> {
        until_ok("Trainer tries again", PATIENCE, || {
            self.kubectl(&["get", "jobset", BROKEN, "-o", "name"])
        })
        .await?;
        Ok(())
    }

    /// The UID of JobSet's Deployment, if JobSet came with Trainer.
    pub(super) async fn jobset_controller(&self) -> Result<String> {
        let uid = "jsonpath={.metadata.uid}";
        let get = [
            "get",
            "deployment/jobset-controller",
            "-n",
            NAMESPACE,
            "--ignore-not-found",
            "-o",
            uid,
        ];
        self.kubectl(&get).await
    }

    /// The release that the definitions are part of.
    pub(super) async fn owner(&self) -> Result<String> {
        let release = "jsonpath={.items[*].metadata.annotations.meta\\.helm\\.sh/release-name}";
        let get: Vec<&str> = ["get", "crd", "-o", release].into_iter().chain(DEFINITIONS).collect();
        let releases = self.kubectl(&get).await?;
        let mut releases: Vec<&str> = releases.split(' ').collect();
        releases.dedup();
        Ok(releases.join(", "))
    }

    pub(super) async fn is_there(&self, object: &str) -> Result<bool> {
        let get = ["get", object, "-n", NAMESPACE, "--ignore-not-found", "-o", "name"];
        Ok(!self.kubectl(&get).await?.is_empty())
    }

    /// Jobs with a TTL complete; one is deleted, the other one stays.
    pub(super) async fn enforces_ttl(&self) -> Result<()> {
        let delay = json!({COMPLETES_AFTER: "100ms"});
        let completes = runtime(COMPLETES, &delay, 1, None);
        self.cluster.apply_yaml("default", &completes.to_string()).await?;
        for (name, ttl) in [(KEPT, 3600), ("short", 0)] {
            let job = train_job(name, COMPLETES, &json!({"ttlSecondsAfterFinished": ttl}));
            self.cluster.apply_yaml("default", &job.to_string()).await?;
        }
        self.kubectl(&["wait", "trainjob", KEPT, "--for=condition=Complete", "--timeout=240s"])
            .await?;
        until_ok("its TTL has deleted a job", PATIENCE, || async {
            let jobs = self.kubectl(&["get", "trainjobs", "-o", "name"]).await?;
            ensure!(!jobs.contains("short"), "there are {jobs}");
            Ok(())
        })
        .await
    }

    /// With Trainer's definition no job has a TTL, whatever is stored.
    pub(super) async fn knows_no_ttl(&self) -> Result<()> {
        let all = "jsonpath={.items[*].spec.ttlSecondsAfterFinished}";
        let ttls = self.kubectl(&["get", "trainjobs", "-o", all]).await?;
        ensure!(ttls.is_empty(), "there are TTLs: {ttls}");
        Ok(())
    }

    /// A job that nobody has written meanwhile still has its TTL; one that Trainer has written has none.
    pub(super) async fn remembers_ttl(&self) -> Result<()> {
        for (job, expected) in [(KEPT, "3600"), ("back-torch-paused", "")] {
            let ttl = self.kubectl(&ttl_of(job)).await?;
            ensure!(ttl == expected, "the TTL of {job} is {ttl:?}, expected {expected:?}");
        }
        Ok(())
    }

    /// An upgrade, no job that has a TTL any more, and the upgrade taken back, as the page on these has it.
    pub(super) async fn forgets_ttl(&self, programs: Programs) -> Result<Programs> {
        ensure!(self.kubectl(&ttl_of(KEPT)).await? == "3600", "{KEPT} has another TTL");
        let guide = self.guide.turn_to(DOWNGRADE)?;
        guide.follow("Upgrade").await?;
        guide.follow("1. Allow the field to change").await?;
        // The configuration is read once.
        drop(programs);
        let programs = Programs::start(self.cluster, &self.tools, OPERATOR, NAMESPACE).await?;
        guide.follow("2. Remove it").await?;
        ensure!(self.kubectl(&ttl_of(KEPT)).await?.is_empty(), "{KEPT} still has a TTL");
        guide.follow("Take an upgrade back").await?;
        let immutable =
            self.kubectl(&["get", "crd", "trainjobs.trainer.kubeflow.org", "-o", DEADLINE]);
        ensure!(immutable.await?.contains("self == oldSelf"), "the deadline may still be changed");
        let headings = guide.but_for(&guide.followed());
        ensure!(
            headings.is_empty(),
            "{DOWNGRADE} has commands that nobody has followed: {headings:?}"
        );
        Ok(programs)
    }
}

const fn ttl_of(job: &str) -> [&str; 5] {
    ["get", "trainjob", job, "-o", "jsonpath={.spec.ttlSecondsAfterFinished}"]
}
