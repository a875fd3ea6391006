//! The proxy between an operator and the API server: what passes, what it notes, and every fault.
//!
//! All tests share an API server; each has a proxy and a namespace of its own.

mod client;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use client::{BOTH, Connection, Version};
use e2e::cluster::{Cluster, Options};
use e2e::fixtures::shared::Shared;
use e2e::proxy::{Call, Fault, Injection, Proxy, Scope};
use e2e::until::until;
use futures::FutureExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(30);

/// A proxy and a namespace.
struct Scene {
    cluster: Arc<Cluster>,
    proxy: Proxy,
    namespace: String,
    /// The ConfigMaps of the namespace, as somebody sees them who does not use the proxy.
    stored: Api<ConfigMap>,
}

impl Scene {
    async fn new(scope: impl FnOnce(&str) -> Scope) -> Result<Self> {
        static SHARED: Shared<Cluster> = Shared::new();
        let cluster = SHARED.get(async || Cluster::start(Options::bare()).await).await?;
        let namespace = cluster.namespace("proxy").await?;
        let proxy = Proxy::start(&cluster, scope(&namespace)).await?;
        let stored = Api::namespaced(cluster.client().await?, &namespace);
        Ok(Self { cluster, proxy, namespace, stored })
    }

    async fn whole() -> Result<Self> {
        Self::new(|_| Scope::Cluster).await
    }

    async fn connect(&self, version: Version) -> Result<Connection> {
        let kubeconfig = self.proxy.kubeconfig(&self.cluster.kubeconfig())?;
        Connection::open(&self.cluster, &kubeconfig, version).await
    }

    /// The path of the ConfigMaps.
    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    /// Asks for a ConfigMap through the proxy, as a task.
    async fn create(
        &self,
        version: Version,
        name: &str,
    ) -> Result<tokio::task::JoinHandle<Result<u16>>> {
        let (mut connection, path, body) = (self.connect(version).await?, self.path(), named(name));
        Ok(tokio::spawn(async move {
            Ok(connection.call("POST", &path, &body).await?.0.status.as_u16())
        }))
    }

    /// Creates a ConfigMap past the proxy.
    async fn create_directly(&self, name: &str) -> Result<()> {
        let object = serde_json::from_value(named(name))?;
        self.stored.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    async fn is_stored(&self, name: &str) -> Result<bool> {
        Ok(self.stored.get_opt(name).await?.is_some())
    }

    /// Puts a fault in the way of the first creation.
    fn at_creation(&self, fault: Fault) -> Injection {
        self.proxy.inject(|call| call.verb == "create", 1..=1, fault)
    }
}

fn named(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

#[tokio::test]
async fn calls_pass_and_are_noted_as_the_api_server_understood_them() -> Result<()> {
    for version in BOTH {
        let scene = Scene::whole().await?;
        let mut connection = scene.connect(version).await?;
        let (all, one) = (scene.path(), format!("{}/a", scene.path()));
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "owner", "controller": true});
        let child = json!({"metadata": {"name": "a", "ownerReferences": [owner]}});

        let (head, created) = connection.call("POST", &all, &child).await?;
        ensure!(head.status == 201, "{created}");
        let (uid, first) = identity(&created)?;
        let change =
            json!({"metadata": {"uid": uid, "resourceVersion": first}, "data": {"a": "1"}});
        let (_, changed) = connection.call("PATCH", &one, &change).await?;
        let (_, second) = identity(&changed)?;
        connection.call("PATCH", &one, &change).await?;
        connection.call("GET", &one, &Value::Null).await?;
        connection.call("GET", &all, &Value::Null).await?;
        let conditions = json!({"preconditions": {"uid": uid, "resourceVersion": second}});
        connection.call("DELETE", &one, &conditions).await?;
        connection.call("GET", &one, &Value::Null).await?;

        let (first, second) = (first.parse().ok(), second.parse().ok());
        let noted = scene.proxy.requests();
        let brief: Vec<_> = noted
            .iter()
            .map(|it| {
                (it.verb.as_str(), it.name.as_str(), it.version, it.answer.code, it.answer.version)
            })
            .collect();
        let expected = [
            ("create", "a", None, Some(201), first),
            ("patch", "a", first, Some(200), second),
            ("patch", "a", first, Some(409), None),
            ("get", "a", None, Some(200), second),
            ("list", "", None, Some(200), None),
            ("delete", "a", second, Some(200), None),
            ("get", "a", None, Some(404), None),
        ];
        ensure!(brief == expected, "{version:?}: {noted:#?}");
        for request in &noted {
            ensure!(request.answer.served == request.answer.code, "{request:?}");
            ensure!(request.ended >= request.sent && request.process == 1, "{request:?}");
            ensure!(request.namespace == scene.namespace, "{request:?}");
            let named_uid = matches!(request.verb.as_str(), "patch" | "delete");
            ensure!(request.uid.as_deref() == named_uid.then_some(uid.as_str()), "{request:?}");
            let owner = (request.verb == "create").then_some("owner");
            ensure!(request.owner.as_deref() == owner, "{request:?}");
        }
    }
    Ok(())
}

