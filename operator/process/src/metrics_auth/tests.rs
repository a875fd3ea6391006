use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::{BodyExt, Full};
use hyper::{body::Bytes, header::HeaderValue};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

/// An API server that knows one token, whose owner may get one path; and how often it was asked.
fn auth() -> (MetricsAuth, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let service = service_fn(move |request: http::Request<Body>| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            let is_token = request.uri().path().ends_with("/tokenreviews");
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let review: Value = serde_json::from_slice(&body).unwrap();
            let status = if is_token && review["spec"]["token"] == "good" {
                json!({"authenticated": true, "user": {"username": "scraper", "groups": ["g"]}})
            } else if is_token {
                json!({"authenticated": false, "user": {"username": "scraper"}})
            } else {
                assert_eq!(review["spec"]["user"], "scraper");
                assert_eq!(review["spec"]["groups"], json!(["g"]));
                assert_eq!(review["spec"]["nonResourceAttributes"]["verb"], "get");
                let path = &review["spec"]["nonResourceAttributes"]["path"];
                json!({"allowed": path == "/metrics"})
            };
            let body = json!({"spec": review["spec"], "status": status}).to_string();
            Ok::<_, std::convert::Infallible>(http::Response::new(Full::<Bytes>::from(body)))
        }
    });
    (MetricsAuth::new(Client::new(service, "default")), asked)
}

async fn asks(auth: &MetricsAuth, authorization: Option<&'static str>, path: &str) -> u16 {
    let given = authorization.map(|it| (AUTHORIZATION, HeaderValue::from_static(it)));
    let headers = HeaderMap::from_iter(given);
    auth.admit(&headers, path).await.err().map_or(200, |refusal| refusal.status().as_u16())
}

#[tokio::test(start_paused = true)]
async fn only_authenticated_and_authorized_clients_are_admitted() {
    let (auth, _) = auth();
    for (authorization, path, expected) in [
        (None, "/metrics", 401),
        (Some("Bearer "), "/metrics", 401),
        (Some("Basic Z29vZA=="), "/metrics", 401),
        (Some("Bearer bad"), "/metrics", 401),
        (Some("Bearer good"), "/metrics", 200),
        (Some("Bearer good"), "/other", 403),
    ] {
        tokio::time::advance(Duration::from_secs(1)).await;
        let status = asks(&auth, authorization, path).await;
        assert_eq!(status, expected, "{authorization:?} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn positive_metrics_auth_is_cached_for_a_minute_and_negative_is_not() {
    let (auth, asked) = auth();
    for (token, after, questions) in [
        ("Bearer good", 0, 2),
        ("Bearer good", 59, 0),
        ("Bearer good", 2, 2),
        ("Bearer bad", 0, 1),
        ("Bearer bad", 0, 1),
    ] {
        tokio::time::advance(Duration::from_secs(after)).await;
        let before = asked.load(Ordering::Relaxed);
        asks(&auth, Some(token), "/metrics").await;
        assert_eq!(asked.load(Ordering::Relaxed) - before, questions, "{token} after {after} s");
    }
}

#[tokio::test(start_paused = true)]
async fn rate_of_metrics_auth_reviews_is_limited() {
    let (auth, asked) = auth();
    let mut refusals = Vec::new();
    for _ in 0..100 {
        refusals.push(asks(&auth, Some("Bearer bad"), "/metrics").await);
    }
    assert_eq!(asked.load(Ordering::Relaxed), QUESTIONS as usize);
    assert_eq!(refusals.iter().filter(|status| **status == 503).count(), 95);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(asks(&auth, Some("Bearer good"), "/metrics").await, 200);
}

/// An API server that answers two questions, and nothing from then on.
fn dying() -> MetricsAuth {
    let (alive, asked) = (auth().0.client, Arc::new(AtomicUsize::new(0)));
    let service = service_fn(move |request: http::Request<Body>| {
        let (alive, is_dead) = (alive.clone(), asked.fetch_add(1, Ordering::Relaxed) >= 2);
        async move {
            if is_dead {
                std::future::pending::<()>().await;
            }
            alive.send(request).await.map_err(std::io::Error::other)
        }
    });
    MetricsAuth::new(Client::new(service, "default"))
}

#[tokio::test(start_paused = true)]
async fn who_was_authorized_is_so_for_ten_minutes_while_the_api_server_does_not_answer() {
    let auth = dying();
    for (token, after, expected) in [
        ("Bearer good", 0, 200),
        ("Bearer good", 59, 200),
        ("Bearer other", 0, 503),
        ("Bearer good", 500, 200),
        ("Bearer good", 60, 503),
    ] {
        tokio::time::advance(Duration::from_secs(after)).await;
        let before = Instant::now();
        assert_eq!(asks(&auth, Some(token), "/metrics").await, expected, "{token} after {after} s");
        assert!(before.elapsed() <= PATIENCE, "it took {:?}", before.elapsed());
    }
}
