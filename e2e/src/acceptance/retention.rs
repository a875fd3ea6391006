//! The retention engine as the chart installs it: who may write policies, what it may do itself, and that it deletes what
//! a policy says, with just these rights.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::rights::{self, Question};
use crate::testenv::chart::CHART;
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::fixtures::{COMPLETES_AFTER, audit_flags, requests_of};
use crate::testenv::release::{NAMESPACE, PATIENCE, RELEASE, Release};
use crate::testenv::until::until_ok;
use crate::testenv::{workspace, yaml};

/// The targets of the release: Jobs with their Pods and the JobSets that own them, and TrainJobs.
pub(super) const TARGETS: &str = "retention.targets=[\
    {\"apiGroup\":\"batch\",\"kind\":\"Job\",\"resource\":\"jobs\",\"pods\":true,\"ownerDelete\":true,\
     \"owners\":[{\"apiGroup\":\"jobset.x-k8s.io\",\"resource\":\"jobsets\"}]},\
    {\"apiGroup\":\"trainer.kubeflow.org\",\"kind\":\"TrainJob\",\"resource\":\"trainjobs\"}]";
/// The API group of policies.
const GROUP: &str = "lifecycle.trainjob.dev";
/// Who the engine is.
const USER: &str = "system:serviceaccount:kubeflow-system:trainjob-operator-retention";
/// Somebody who administers a namespace, somebody who may edit there, somebody who may write policies there and no more.
const ADMIN: &str = "admin";
const EDITOR: &str = "editor";
const WRITER: &str = "writer";

/// Shows all of it; `tell` hears of each step.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let apiserver_flags = audit_flags().to_vec();
    let cluster = Cluster::start(Options { apiserver_flags, ..Options::default() }).await?;
    let sets = ["retention.enabled=true", "retention.authorizePolicyAuthors=true", TARGETS];
    let release = Release::install(cluster, &sets).await?;
    let namespace = release.cluster.namespace("retention").await?;
    let trial = Trial { release, namespace };
    trial.has_just_the_rights_of_its_targets().await?;
    tell("installed; the engine may do what its targets need, and nothing else");
    trial.people().await?;
    trial.policies_are_for_administrators().await?;
    tell(
        "view reads policies, admin edits those of its namespaces, cluster policies are for cluster-admin",
    );
    trial.authors_may_delete_themselves().await?;
    tell("the API server refuses policies that delete what their author may not delete");
    trial.deletes().await?;
    tell(
        "Audit shows a finished Job and deletes nothing, Enforce deletes it; no request was refused",
    );
    trial.leaves_policies().await?;
    tell("uninstalled: policies and their definitions have stayed");
    Ok(())
}

struct Trial {
    release: Release,
    namespace: String,
}

impl Trial {
    async fn has_just_the_rights_of_its_targets(&self) -> Result<()> {
        let expected = [
            ("", "namespaces", "list watch"),
            ("", "pods", "delete list"),
            ("batch", "jobs", "delete list watch"),
            ("events.k8s.io", "events", "create"),
            ("jobset.x-k8s.io", "jobsets", "delete get"),
            ("lifecycle.trainjob.dev", "clusterretentionpolicies", "list watch"),
            ("lifecycle.trainjob.dev", "clusterretentionpolicies/status", "patch"),
            ("lifecycle.trainjob.dev", "retentionpolicies", "list watch"),
            ("lifecycle.trainjob.dev", "retentionpolicies/status", "patch"),
            ("trainer.kubeflow.org", "trainjobs", "delete list watch"),
        ];
        rights::are(&self.release.tools, &format!("{RELEASE}-retention"), &expected).await
    }

