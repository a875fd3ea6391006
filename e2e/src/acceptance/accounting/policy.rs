//! What the `ValidatingAdmissionPolicy` of the chart lets the account of the accounting program do to a Pod.
//!
//! The account gets all rights meanwhile, so that what is refused is refused by the policy.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use crate::testenv::release::PATIENCE;
use crate::testenv::tools::Tools;
use crate::testenv::until::until_ok;

/// What the program removes.
const FINALIZER: &str = "lifecycle.trainjob.dev/accounting";
/// What it notes the Pod's UID in.
const ACCOUNTED: &str = "lifecycle.trainjob.dev/accounted";
const POD: &str = "counted";
/// How the finalizers of others are called.
const OTHERS: [&str; 2] = ["example.com/first", "example.com/last"];
/// How long all annotations of an object may be together, in bytes, with room for those that it has anyway.
const ROOM: usize = 256 * 1024 - 256;
/// Of so many annotations, with the one that the Pod has anyway, each is compared.
const COMPARED: usize = 999;
/// What the keys of annotations may consist of.
const LETTERS: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Sees what is admitted and what is refused, and says how many ways there were of each.
pub(super) async fn holds(tools: &Tools, namespace: &str, user: &str) -> Result<(usize, usize)> {
    let place = Place { tools, namespace, user: format!("--as={user}") };
    let binding = ["create", "clusterrolebinding", "everything", "--clusterrole=cluster-admin"];
    let (of, name) =
        user.trim_start_matches("system:serviceaccount:").split_once(':').context("no account")?;
    let account = format!("--serviceaccount={of}:{name}");
    place.kubectl(&[&binding[..], &[&account]].concat(), None).await?;
    place.has_pod(POD, &json!({"owner": "ml"})).await?;
    let uid = place.uid(POD).await?;
    until_ok("the policy is in force, and the rights are", PATIENCE, || async {
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        place.refuses(POD, &label, "may change nothing of a Pod").await
    })
    .await?;
    let admitted = admitted(&uid);
    for patch in &admitted {
        place.patch(POD, patch).await.with_context(|| patch.to_string())?;
    }
    let refused = refused(&uid);
    for (patch, why) in &refused {
        place.refuses(POD, patch, why).await?;
    }
    let others = place.refuses_all_else().await?;
    place.leaves_others_alone().await?;
    let (large, of_large) = place.bounds_what_a_user_can_make_it_cost().await?;
    place.releases_a_deleted_pod(&uid).await?;
    place.kubectl(&["delete", "clusterrolebinding", "everything"], None).await?;
    Ok((admitted.len() + large + 1, refused.len() + others + of_large))
}

/// The one write of the program.
fn release(uid: &str) -> Value {
    json!({"metadata": {
        "uid": uid,
        "$deleteFromPrimitiveList/finalizers": [FINALIZER],
        "annotations": {ACCOUNTED: uid},
    }})
}

/// What the program does, and parts of it.
fn admitted(uid: &str) -> [Value; 3] {
    [
        release(uid),
        // In the mode Observe there is no finalizer.
        json!({"metadata": {"uid": uid, "annotations": {ACCOUNTED: uid}}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}),
    ]
}

/// What it may not do, and a part of what it is told.
fn refused(uid: &str) -> Vec<(Value, &'static str)> {
    let [first, last] = OTHERS;
    let (pod, finalizers) = ("may change nothing of a Pod", "may change no finalizer of a Pod");
    let (removed, added) = ("may remove no annotation of a Pod", "may set no annotation of a Pod");
    let of = |metadata: Value| json!({"metadata": metadata});
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"});
    let toleration = json!({"key": "a", "operator": "Exists"});
    vec![
        (json!({"spec": {"containers": [{"name": "node", "image": "example.com/evil:1"}]}}), pod),
        (json!({"spec": {"activeDeadlineSeconds": 1}}), pod),
        (json!({"spec": {"tolerations": [toleration]}}), pod),
        (of(json!({"labels": {"owner": "somebody"}})), pod),
        (of(json!({"labels": {"owner": null}})), pod),
        (of(json!({"ownerReferences": [owner]})), pod),
        (of(json!({"$deleteFromPrimitiveList/finalizers": [first]})), finalizers),
        (of(json!({"$deleteFromPrimitiveList/finalizers": [FINALIZER, last]})), finalizers),
        (of(json!({"finalizers": ["example.com/new"]})), finalizers),
        (of(json!({"finalizers": null})), finalizers),
        (of(json!({"annotations": {"note": null}})), removed),
        (of(json!({"annotations": {"note": "another"}})), added),
        (of(json!({"annotations": {"new": uid}})), added),
        (of(json!({"annotations": {ACCOUNTED: "another"}})), added),
    ]
}

/// So many annotations, with keys of three letters and nothing in them.
fn annotations(count: usize) -> Map<String, Value> {
    let letters = || LETTERS.chars();
    let pairs = letters().flat_map(|a| letters().map(move |b| [a, b]));
    let keys = pairs.flat_map(|[a, b]| letters().map(move |c| String::from_iter([a, b, c])));
    keys.take(count).map(|key| (key, json!(""))).collect()
}

struct Place<'a> {
    tools: &'a Tools,
    namespace: &'a str,
    /// The flag that makes a command one of the program's.
    user: String,
}

