//! The accounting program as the chart installs it: what it and others may do, what its policy lets it do to Pods, that it
//! counts with just this, and how it is taken away again.

mod policy;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::rights::{self, Question};
use crate::testenv::chart::CHART;
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::fixtures::{
    COMPLETES, COMPLETES_AFTER, RUNS, audit_flags, requests_of, runtime, train_job,
};
use crate::testenv::metrics_page;
use crate::testenv::release::programs::accounting_command;
use crate::testenv::release::{NAMESPACE, PATIENCE, RELEASE, Release};
use crate::testenv::until::until_ok;
use crate::testenv::{workspace, yaml};

const SETS: [&str; 2] = ["accounting.program=true", "accounting.mode=Exact"];
/// Program, sweeper and drain.
const PROGRAM: &str = "system:serviceaccount:kubeflow-system:trainjob-operator-accounting";
const OPERATOR: &str = "system:serviceaccount:kubeflow-system:trainjob-operator";
/// Somebody who administers a namespace.
const ADMIN: &str = "admin";
const LEASE: &str = "trainjob-accounting";
const LEASES: &str = "coordination.k8s.io";
const GROUP: &str = "lifecycle.trainjob.dev";
const RECORDS: &str = "trainjobrecords";
/// A job that completes, and one that runs on.
const JOBS: [&str; 2] = ["llm", "held"];
/// The Pods of the Job that releases all Pods before the program goes.
const DRAIN: &str = "app.kubernetes.io/component=accounting-drain";

/// Shows all of it; `tell` hears of each step.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let apiserver_flags = audit_flags().to_vec();
    let cluster = Cluster::start(Options { apiserver_flags, ..Options::default() }).await?;
    let release = Release::install(cluster, &SETS).await?;
    let namespace = release.cluster.namespace("accounting").await?;
    let trial = Trial { release, namespace };
    trial.rights().await?;
    tell(
        "installed; the program may do what it needs, and nothing else; the operator sees its Lease",
    );
    trial.records_are_read_only().await?;
    tell("view reads records, and not even admin writes or deletes them");
    let (admitted, refused) =
        policy::holds(&trial.release.tools, &trial.namespace, PROGRAM).await?;
    tell(&format!(
        "the API server admits {admitted} ways to release a Pod, and refuses the program {refused} others"
    ));
    trial.counts().await?;
    tell(
        "the operator marks new jobs, and the program counts one that completes; no request was refused",
    );
    trial.drains().await?;
    tell(
        "drain names the job that would make held Pods again, and releases its Pod only if told to",
    );
    trial.goes_by_an_upgrade().await?;
    tell(
        "an upgrade that takes the program away is refused in the mode Exact, and else drains first",
    );
    trial.goes_with_the_release().await?;
    tell("uninstalled, drained first: records and their definition have stayed");
    Ok(())
}

struct Trial {
    release: Release,
    namespace: String,
}

impl Trial {
    async fn rights(&self) -> Result<()> {
        let expected = [
            ("", "pods", "get list watch patch"),
            ("events.k8s.io", "events", "create"),
            ("jobset.x-k8s.io", "jobsets", "list"),
            (GROUP, RECORDS, "get list watch create"),
            (GROUP, "trainjobrecords/status", "update"),
            ("trainer.kubeflow.org", "trainjobs", "get list watch"),
        ];
        rights::are(&self.release.tools, &format!("{RELEASE}-accounting"), &expected).await?;
        for (user, verb, name, expected) in [
            (OPERATOR, "get", LEASE, true),
            (OPERATOR, "list", LEASE, true),
            (OPERATOR, "watch", LEASE, true),
            (OPERATOR, "update", LEASE, false),
            (OPERATOR, "watch", "another", false),
            (PROGRAM, "watch", LEASE, true),
            (PROGRAM, "update", LEASE, true),
            (PROGRAM, "delete", LEASE, false),
            (PROGRAM, "update", "trainer.kubeflow.org", false),
        ] {
            let question = Question { user, verb, group: LEASES, resource: "leases", name };
            self.answer(NAMESPACE, question, expected).await?;
        }
        Ok(())
    }

