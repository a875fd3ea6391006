//! Objects that are written into the store while no API server runs: by way of it, some hundred thousand take half an
//! hour.
//!
//! A custom resource is stored as JSON, and the API server reads every kind from JSON. All objects of one transaction
//! are of the same revision, which is their version.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::{Client, Config};
use serde_json::{Value, json};

use super::jobs::in_places;
use super::rig::Rig;

/// As many operations as etcd accepts in a transaction.
const AT_ONCE: usize = 128;
/// Transactions under way.
const PLACES: usize = 8;

/// Where objects of a kind are, by group and plural.
pub(super) const TRAIN_JOBS: &str = "trainer.kubeflow.org/trainjobs";
/// The same of JobSets.
pub(super) const JOB_SETS: &str = "jobset.x-k8s.io/jobsets";
/// The same of ConfigMaps.
pub(super) const CONFIG_MAPS: &str = "configmaps";

/// An object as it is stored.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) key: String,
    pub(super) text: String,
}

/// The key of an object.
pub(super) fn key(kind: &str, namespace: &str, name: &str) -> String {
    format!("/registry/{kind}/{namespace}/{name}")
}

/// The store of a control plane, by the JSON gateway of etcd.
#[derive(Clone)]
pub(super) struct Etcd(Client);

impl Etcd {
    /// That of `rig`.
    pub(super) fn of(rig: &Rig) -> Result<Self> {
        let server = format!("http://{}", rig.cluster.etcd_address());
        Ok(Self(Client::try_from(Config::new(server.parse()?))?))
    }

    /// The text of an object.
    pub(super) async fn get(&self, key: &str) -> Result<String> {
        let answer = self.ask("/v3/kv/range", &json!({"key": STANDARD.encode(key)})).await?;
        let value = answer.pointer("/kvs/0/value").and_then(Value::as_str);
        let value = value.with_context(|| format!("nothing is stored as {key}"))?;
        String::from_utf8(STANDARD.decode(value)?).with_context(|| format!("{key} is no text"))
    }

    /// Writes objects, of which there may be [`AT_ONCE`]. Returns the revision that all of them have.
    async fn put(&self, objects: &[Object]) -> Result<i64> {
        revision(&self.ask("/v3/kv/txn", &transaction(objects)).await?)
    }

    async fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        let request = http::Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())?;
        self.0.request(request).await.with_context(|| format!("etcd refuses {path}"))
    }
}

/// What has etcd store these.
fn transaction(objects: &[Object]) -> Value {
    let put = |object: &Object| {
        let (key, value) = (STANDARD.encode(&object.key), STANDARD.encode(&object.text));
        json!({"requestPut": {"key": key, "value": value}})
    };
    json!({"success": objects.iter().map(put).collect::<Vec<_>>()})
}

/// The revision that a transaction has made. The gateway gives large numbers as texts.
fn revision(answer: &Value) -> Result<i64> {
    ensure!(answer["succeeded"] == true, "the transaction was not done: {answer}");
    let revision = answer.pointer("/header/revision").and_then(Value::as_str);
    Ok(revision.context("an answer without a revision")?.parse()?)
}

/// Writes `count` objects, made by their numbers. Returns the version of each.
pub(super) async fn put_all(
    rig: &Rig,
    step: &str,
    count: usize,
    make: impl Fn(usize) -> Object + Send + Sync + 'static,
) -> Result<Vec<String>> {
    rig.progress.step(step, count);
    let (etcd, progress, make) = (Etcd::of(rig)?, rig.progress.clone(), Arc::new(make));
    let mut written = in_places(PLACES, ranges(count), move |range: Range<usize>| {
        let (etcd, progress, make) = (etcd.clone(), progress.clone(), Arc::clone(&make));
        async move {
            let objects: Vec<Object> = range.clone().map(&*make).collect();
            let revision = etcd.put(&objects).await?;
            range.clone().for_each(|_| progress.one());
            Ok((range, revision))
        }
    })
    .await?;
    written.sort_by_key(|(range, _)| range.start);
    let versions = written.into_iter();
    Ok(versions.flat_map(|(range, revision)| range.map(move |_| revision.to_string())).collect())
}

/// The numbers below `count`, in pieces of at most [`AT_ONCE`].
fn ranges(count: usize) -> Vec<Range<usize>> {
    let begins = (0..count).step_by(AT_ONCE);
    begins.map(|begin| begin..count.min(begin + AT_ONCE)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_api_server() {
        let expected = "/registry/trainer.kubeflow.org/trainjobs/a/b";
        assert_eq!(key(TRAIN_JOBS, "a", "b"), expected);
    }

    #[test]
    fn keys_and_texts_are_encoded() {
        let object = Object { key: "/k".to_owned(), text: "{}".to_owned() };
        let put = json!({"requestPut": {"key": "L2s=", "value": "e30="}});
        assert_eq!(transaction(&[object]), json!({"success": [put]}));
    }

    #[test]
    fn the_revision_of_what_was_done_is_its_version() {
        let done = json!({"header": {"revision": "17"}, "succeeded": true, "responses": []});
        assert_eq!(revision(&done).unwrap(), 17);
        assert!(revision(&json!({"header": {"revision": "17"}})).is_err());
    }

    #[test]
    fn every_number_is_in_one_piece() {
        for count in [0, 1, 128, 129, 400] {
            let pieces = ranges(count);
            assert!(pieces.iter().all(|piece| piece.len() <= AT_ONCE), "{pieces:?}");
            assert!(pieces.into_iter().flatten().eq(0..count), "{count}");
        }
    }
}
