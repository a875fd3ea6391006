//! The proxy between an operator and the API server: what passes, what it notes, and every fault.
//!
//! All tests share an API server; each has a proxy and a namespace of its own.

mod client;
mod faults;
mod scene;

use std::cell::Cell;
use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use e2e::cluster::{Cluster, Options};
use e2e::proxy::{Fault, Proxy, Scope};
use e2e::until::until;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use client::{BOTH, Connection, Version};
use scene::{PATIENCE, Scene, named};

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