impl Place<'_> {
    async fn kubectl(&self, arguments: &[&str], input: Option<&Value>) -> Result<String> {
        let arguments = [&["--namespace", self.namespace], arguments].concat();
        self.tools.kubectl(&arguments, input.map(Value::to_string)).await
    }

    /// A Pod that no node takes, with our finalizer between those of others.
    async fn has_pod(&self, name: &str, labels: &Value) -> Result<()> {
        let [first, last] = OTHERS;
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "labels": labels, "annotations": {"note": "keep"},
                "finalizers": [first, FINALIZER, last],
            },
            "spec": {
                "nodeSelector": {"no": "node"},
                "containers": [{"name": "node", "image": "example.com/train:1"}],
            },
        });
        self.kubectl(&["create", "-f", "-"], Some(&pod)).await?;
        Ok(())
    }

    async fn uid(&self, pod: &str) -> Result<String> {
        self.kubectl(&["get", "pod", pod, "-o", "jsonpath={.metadata.uid}"], None).await
    }

    /// Tries it as the program.
    async fn patch(&self, pod: &str, patch: &Value) -> Result<String> {
        let arguments = ["patch", "pod", pod, "--type=strategic", "--dry-run=server", &self.user];
        self.kubectl(&[&arguments[..], &["-p", &patch.to_string()]].concat(), None).await
    }

    async fn refuses(&self, pod: &str, patch: &Value, why: &str) -> Result<()> {
        let Err(refusal) = self.patch(pod, patch).await else { bail!("admitted: {patch}") };
        ensure!(format!("{refusal:#}").contains(why), "{patch}: {refusal:#}");
        Ok(())
    }

    /// Whatever is no update of a Pod itself.
    async fn refuses_all_else(&self) -> Result<usize> {
        let pod: Value =
            serde_json::from_str(&self.kubectl(&["get", "pod", POD, "-o", "json"], None).await?)?;
        let spec = pod.get("spec").context("no spec")?;
        let new =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": spec});
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": POD, "namespace": self.namespace},
        });
        let evict = format!("/api/v1/namespaces/{}/pods/{POD}/eviction", self.namespace);
        let ready = json!({"status": {"phase": "Succeeded"}}).to_string();
        let debug =
            json!({"spec": {"ephemeralContainers": [{"name": "a", "image": "a"}]}}).to_string();
        let patch = ["patch", "pod", POD, "-p"];
        let attempts: [(Vec<&str>, Option<&Value>); 5] = [
            (vec!["create", "-f", "-"], Some(&new)),
            (vec!["create", "--raw", &evict, "-f", "-"], Some(&eviction)),
            (vec!["delete", "pod", POD, "--wait=false"], None),
            ([&patch[..], &[&ready, "--subresource=status"]].concat(), None),
            ([&patch[..], &[&debug, "--subresource=ephemeralcontainers"]].concat(), None),
        ];
        let count = attempts.len();
        for (arguments, input) in attempts {
            let arguments = [&arguments[..], &[&self.user]].concat();
            let Err(refusal) = self.kubectl(&arguments, input).await else {
                bail!("admitted: {arguments:?}");
            };
            let refusal = format!("{refusal:#}");
            ensure!(refusal.contains("may do nothing to Pods but update them"), "{refusal}");
        }
        Ok(count)
    }

    /// It is about this account alone.
    async fn leaves_others_alone(&self) -> Result<()> {
        self.kubectl(
            &["label", "pod", POD, "owner=another", "--overwrite", "--dry-run=server"],
            None,
        )
        .await?;
        Ok(())
    }

    /// Annotations are compared one by one up to a thousand. More of them are only counted, so that none of their Pods waits.
    async fn bounds_what_a_user_can_make_it_cost(&self) -> Result<(usize, usize)> {
        let (mut admitted, mut refused) = (0, 0);
        let change = json!({"metadata": {"annotations": {"000": "1"}}});
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        for (pod, count, is_compared) in [("thousand", COMPARED, true), ("full", ROOM / 3, false)] {
            self.has_pod(pod, &json!({})).await?;
            let annotate = ["patch", "pod", pod, "--patch-file=/dev/stdin"];
            let many = json!({"metadata": {"annotations": annotations(count)}});
            self.kubectl(&annotate, Some(&many)).await?;
            self.patch(pod, &release(&self.uid(pod).await?)).await?;
            admitted += 1;
            self.refuses(pod, &label, "may change nothing of a Pod").await?;
            refused += 1;
            if is_compared {
                self.refuses(pod, &change, "may set no annotation of a Pod").await?;
                refused += 1;
            }
        }
        Ok((admitted, refused))
    }

    async fn releases_a_deleted_pod(&self, uid: &str) -> Result<()> {
        self.kubectl(&["delete", "pod", POD, "--wait=false"], None).await?;
        let patch = release(uid).to_string();
        let arguments = ["patch", "pod", POD, "--type=strategic", &self.user, "-p", &patch];
        self.kubectl(&arguments, None).await?;
        let finalizers = ["get", "pod", POD, "-o", "jsonpath={.metadata.finalizers}"];
        let left: Value = serde_json::from_str(&self.kubectl(&finalizers, None).await?)?;
        ensure!(left == json!(OTHERS), "left: {left}");
        let none = json!({"metadata": {"finalizers": null}}).to_string();
        for pod in [POD, "thousand", "full"] {
            self.kubectl(&["patch", "pod", pod, "-p", &none], None).await?;
            self.kubectl(&["delete", "pod", pod, "--ignore-not-found", "--timeout=60s"], None)
                .await?;
        }
        Ok(())
    }
}
