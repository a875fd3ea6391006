use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use futures::stream::pending;
use http::Response;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;
use crate::watch::pages::{LARGE_PAGE, SMALL_PAGE};

/// For a status: a success, and a body that neither goes on nor ends.
const SILENT: u16 = 0;

/// Status and body of each answer, in the order in which they are given; then there is none any more.
type Script = Vec<(u16, String)>;

/// Goes on as often as there are answers. What was asked for, and what was told, ends and errors included.
async fn followed(answers: Script) -> (Vec<String>, Vec<String>) {
    let times = answers.len();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let log = Arc::clone(&asked);
    let service = service_fn(move |request: http::Request<Body>| {
        log.lock().unwrap().push(request.uri().query().unwrap_or_default().to_owned());
        let answer = answers.lock().unwrap().pop_front();
        async move {
            let Some((status, body)) = answer else { return std::future::pending().await };
            let (status, body) = match status {
                SILENT => (200, StreamBody::new(pending::<Result<Frame<Bytes>, _>>()).boxed()),
                _ => (status, Full::from(body.into_bytes()).boxed()),
            };
            Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap())
        }
    });
    let api: Api<ConfigMap> = Api::all(Client::new(service, "default"));
    let selected = Selected { labels: Some("a=b".into()), ..Selected::default() };
    let mut objects = ListAndWatch::new(api, selected, Span::Short);
    let mut told = Vec::new();
    for _ in 0..times {
        let mut tell = |event| told.push(say(&event));
        let ended = timeout(Duration::from_mins(1), objects.go_on(&mut tell)).await;
        match ended {
            Ok(Ok(())) => told.push("ended".to_owned()),
            Ok(Err(error)) => told.push(error.to_string()),
            // A page follows the other, so that there are fewer turns than answers.
            Err(_) => break,
        }
    }
    let asked = asked.lock().unwrap().clone();
    (asked, told)
}

fn say(event: &Event<ConfigMap>) -> String {
    let name = |object: &ConfigMap| object.metadata.name.clone().unwrap_or_default();
    match event {
        Event::Init => "list".to_owned(),
        Event::InitApply(object) => format!("listed {}", name(object)),
        Event::InitDone => "all".to_owned(),
        Event::Apply(object) => format!("changed {}", name(object)),
        Event::Delete(object) => format!("deleted {}", name(object)),
    }
}

fn object(name: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": version}})
}

fn page(version: &str, next: &str, names: &[&str], bytes: usize) -> (u16, String) {
    let items: Vec<_> = names.iter().map(|name| object(name, "1")).collect();
    let metadata = json!({"resourceVersion": version, "continue": next});
    let page = json!({"metadata": metadata, "items": items, "more": "x".repeat(bytes)});
    (200, page.to_string())
}

fn event(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

fn refused(code: u16) -> (u16, String) {
    let status = json!({"kind": "Status", "status": "Failure", "message": "no", "code": code});
    (code, status.to_string())
}

fn listed(limit: u32, next: &str) -> String {
    let next = if next.is_empty() { String::new() } else { format!("&continue={next}") };
    format!("&labelSelector=a%3Db&limit={limit}{next}")
}

fn watched(version: &str) -> String {
    format!(
        "&watch=true&timeoutSeconds=4&labelSelector=a%3Db&allowWatchBookmarks=true&resourceVersion={version}"
    )
}

#[tokio::test(start_paused = true)]
async fn what_is_listed_is_told_and_the_watch_goes_on_where_it_was() {
    let mark =
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "8"}});
    let events = [
        event("ADDED", &object("c", "6")),
        event("BOOKMARK", &mark),
        event("DELETED", &object("a", "9")),
    ];
    let script = vec![
        page("5", "x", &["a", "b"], 0),
        page("5", "", &[], 0),
        (200, events.concat()),
        (200, event("MODIFIED", &object("c", "12"))),
        refused(500),
    ];
    let (asked, told) = followed(script).await;
    let expected = [listed(50, ""), listed(100, "x"), watched("5"), watched("9"), watched("12")];
    assert_eq!(asked[..5], expected);
    let expected =
        ["list", "listed a", "listed b", "all", "ended", "changed c", "deleted a", "ended"];
    assert_eq!(told[..8], expected);
    assert_eq!(told[8..10], ["changed c", "ended"]);
    assert!(told[10].contains("failed to start"), "{}", told[10]);
}

#[tokio::test(start_paused = true)]
async fn pages_grow_while_they_are_short_and_shrink_when_they_are_long_or_fail() {
    let pages = [0, SMALL_PAGE + 1, 0, 0, 0, LARGE_PAGE + 1];
    let mut script: Script = pages.iter().map(|bytes| page("5", "x", &[], *bytes)).collect();
    script.extend([refused(500), page("5", "", &[], 0)]);
    let (asked, _) = followed(script).await;
    let limit =
        |query: &String| query.split('&').find_map(|it| it.strip_prefix("limit=")?.parse().ok());
    let limits: Vec<u32> = asked.iter().filter_map(limit).collect();
    assert_eq!(limits[..8], [50, 100, 100, 200, 400, 500, 250, 125]);
}

#[tokio::test(start_paused = true)]
async fn only_what_is_not_to_be_had_any_more_is_listed_again() {
    let gone = json!({"kind": "Status", "code": 410});
    let slow = json!({"kind": "Status", "code": 504});
    for (answer, lists_again) in [
        ((200, event("ERROR", &gone)), true),
        (refused(410), true),
        ((200, event("ADDED", &object("a", ""))), true),
        ((200, event("ERROR", &slow)), false),
        (refused(429), false),
        (refused(403), false),
        ((200, String::new()), false),
    ] {
        let what = answer.1.clone();
        let (asked, _) = followed(vec![page("5", "", &[], 0), answer, refused(500)]).await;
        let next = if lists_again { listed(100, "") } else { watched("5") };
        assert_eq!(asked[2], next, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_silent_for_longer_than_its_span_has_ended() {
    let (asked, told) =
        followed(vec![page("5", "", &[], 0), (SILENT, String::new()), refused(500)]).await;
    assert_eq!(asked[1..3], [watched("5"), watched("5")]);
    assert_eq!(told[..4], ["list", "all", "ended", "ended"]);
}

#[tokio::test(start_paused = true)]
async fn event_that_cannot_be_read_keeps_no_other_from_being_told() {
    let bad = json!({"metadata": {"name": "bad", "resourceVersion": "6"}, "data": 7});
    let events = [event("ADDED", &bad), event("ADDED", &object("good", "7"))];
    let script = vec![page("5", "", &[], 0), (200, events.concat()), refused(500)];
    let (asked, told) = followed(script).await;
    assert_eq!(told[3..5], ["changed good", "ended"]);
    assert_eq!(asked[2], watched("7"));
}