    /// Gives each of them a role in the namespace.
    async fn people(&self) -> Result<()> {
        let group = "rbac.authorization.k8s.io";
        let verbs = ["create", "update", "patch", "get"];
        let policies = json!([{
            "apiGroups": ["lifecycle.trainjob.dev"], "resources": ["*"], "verbs": verbs,
        }]);
        let role = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole",
            "metadata": {"name": WRITER}, "rules": policies,
        });
        let bind = |kind: &str, user: &str, role: &str| {
            json!({
                "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": user},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
            })
        };
        let objects = [
            role,
            bind("RoleBinding", ADMIN, "admin"),
            bind("RoleBinding", EDITOR, "edit"),
            bind("ClusterRoleBinding", WRITER, WRITER),
        ];
        self.apply(&objects).await
    }

    async fn policies_are_for_administrators(&self) -> Result<()> {
        for (user, verb, resource, expected) in [
            (ADMIN, "create", "retentionpolicies", true),
            (ADMIN, "patch", "retentionpolicies", true),
            (ADMIN, "patch", "retentionpolicies/status", false),
            (ADMIN, "create", "clusterretentionpolicies", false),
            (EDITOR, "get", "retentionpolicies", true),
            (EDITOR, "create", "retentionpolicies", false),
            (EDITOR, "patch", "retentionpolicies", false),
        ] {
            let what = format!("{user}: {verb} {resource}");
            // ClusterRoles are aggregated a moment after they were made.
            until_ok(what, PATIENCE, || async {
                let question = Question { user, verb, group: GROUP, resource, name: "" };
                let said = rights::may(&self.release.cluster, &self.namespace, question).await?;
                ensure!(said == expected, "the answer is {said}");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    async fn authors_may_delete_themselves(&self) -> Result<()> {
        let job = ("batch", "Job");
        let policy =
            |kind: &str, target, rule: &Value| policy(kind, "probe", target, "Audit", rule);
        let delete_jobs = policy("RetentionPolicy", job, &json!({}));
        let pods = json!({"pods": {"ttlSecondsAfterFinished": 1}});
        let delete_pods = policy("RetentionPolicy", job, &pods);
        let delete_owners = policy("RetentionPolicy", job, &json!({"delete": "Owner"}));
        let everywhere = policy("ClusterRetentionPolicy", job, &json!({}));
        let stranger = policy("RetentionPolicy", ("jobset.x-k8s.io", "JobSet"), &json!({}));
        // The API server enforces it a moment after it was installed.
        until_ok("authors are judged", PATIENCE, || async {
            self.refused(
                WRITER,
                &delete_jobs,
                "deletes batch/Job, which you may not delete in the namespace",
            )
            .await
        })
        .await?;
        self.refused(WRITER, &everywhere, "which you may not delete in all namespaces").await?;
        self.refused(ADMIN, &stranger, "has no rights for jobset.x-k8s.io/JobSet").await?;
        self.refused(ADMIN, &delete_owners, "of which you may not delete jobsets in the namespace")
            .await?;
        for admitted in [&delete_jobs, &delete_pods] {
            self.dry_run(Some(ADMIN), admitted).await?;
        }
        self.dry_run(None, &everywhere).await?;
        let jobs_only = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "jobs"},
            "rules": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["delete"]}],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "jobs"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "jobs"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": WRITER}],
        });
        self.release
            .cluster
            .apply_yaml(&self.namespace, &yaml::stream(&[jobs_only, binding]))
            .await?;
        until_ok("who may delete Jobs may write a policy for them", PATIENCE, || async {
            self.dry_run(Some(WRITER), &delete_jobs).await
        })
        .await?;
        self.refused(WRITER, &delete_pods, "deletes Pods, which you may not delete").await
    }

    async fn dry_run(&self, user: Option<&str>, policy: &Value) -> Result<()> {
        let user = user.map(|user| format!("--as={user}"));
        let mut create = vec!["create", "--dry-run=server", "--namespace", &self.namespace];
        create.extend(user.as_deref());
        create.extend(["-f", "-"]);
        self.kubectl(&create, Some(policy)).await?;
        Ok(())
    }

    async fn refused(&self, user: &str, policy: &Value, why: &str) -> Result<()> {
        let Err(refusal) = self.dry_run(Some(user), policy).await else {
            bail!("{user} may write {policy}");
        };
        ensure!(format!("{refusal:#}").contains(why), "{refusal:#}");
        Ok(())
    }

    /// A Job of its own and one of a JobSet finish; policies delete both, and a hold keeps a third.
    async fn deletes(&self) -> Result<()> {
        let _programs = self.release.start().await?;
        let held = json!({"lifecycle.trainjob.dev/hold-until": "2100-01-01T00:00:00Z"});
        let objects = [job("done", &json!({})), job("held", &held), job_set("set")];
        self.apply(&objects).await?;
        for kind in ["job/done", "job/held", "jobset/set"] {
            let condition = if kind == "jobset/set" { "Completed" } else { "Complete" };
            let condition = format!("--for=condition={condition}");
            self.namespaced(&["wait", kind, &condition, "--timeout=120s"]).await?;
        }
        let rule = json!({"pods": {"ttlSecondsAfterFinished": 0}});
        let mut policy = policy("RetentionPolicy", "jobs", ("batch", "Job"), "Audit", &rule);
        self.apply(&[policy.clone()]).await?;
        let get = ["get", "retentionpolicies", "jobs", "-o", "json"];
        until_ok("Audit shows what it would delete", PATIENCE, || async {
            let policy: Value = serde_json::from_str(&self.namespaced(&get).await?)?;
            let count =
                |field: &str| policy.pointer(&format!("/status/{field}")).and_then(Value::as_u64);
            // One of them belongs to a JobSet, which is asked for and has finished.
            let found = ["wouldDelete/now", "counts/held", "counts/owned"].map(count);
            ensure!(found == [Some(2), Some(1), Some(0)], "{policy}");
            Ok(())
        })
        .await?;
        let jobs = self.namespaced(&["get", "jobs", "-o", "name"]).await?;
        ensure!(jobs.lines().count() == 3, "deleted in Audit: {jobs}");
        *policy.pointer_mut("/spec/mode").context("no mode")? = json!("Enforce");
        self.apply(&[policy]).await?;
        until_ok("what is finished is gone, and what is held is not", PATIENCE, || async {
            let jobs = self.namespaced(&["get", "jobs", "-o", "name"]).await?;
            ensure!(jobs.trim() == "job.batch/held", "left: {jobs}");
            Ok(())
        })
        .await?;
        until_ok("the deletion is told", PATIENCE, || async {
            let events = self.namespaced(&["events", "--for", "job/done"]).await?;
            ensure!(events.contains("RetentionDeleted"), "{events}");
            Ok(())
        })
        .await?;
        self.nothing_was_refused()
    }

    fn nothing_was_refused(&self) -> Result<()> {
        let requests = requests_of(self.release.cluster.folder(), USER)?;
        let refused: Vec<_> = requests.iter().filter(|request| request.code() == 403).collect();
        ensure!(refused.is_empty(), "refused: {refused:#?}");
        let deletions: Vec<_> =
            requests.iter().filter(|request| request.verb == "delete").collect();
        ensure!(!deletions.is_empty(), "{} requests, and no deletion", requests.len());
        for deletion in deletions {
            for part in ["uid", "resourceVersion"] {
                let part = deletion.sent.pointer(&format!("/preconditions/{part}"));
                ensure!(
                    part.is_some_and(Value::is_string),
                    "without a precondition: {deletion:#?}"
                );
            }
        }
        Ok(())
    }

    async fn leaves_policies(&self) -> Result<()> {
        let uninstall = ["uninstall", RELEASE, "--namespace", NAMESPACE, "--wait"];
        self.release.tools.helm(&uninstall).await?;
        self.namespaced(&["get", "retentionpolicies", "jobs"]).await?;
        // Every definition of the chart is one that stays.
        let folder =
            workspace::path(&format!("{CHART}/files/retention-crds")).display().to_string();
        self.kubectl(&["get", "-f", &folder], None).await?;
        Ok(())
    }

    async fn kubectl(&self, arguments: &[&str], input: Option<&Value>) -> Result<String> {
        self.release.tools.kubectl(arguments, input.map(Value::to_string)).await
    }

    async fn namespaced(&self, arguments: &[&str]) -> Result<String> {
        let arguments = [&["--namespace", &self.namespace], arguments].concat();
        self.kubectl(&arguments, None).await
    }

    async fn apply(&self, objects: &[Value]) -> Result<()> {
        self.release.cluster.apply_yaml(&self.namespace, &yaml::stream(objects)).await?;
        Ok(())
    }
}

/// A policy that deletes after a second, with more in its rule.
pub(super) fn policy(
    kind: &str,
    name: &str,
    (group, target): (&str, &str),
    mode: &str,
    in_rule: &Value,
) -> Value {
    let mut rule = json!({"name": "all", "action": {"ttlSecondsAfterFinished": 1}});
    if let (Some(rule), Some(more)) = (rule.as_object_mut(), in_rule.as_object()) {
        rule.extend(more.clone());
    }
    json!({
        "apiVersion": "lifecycle.trainjob.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "target": {"apiGroup": group, "kind": target}, "mode": mode, "owned": "AfterOwner", "rules": [rule],
        },
    })
}

fn pods() -> Value {
    json!({"template": {
        "metadata": {"annotations": {COMPLETES_AFTER: "1s"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "node", "image": "example.com/train:1"}]},
    }})
}

fn job(name: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "annotations": annotations}, "spec": pods(),
    })
}

fn job_set(name: &str) -> Value {
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name},
        "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": pods()}}]},
    })
}
