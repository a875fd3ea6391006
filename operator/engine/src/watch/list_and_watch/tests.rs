use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::*;
use crate::{
    list::{LARGE_PAGE, SMALL_PAGE},
    watch::scripted::{SILENT, Script, object, page, refused, scripted},
};

/// Goes on as often as there are answers. What was asked for, and what was told, ends and errors included.
async fn followed(answers: Script) -> (Vec<String>, Vec<String>) {
    let times = answers.len();
    let (client, asked) = scripted(answers);
    let api: Api<ConfigMap> = Api::all(client);
    let selected = Selected { labels: Some("a=b".into()), ..Selected::default() };
    let mut objects = ListAndWatch::new(api, selected, Span::Short);
    let mut told = Vec::new();
    for _ in 0..times {
        let mut tell = |sign| match sign {
            Sign::Event(event) => told.push(say(&event)),
            Sign::Alive => told.push("alive".to_owned()),
        };
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

fn event(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
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
    let expected = [
        "list",
        "listed a",
        "listed b",
        "all",
        "ended",
        "alive",
        "changed c",
        "alive",
        "deleted a",
    ];
    assert_eq!(told[..9], expected);
    assert_eq!(told[9..13], ["ended", "alive", "changed c", "ended"]);
    assert!(told[13].contains("failed to start"), "{}", told[13]);
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
    assert_eq!(told[..5], ["list", "all", "ended", "alive", "ended"]);
}

#[tokio::test(start_paused = true)]
async fn event_that_cannot_be_read_keeps_no_other_from_being_told() {
    let bad = json!({"metadata": {"name": "bad", "resourceVersion": "6"}, "data": 7});
    let events = [event("ADDED", &bad), event("ADDED", &object("good", "7"))];
    let script = vec![page("5", "", &[], 0), (200, events.concat()), refused(500)];
    let (asked, told) = followed(script).await;
    assert_eq!(told[4..6], ["changed good", "ended"]);
    assert_eq!(asked[2], watched("7"));
}
