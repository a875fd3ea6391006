use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::Response;
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use tower::service_fn;

use super::*;

/// Status and body of each answer, in the order in which they are given; then nobody is told anything any more.
type Script = Vec<(u16, String)>;

/// How an API server is followed.
struct How {
    selection: Selection,
    span: Span,
    /// After how many seconds a watch that has shown its events ends, if it does.
    lasts: Option<u64>,
    seconds: u64,
}

impl Default for How {
    fn default() -> Self {
        Self { selection: Selection::default(), span: Span::Short, lasts: Some(0), seconds: 20 }
    }
}

/// Follows an API server that answers so. What was asked for, what was told, and why it ended, if it did.
async fn followed(answers: Script) -> (Vec<String>, Vec<String>, Option<Ended>) {
    followed_so(How::default(), answers).await
}

async fn followed_so(how: How, answers: Script) -> (Vec<String>, Vec<String>, Option<Ended>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let log = Arc::clone(&asked);
    let service = service_fn(move |request: http::Request<Body>| {
        let question = request.uri().to_string();
        let lasts = if question.contains("watch=true") { how.lasts } else { Some(0) };
        log.lock().unwrap().push(question);
        let answer = answers.lock().unwrap().pop_front();
        async move {
            let Some((status, body)) = answer else { return std::future::pending().await };
            let end = async move {
                sleep(lasts.map_or(Duration::MAX, Duration::from_secs)).await;
                None
            };
            let body = Full::from(body.into_bytes()).with_trailers(Box::pin(end));
            Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap())
        }
    });
    let source = Source {
        client: Client::new(service, "default"),
        path: "/apis/batch/v1/jobs".to_owned(),
        selection: how.selection,
        metadata_only: false,
        span: how.span,
        restarts: IntCounter::new("restarts", "Restarts.").unwrap(),
    };
    let mut told = Vec::new();
    let follow = follow(&source, |news| {
        told.push(match news {
            News::Changed(_, named) => format!("changed {}", named.name),
            News::Deleted(named) => format!("deleted {}", named.name),
            News::Listed(object) => format!("listed {}", Named::read(object).unwrap().name),
            other => format!("{other:?}"),
        });
    });
    let ended = timeout(Duration::from_secs(how.seconds), follow).await.ok();
    let asked = asked.lock().unwrap().clone();
    (asked, told, ended)
}