    async fn records_are_read_only(&self) -> Result<()> {
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": ADMIN},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": ADMIN}],
        });
        self.release.cluster.apply_yaml(&self.namespace, &binding.to_string()).await?;
        for (verb, expected) in [
            ("get", true),
            ("list", true),
            ("watch", true),
            ("create", false),
            ("update", false),
            ("delete", false),
        ] {
            let question =
                Question { user: ADMIN, verb, group: GROUP, resource: RECORDS, name: "" };
            self.answer(&self.namespace, question, expected).await?;
        }
        Ok(())
    }

    /// Roles are aggregated, and known to the API server, a moment after they were made.
    async fn answer(&self, namespace: &str, it: Question<'_>, expected: bool) -> Result<()> {
        until_ok(format!("{it:?} is answered"), PATIENCE, || async {
            let said = rights::may(&self.release.cluster, namespace, it).await?;
            ensure!(said == expected, "the answer is {said}");
            Ok(())
        })
        .await
    }

    /// A job completes, and the program counts its Pod with what the chart gives it. Another one runs on.
    async fn counts(&self) -> Result<()> {
        let programs = self.release.start().await?;
        until_ok("the operator sees that the program lives", PATIENCE, || async {
            let alive = programs.operator.metric("trainjob_operator_accounting_alive").await?;
            ensure!(alive > 0.5, "it does not");
            Ok(())
        })
        .await?;
        let [completes, runs] = JOBS;
        let objects = [
            runtime(COMPLETES, &json!({COMPLETES_AFTER: "1s"}), 3, None),
            runtime(RUNS, &json!({}), 3, None),
            train_job(completes, COMPLETES, &json!({})),
            train_job(runs, RUNS, &json!({})),
        ];
        until_ok("jobs are admitted", PATIENCE, || async {
            self.release.cluster.apply_yaml(&self.namespace, &yaml::stream(&objects)).await
        })
        .await?;
        until_ok("a record is final, and another open", PATIENCE, || async {
            let columns = "{.spec.trainJob.name} {.status.outcome} {.status.totals.pods.succeeded}";
            let is = |condition: &str| {
                format!("{{.status.conditions[?(@.type==\"{condition}\")].status}}")
            };
            let row = format!("{columns} {} {}", is("Final"), is("Exact"));
            let rows = format!("jsonpath={{range .items[*]}}{row}{{\"\\n\"}}{{end}}");
            let records = self.namespaced(&["get", "tjr", "-o", &rows]).await?;
            for expected in ["llm Complete 1 True True", "held Running 0 False True"] {
                ensure!(records.lines().any(|line| line == expected), "no {expected}: {records}");
            }
            Ok(())
        })
        .await?;
        ensure!(self.held().await? == 1, "not one Pod is held");
        let program = programs.accounting.as_ref().context("no accounting program")?;
        shows_what_the_page_says(&program.metrics_page().await?)?;
        let requests = requests_of(self.release.cluster.folder(), PROGRAM)?;
        let refused: Vec<_> = requests.iter().filter(|it| it.code() == 403).collect();
        ensure!(refused.is_empty(), "refused: {refused:#?}");
        ensure!(requests.iter().any(|it| it.verb == "patch"), "{} requests", requests.len());
        Ok(())
    }

    /// How many Pods have the finalizer.
    async fn held(&self) -> Result<usize> {
        let finalizers = "jsonpath={range .items[*]}{.metadata.finalizers}{\"\\n\"}{end}";
        let finalizers = self.namespaced(&["get", "pods", "-o", finalizers]).await?;
        Ok(finalizers.matches("lifecycle.trainjob.dev/accounting").count())
    }

    /// What the Job runs before the program goes.
    async fn drains(&self) -> Result<()> {
        let [_, runs] = JOBS;
        let place = (RELEASE, NAMESPACE);
        for (flags, code, left) in [(&[][..], 3, 1), (&["--abandon"], 0, 0)] {
            let Release { cluster, tools, .. } = &self.release;
            let drain = accounting_command(cluster, tools, place, "drain", flags).await?;
            let status = drain.wait(PATIENCE).await?;
            let log = drain.log()?;
            ensure!(status.code() == Some(code), "{flags:?}: {status}: {log}");
            let names_it = log.contains(&format!("{}/{runs}", self.namespace));
            ensure!(names_it == (code == 3), "{flags:?}: {log}");
            ensure!(self.held().await? == left, "{flags:?}: {log}");
        }
        Ok(())
    }

    async fn goes_by_an_upgrade(&self) -> Result<()> {
        let off = ["--set", "accounting.program=false", "--set", "accounting.mode="];
        let Err(refusal) = self.upgrade(&off).await else {
            bail!("the program can be taken away while the operator marks");
        };
        ensure!(
            format!("{refusal:#}").contains("still marks Pods in the mode Exact"),
            "{refusal:#}"
        );
        // Its Pods are as confined as those of the programs.
        let label = "pod-security.kubernetes.io/enforce=restricted";
        self.kubectl(&["label", "namespace", NAMESPACE, label]).await?;
        self.upgrade(&["--set", "accounting.mode=Off"]).await?;
        let (upgraded, drained) = tokio::join!(self.upgrade(&off), self.drain_completes());
        upgraded.context("the upgrade that takes the program away")?;
        drained?;
        let left = ["get", "all,configmaps", "--namespace", NAMESPACE, "-o", "name"];
        until_ok("nothing of the program is left", PATIENCE, || async {
            let left = self.kubectl(&left).await?;
            ensure!(!left.contains("accounting"), "{left}");
            Ok(())
        })
        .await
    }

    async fn goes_with_the_release(&self) -> Result<()> {
        self.upgrade(&["--set", "accounting.program=true"]).await?;
        let uninstall = ["uninstall", RELEASE, "--namespace", NAMESPACE, "--wait"];
        let uninstalled = self.release.tools.helm(&uninstall);
        let (uninstalled, drained) = tokio::join!(uninstalled, self.drain_completes());
        uninstalled?;
        drained?;
        let records = self.namespaced(&["get", "tjr", "-o", "name"]).await?;
        ensure!(records.lines().count() == JOBS.len(), "{records}");
        let definitions = workspace::path(&format!("{CHART}/files/accounting-crds"));
        self.kubectl(&["get", "-f", &definitions.display().to_string()]).await?;
        Ok(())
    }

    /// Lets the played Pod of the Job end that releases all Pods.
    async fn drain_completes(&self) -> Result<()> {
        let pods = ["get", "pods", "--namespace", NAMESPACE, "-l", DRAIN, "-o", "json"];
        let pod = until_ok("the Job runs", PATIENCE, || async {
            let list: Value = serde_json::from_str(&self.kubectl(&pods).await?)?;
            list.pointer("/items/0").cloned().context("no Pod")
        })
        .await?;
        let arguments =
            json!(["drain", "--timeout=5m", "--config=/etc/trainjob-operator/config.yaml"]);
        ensure!(pod.pointer("/spec/containers/0/args") == Some(&arguments), "{pod}");
        let delay = format!("{COMPLETES_AFTER}=1s");
        self.kubectl(&["annotate", "pods", "--namespace", NAMESPACE, "-l", DRAIN, &delay]).await?;
        Ok(())
    }

    async fn upgrade(&self, arguments: &[&str]) -> Result<String> {
        let chart = workspace::path(CHART).display().to_string();
        let upgrade = ["upgrade", RELEASE, &chart, "--namespace", NAMESPACE];
        let upgrade = [&upgrade[..], &["--reset-then-reuse-values"], arguments].concat();
        self.release.tools.helm(&upgrade).await
    }

    async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.release.tools.kubectl(arguments, None).await
    }

    async fn namespaced(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl(&[&["--namespace", &self.namespace], arguments].concat()).await
    }
}

/// Compares the metrics of the program with those of `docs/accounting.md`: types, help texts, and that none is missing that
/// needs no job to be there.
fn shows_what_the_page_says(text: &str) -> Result<()> {
    let operator = metrics_page::read()?;
    let documented = metrics_page::of_accounting(&operator)?;
    let of = |what: &str| -> BTreeMap<&str, &str> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(what)?.strip_prefix(' '));
        let own = lines.filter_map(|line| line.split_once(' '));
        own.filter(|(name, _)| name.starts_with("trainjob_")).collect()
    };
    let (kinds, helps) = (of("# TYPE"), of("# HELP"));
    for (name, help) in &helps {
        let said = documented.get(*name).with_context(|| format!("{name} is not on the page"))?;
        let same = said.help == *help && kinds.get(name) == Some(&said.kind.as_str());
        ensure!(same, "{name}: {help}, documented as {said:?}");
    }
    let always = documented.iter().filter(|(_, it)| !it.labels.contains_key("job_namespace"));
    let missing: Vec<_> = always.filter(|(name, _)| !helps.contains_key(name.as_str())).collect();
    ensure!(missing.is_empty(), "not shown: {missing:#?}");
    Ok(())
}