/// The UID and the resource version of an object.
fn identity(object: &Value) -> Result<(String, String)> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let identity = text("/metadata/uid").zip(text("/metadata/resourceVersion"));
    identity.with_context(|| format!("no object: {object}"))
}

#[tokio::test]
async fn an_ordinary_client_works_through_the_proxy() -> Result<()> {
    let scene = Scene::whole().await?;
    let kubeconfig = scene.proxy.kubeconfig(&scene.cluster.kubeconfig())?;
    let client = e2e::credentials::client(&kubeconfig).await?;
    let api: Api<ConfigMap> = Api::namespaced(client, &scene.namespace);
    api.create(&PostParams::default(), &serde_json::from_value(named("a"))?).await?;
    let error = api.create(&PostParams::default(), &serde_json::from_value(named("a"))?).await;
    ensure!(matches!(&error, Err(kube::Error::Api(status)) if status.code == 409), "{error:?}");
    Ok(())
}

#[tokio::test]
async fn the_process_that_calls_is_the_one_named_last() -> Result<()> {
    let scene = Scene::whole().await?;
    let mut connection = scene.connect(Version::One).await?;
    connection.call("GET", "/version", &Value::Null).await?;
    scene.proxy.process(2);
    connection.call("GET", "/version", &Value::Null).await?;
    let processes: Vec<u32> = scene.proxy.requests().iter().map(|it| it.process).collect();
    ensure!(processes == [1, 2], "{processes:?}");
    ensure!(scene.proxy.count(|call| call.process == 2) == 1, "counted otherwise");
    Ok(())
}