fn page(version: &str, next: &str, names: &[&str]) -> (u16, String) {
    let items: Vec<_> =
        names.iter().map(|name| format!(r#"{{"metadata":{{"name":"{name}"}}}}"#)).collect();
    let items = items.join(",");
    let metadata = format!(r#"{{"resourceVersion":"{version}","continue":"{next}"}}"#);
    (200, format!(r#"{{"kind":"JobList","metadata":{metadata},"items":[{items}]}}"#))
}

fn event(kind: &str, name: &str, version: &str) -> String {
    let metadata = format!(r#"{{"name":"{name}","resourceVersion":"{version}"}}"#);
    format!("{{\"type\":\"{kind}\",\"object\":{{\"metadata\":{metadata}}}}}\n")
}

fn status(code: u16) -> (u16, String) {
    (
        code,
        format!(
            r#"{{"kind":"Status","status":"Failure","reason":"R","message":"m","code":{code}}}"#
        ),
    )
}

#[tokio::test(start_paused = true)]
async fn pages_are_listed_and_the_watch_goes_on_where_it_was() {
    let events = [event("ADDED", "c", "6"), event("BOOKMARK", "", "8"), event("DELETED", "a", "9")];
    let script = vec![
        page("5", "x/y=", &["a", "b"]),
        page("5", "", &[]),
        (200, events.concat()),
        (200, event("MODIFIED", "c", "12")),
    ];
    let (asked, told, ended) = followed(script).await;
    let jobs = "/apis/batch/v1/jobs";
    let watched = |version: u32| {
        format!(
            "{jobs}?watch=true&allowWatchBookmarks=true&timeoutSeconds=4&resourceVersion={version}"
        )
    };
    let listed = [format!("{jobs}?limit=500"), format!("{jobs}?limit=500&continue=x%2Fy%3D")];
    assert_eq!(asked[..2], listed);
    assert_eq!(asked[2..], [watched(5), watched(9), watched(12)]);
    assert_eq!(
        told,
        [
            "ListBegins",
            "listed a",
            "listed b",
            "ListEnds",
            "changed c",
            "Alive",
            "Alive",
            "deleted a",
            "Alive",
            "changed c",
            "Alive"
        ]
    );
    assert_eq!(ended, None);
}

#[tokio::test(start_paused = true)]
async fn all_is_listed_again_when_a_watch_cannot_go_on() {
    let expired = r#"{"type":"ERROR","object":{"kind":"Status","code":410}}"#.to_owned();
    for answer in [(200, expired), status(410), (200, "no JSON\n".to_owned())] {
        let script = vec![page("5", "", &["a"]), answer, page("9", "", &["b"])];
        let (asked, told, _) = followed(script).await;
        assert!(asked.last().unwrap().ends_with("resourceVersion=9"), "{asked:?}");
        assert_eq!(
            told,
            ["ListBegins", "listed a", "ListEnds", "ListBegins", "listed b", "ListEnds"]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_listed_again_because_a_watch_is_to_wait() {
    let mut script = vec![page("5", "", &["a"])];
    script.extend(vec![status(429); 8]);
    script.push((200, event("ADDED", "b", "6")));
    let (asked, told, _) = followed_so(How { seconds: 60, ..How::default() }, script).await;
    let (watches, lists): (Vec<_>, Vec<_>) =
        asked.iter().partition(|asked| asked.contains("watch=true"));
    assert_eq!((watches.len(), lists.len()), (10, 1), "{asked:?}");
    assert_eq!(told[2..], ["ListEnds", "changed b", "Alive"]);
}

#[tokio::test(start_paused = true)]
async fn lists_become_rarer_as_long_as_no_watch_tells_anything() {
    let mut script = Vec::new();
    for _ in 0..40 {
        script.extend([page("5", "", &["a"]), status(503)]);
    }
    let (asked, ..) = followed(script).await;
    let lists = asked.iter().filter(|asked| !asked.contains("watch=true")).count();
    assert!((5..=12).contains(&lists), "{lists} in 20 s");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_cut_off_does_not_count_and_is_asked_for_smaller() {
    let (code, mut cut) = page("5", "", &["a", "b"]);
    cut.truncate(cut.len() - 1);
    let (asked, told, _) = followed(vec![(code, cut), page("6", "", &["a"])]).await;
    assert!(asked[1].ends_with("?limit=250"), "{asked:?}");
    let listed = ["ListBegins", "listed a", "listed b", "ListBegins", "listed a", "ListEnds"];
    assert_eq!(told, listed);
}

#[tokio::test(start_paused = true)]
async fn a_path_that_is_not_there_or_not_allowed_ends_it() {
    for (code, expected) in
        [(404, Ended::NotServed), (403, Ended::Forbidden), (401, Ended::Forbidden)]
    {
        let (_, told, ended) = followed(vec![status(code)]).await;
        assert_eq!((ended, told), (Some(expected), vec!["ListBegins".to_owned()]));
        let (_, _, ended) = followed(vec![page("5", "", &[]), status(code)]).await;
        assert_eq!(ended, Some(expected), "of the watch");
    }
    let (asked, _, ended) = followed(vec![status(503), status(500), status(404)]).await;
    assert_eq!((asked.len(), ended), (3, Some(Ended::NotServed)));
}

#[tokio::test(start_paused = true)]
async fn lists_and_watches_select_alike() {
    let selection = Selection { fields: "status.phase!=Running", labels: "a in (b)".to_owned() };
    let how = How { selection, ..How::default() };
    let (asked, _, _) = followed_so(how, vec![page("5", "", &["a"])]).await;
    assert_eq!(asked.len(), 2, "{asked:?}");
    for request in asked {
        let selected = "&fieldSelector=status.phase%21%3DRunning&labelSelector=a%20in%20%28b%29";
        assert!(request.ends_with(selected), "{request}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_is_begun_anew_where_it_was_and_is_short_then() {
    let bookmarks = [event("BOOKMARK", "", "6"), event("BOOKMARK", "", "7")];
    for (span, seconds, silence) in [(Span::Short, 4, 8), (Span::Long, 60, 70)] {
        let script = || {
            let [first, second] = bookmarks.clone();
            vec![page("5", "", &["a"]), (200, first), (200, second)]
        };
        // In so many seconds the first of the two is silent for too long, and then the second.
        for (waits, watches) in [
            (silence - 1, &[(5, seconds)][..]),
            (silence + 1, &[(5, seconds), (6, 4)]),
            (silence + 9, &[(5, seconds), (6, 4), (7, 4)]),
        ] {
            let how = How { span, lasts: None, seconds: waits, ..How::default() };
            let (asked, _, _) = followed_so(how, script()).await;
            let watched = watches.iter().map(|(version, seconds)| {
                format!("/apis/batch/v1/jobs?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={version}")
            });
            assert_eq!(asked[1..], watched.collect::<Vec<_>>(), "{span:?} after {waits} s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_shows_nothing_is_live_if_it_ends_in_its_time() {
    for (span, lasts, seconds, is_live) in [
        (Span::Short, 4, 5, true),
        (Span::Short, 3, 5, true),
        (Span::Short, 2, 5, false),
        (Span::Long, 60, 61, true),
        (Span::Long, 58, 61, false),
    ] {
        let script = vec![page("5", "", &[]), (200, String::new())];
        let how = How { span, lasts: Some(lasts), seconds, ..How::default() };
        let (asked, told, _) = followed_so(how, script).await;
        assert_eq!(told.contains(&"Alive".to_owned()), is_live, "{span:?} that lasts {lasts} s");
        assert_eq!(asked.len(), 3, "it goes on with another watch: {asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_is_listed_again_after_four_watches_that_show_nothing() {
    let silent = vec![(200, String::new()); 4];
    for (bookmarks, lists) in [(0, 2), (1, 1)] {
        let mut script = vec![page("5", "", &["a"])];
        script.extend(silent.clone());
        for (_, text) in script.iter_mut().skip(2).take(bookmarks) {
            *text = event("BOOKMARK", "", "5");
        }
        let how = How { lasts: None, seconds: 40, ..How::default() };
        let (asked, ..) = followed_so(how, script).await;
        let listed = asked.iter().filter(|asked| !asked.contains("watch")).count();
        assert_eq!(listed, lists, "{asked:?}");
    }
}
