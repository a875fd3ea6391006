//! Faults in the way of calls.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::fixtures::PATIENCE;
use e2e::proxy::{Call, Fault};
use e2e::until::until_ok;
use futures::FutureExt;
use serde_json::json;

use super::client::{BOTH, Version};
use super::scene::{Scene, named};

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
async fn a_request_whose_client_dies_while_it_is_on_its_way_arrives() -> Result<()> {
    for version in BOTH {
        let scene = Scene::whole().await?;
        let held = scene.at_creation(Fault::HoldOnItsWay);
        let creation = scene.create(version, "a").await?;
        held.reached().await?;
        creation.abort();
        ensure!(scene.create(version, "b").await?.await?? == 201, "refused");
        ensure!(!scene.is_stored("a").await?, "{version:?}: it was forwarded");
        held.release();
        held.holds_none().await?;
        until_ok("it has arrived", PATIENCE, || async {
            ensure!(scene.is_stored("a").await?, "it has not");
            Ok(())
        })
        .await?;
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