#[tokio::test]
async fn events_of_a_watch_pass_as_they_come_and_it_lasts_until_the_client_leaves() -> Result<()> {
    for version in BOTH {
        let scene = Scene::whole().await?;
        let mut connection = scene.connect(version).await?;
        let path = format!("{}?watch=true", scene.path());
        let mut watch = connection.watch(&path).await?;
        for name in ["a", "b"] {
            scene.create_directly(name).await?;
            let event = watch.event().await?.context("the watch has ended")?;
            ensure!(event["object"]["metadata"]["name"] == name, "{event}");
        }
        let noted = || scene.proxy.requests().pop().context("not noted");
        ensure!(noted()?.verb == "watch" && noted()?.answer.code == Some(200), "{:?}", noted()?);
        drop((watch, connection));
        let last = Cell::new(0);
        until("the watch has ended", PATIENCE, || async {
            // While it lasts, it ends at present, which is another at each look.
            let ended = noted().ok()?.ended;
            (last.replace(ended) == ended).then_some(())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_request_that_is_held_arrives_when_it_is_released() -> Result<()> {
    for version in BOTH {
        let scene = Scene::whole().await?;
        let held = scene.at_creation(Fault::HoldRequest);
        ensure!(!held.is_reached(), "nothing has come");
        let creation = scene.create(version, "a").await?;
        held.reached().await?;
        ensure!(!scene.is_stored("a").await?, "it was forwarded");
        ensure!(!creation.is_finished(), "it was answered");
        held.release();
        ensure!(creation.await?? == 201, "it was refused");
        ensure!(scene.is_stored("a").await?, "it was not forwarded");
    }
    Ok(())
}

#[tokio::test]
async fn a_request_whose_client_dies_while_it_is_held_never_arrives() -> Result<()> {
    for version in BOTH {
        let scene = Scene::whole().await?;
        let held = scene.at_creation(Fault::HoldRequest);
        let creation = scene.create(version, "a").await?;
        held.reached().await?;
        creation.abort();
        held.holds_none().await?;
        held.release();
        // What comes later has come.
        ensure!(scene.create(version, "b").await?.await?? == 201, "refused");
        ensure!(!scene.is_stored("a").await?, "{version:?}: it was forwarded");
        let noted = scene.proxy.requests();
        let answer = &noted.first().context("not noted")?.answer;
        ensure!(answer.code.is_none() && answer.served.is_none(), "{answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_reply_that_is_held_is_of_a_request_that_has_arrived() -> Result<()> {
    for version in BOTH {
        let scene = Scene::whole().await?;
        let held = scene.at_creation(Fault::HoldReply);
        let creation = scene.create(version, "a").await?;
        held.reached().await?;
        ensure!(scene.is_stored("a").await?, "it was not forwarded");
        ensure!(!creation.is_finished(), "it was answered");
        held.remove();
        ensure!(creation.await?? == 201, "it was refused");
    }
    Ok(())
}

#[tokio::test]
async fn a_fault_that_ceases_befalls_no_more_calls_and_keeps_those_it_holds() -> Result<()> {
    let scene = Scene::whole().await?;
    let held = scene.proxy.inject(|call| call.verb == "create", 1..=usize::MAX, Fault::HoldRequest);
    let creation = scene.create(Version::One, "a").await?;
    held.reached().await?;
    held.cease();
    ensure!(scene.create(Version::One, "b").await?.await?? == 201, "refused");
    ensure!(!creation.is_finished() && !scene.is_stored("a").await?, "it was let go");
    held.release();
    ensure!(creation.await?? == 201, "it was refused");
    Ok(())
}

#[tokio::test]
async fn what_the_api_server_did_is_noted_even_if_the_client_did_not_wait() -> Result<()> {
    for version in BOTH {
        let scene = Scene::whole().await?;
        let held = scene.at_creation(Fault::HoldReply);
        let creation = scene.create(version, "a").await?;
        held.reached().await?;
        creation.abort();
        held.holds_none().await?;
        let noted = scene.proxy.requests();
        let answer = &noted.first().context("not noted")?.answer;
        ensure!(answer.code.is_none() && answer.served == Some(201), "{answer:?}");
        ensure!(answer.version.is_some(), "{answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_reply_that_is_dropped_breaks_the_connection_of_a_request_that_has_arrived() -> Result<()>
{
    for version in BOTH {
        let scene = Scene::whole().await?;
        let dropped = scene.at_creation(Fault::DropReply);
        let answer = scene.create(version, "a").await?.await?;
        ensure!(answer.is_err(), "answered {answer:?}");
        ensure!(dropped.is_reached() && scene.is_stored("a").await?, "it was not forwarded");
        ensure!(scene.create(version, "b").await?.await?? == 201, "the next one met it too");
        let noted = scene.proxy.requests();
        let answer = &noted.first().context("not noted")?.answer;
        ensure!(answer.code.is_none() && answer.served == Some(201), "{answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_looks_like_the_api_servers_and_the_request_does_not_arrive() -> Result<()> {
    let scene = Scene::whole().await?;
    let mut connection = scene.connect(Version::One).await?;
    for (status, retry_after, reason) in [
        (403, None, "Forbidden"),
        (404, None, "NotFound"),
        (409, None, "AlreadyExists"),
        (422, None, "Invalid"),
        (429, Some(3), "TooManyRequests"),
        (500, None, "InternalError"),
        (503, Some(1), "ServiceUnavailable"),
        (504, None, "Timeout"),
    ] {
        let answered = scene.at_creation(Fault::Answer { status, retry_after });
        let (head, body) = connection.call("POST", &scene.path(), &named("a")).await?;
        ensure!(answered.is_reached() && head.status == status, "{head:?}");
        let told = head.headers.get("retry-after").map(|it| it.to_str().unwrap().parse().unwrap());
        ensure!(told == retry_after, "{head:?}");
        ensure!(body["kind"] == "Status" && body["code"] == status, "{body}");
        ensure!(body["reason"] == reason && body["details"]["name"] == "a", "{body}");
        let noted = scene.proxy.requests().pop().context("not noted")?.answer;
        ensure!(noted.code == Some(status) && noted.retry_after == retry_after, "{noted:?}");
        ensure!(noted.served.is_none(), "{noted:?}");
    }
    ensure!(!scene.is_stored("a").await?, "it was forwarded");
    let conflict = Fault::Answer { status: 409, retry_after: None };
    scene.proxy.inject(|call| call.verb == "delete", 1..=1, conflict);
    let (_, body) = connection.call("DELETE", &format!("{}/a", scene.path()), &json!({})).await?;
    ensure!(body["reason"] == "Conflict", "{body}");
    Ok(())
}

#[tokio::test]
async fn an_overloaded_api_server_answers_in_plain_text() -> Result<()> {
    let scene = Scene::whole().await?;
    scene.at_creation(Fault::Overloaded { retry_after: 3 });
    let refused = scene.create(Version::One, "a").await?.await?;
    // The body is no JSON.
    ensure!(refused.is_err(), "{refused:?}");
    let noted = scene.proxy.requests().pop().context("not noted")?.answer;
    ensure!(noted.code == Some(429) && noted.retry_after == Some(3), "{noted:?}");
    ensure!(!scene.is_stored("a").await?, "it was forwarded");
    Ok(())
}

#[tokio::test]
async fn a_request_that_is_delayed_arrives_later() -> Result<()> {
    let scene = Scene::whole().await?;
    let delay = Duration::from_millis(300);
    let delayed = scene.at_creation(Fault::Delay(delay));
    let begin = Instant::now();
    let creation = scene.create(Version::One, "a").await?;
    ensure!(creation.await?? == 201, "it was refused");
    ensure!(delayed.is_reached() && begin.elapsed() >= delay, "it was not delayed");
    Ok(())
}

#[tokio::test]
async fn request_with_fault_pass_reaches_the_api_server() -> Result<()> {
    let scene = Scene::whole().await?;
    let passed = scene.at_creation(Fault::Pass);
    let creation = scene.create(Version::One, "a").await?;
    passed.reached().await?;
    ensure!(scene.is_stored("a").await?, "its reply cannot be on its way");
    ensure!(creation.await?? == 201, "it was refused");
    Ok(())
}

#[tokio::test]
async fn a_frozen_watch_is_silent_and_open_until_it_thaws() -> Result<()> {
    for version in BOTH {
        let scene = Scene::whole().await?;
        let fault = scene.proxy.inject(Call::is_watch, 1..=1, Fault::FreezeWatch);
        let path = format!("{}?watch=true", scene.path());
        let (mut cold, mut warm) = (scene.connect(version).await?, scene.connect(version).await?);
        let mut frozen = cold.watch(&path).await?;
        let mut beside = warm.watch(&path).await?;

        scene.create_directly("a").await?;
        frozen.event().await?.context("it was frozen at once")?;
        beside.event().await?;
        fault.freeze();
        // It is noticed at the next look at it.
        scene.create_directly("b").await?;
        beside.event().await?;
        fault.reached().await?;
        ensure!(frozen.event().now_or_never().is_none(), "something passed, or it ended");
        fault.release();
        let late = frozen.event().await?.context("it ended")?;
        ensure!(late["object"]["metadata"]["name"] == "b", "{late}");
    }
    Ok(())
}

#[tokio::test]
async fn a_fault_befalls_the_calls_of_its_numbers_counted_from_its_injection() -> Result<()> {
    let scene = Scene::whole().await?;
    let mut connection = scene.connect(Version::One).await?;
    let path = scene.path();
    let mut codes = async |names: &[&str]| {
        let mut codes = Vec::new();
        for name in names {
            codes.push(connection.call("POST", &path, &named(name)).await?.0.status.as_u16());
        }
        anyhow::Ok(codes)
    };
    ensure!(codes(&["a"]).await? == [201], "refused");
    let answer = |status| Fault::Answer { status, retry_after: None };
    let second = scene.proxy.inject(|call| call.verb == "create", 2..=3, answer(500));
    let named_e = scene.proxy.inject(|call| call.name == "e", 1..=usize::MAX, answer(503));
    ensure!(codes(&["b", "c"]).await? == [201, 500], "the second is meant");
    ensure!(second.befallen() == 1 && !second.is_reached(), "the third is meant too");
    ensure!(codes(&["d", "e", "e"]).await? == [500, 503, 503], "each for its own");
    ensure!(second.is_reached() && named_e.is_reached(), "not reached");
    named_e.remove();
    ensure!(codes(&["e"]).await? == [201], "it was removed");
    ensure!(scene.proxy.count(|call| call.verb == "create") == 7, "counted otherwise");
    ensure!(scene.proxy.count(|call| call.name == "e") == 3, "counted otherwise");
    Ok(())
}

#[tokio::test]
async fn who_may_see_one_namespace_sees_no_other_but_all_that_has_none() -> Result<()> {
    let scene = Scene::new(|namespace| Scope::Namespace(namespace.to_owned())).await?;
    let other = Scene::whole().await?;
    other.create_directly("other").await?;
    scene.create_directly("mine").await?;
    let mut connection = scene.connect(Version::One).await?;

    let (_, list) = connection.call("GET", "/api/v1/configmaps?limit=500", &Value::Null).await?;
    ensure!(names(&list) == BTreeSet::from(["mine"]), "{list}");
    let (_, list) = connection.call("GET", "/api/v1/namespaces", &Value::Null).await?;
    ensure!(names(&list).contains(other.namespace.as_str()), "{list}");
    let (head, _) =
        connection.call("GET", &format!("{}/other", other.path()), &Value::Null).await?;
    ensure!(head.status == 200, "what is asked for by name is not hidden");

    let path = "/api/v1/configmaps?watch=true&sendInitialEvents=true\
        &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = connection.watch(path).await?;
    let mine = watch.event().await?.context("the watch has ended")?;
    ensure!(mine["object"]["metadata"]["name"] == "mine", "{mine}");
    let bookmark = watch.event().await?.context("the watch has ended")?;
    ensure!(bookmark["type"] == "BOOKMARK", "{bookmark}");
    Ok(())
}

fn names(list: &Value) -> BTreeSet<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item.pointer("/metadata/name")?.as_str()).collect()
}

#[tokio::test]
async fn nothing_is_left_of_a_proxy_that_is_dropped() -> Result<()> {
    for version in BOTH {
        let scene = Scene::whole().await?;
        scene.at_creation(Fault::HoldRequest);
        let creation = scene.create(version, "a").await?;
        let mut connection = scene.connect(version).await?;
        connection.call("GET", "/version", &Value::Null).await?;
        let address = scene.proxy.address();
        until("the creation is held", PATIENCE, || async {
            (scene.proxy.count(|call| call.verb == "create") == 1).then_some(())
        })
        .await?;
        drop(scene.proxy);
        until("nobody listens", PATIENCE, || async {
            TcpStream::connect(&address).await.is_err().then_some(())
        })
        .await?;
        ensure!(creation.await?.is_err(), "what was held was answered");
        let answer = connection.call("GET", "/version", &Value::Null).await;
        ensure!(answer.is_err(), "an open connection works: {answer:?}");
        ensure!(scene.stored.get_opt("a").await?.is_none(), "what was held was forwarded");
    }
    Ok(())
}

#[tokio::test]
async fn a_client_of_an_api_server_that_is_down_sees_broken_connections() -> Result<()> {
    let cluster = Cluster::prepare(Options::bare()).await?;
    let proxy = Proxy::start(&cluster, Scope::Cluster).await?;
    let kubeconfig = proxy.kubeconfig(&cluster.kubeconfig())?;
    for version in BOTH {
        let mut connection = Connection::open(&cluster, &kubeconfig, version).await?;
        let Err(_) = connection.call("GET", "/version", &Value::Null).await else {
            bail!("an answer from nowhere");
        };
    }
    let noted = proxy.requests();
    ensure!(noted.len() == 2, "{noted:?}");
    ensure!(noted.iter().all(|it| it.answer.code.is_none()), "{noted:?}");
    Ok(())
}
