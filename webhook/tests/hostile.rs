//! What hostile clients send, and how slowly: never a panic, never a hang, always an answer, and nobody
//! else is kept out.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

#[path = "hostile/server.rs"]
mod server;

use std::time::Duration;

use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
    test_runner::TestRunner,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::Instant};
use trainjob_webhook::{bodies::LONGEST_BODY, server::CONNECTIONS, task::Task};

use server::Running;

/// Longer than any answer takes that is not waited for on purpose.
const SOON: Duration = Duration::from_secs(4);

fn review(operation: &str) -> Value {
    let job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job", "namespace": "team", "labels": {"a": "b"}},
        "spec": {
            "runtimeRef": {"name": "torch", "kind": "TrainingRuntime", "apiGroup": "trainer.kubeflow.org"},
            "trainer": {"numNodes": 2, "env": [{"name": "A", "value": "1"}]},
            "runtimePatches": [{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec": {
                "replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {
                    "containers": [{"name": "node"}],
                }}}}}],
            }}}}],
            "activeDeadlineSeconds": 5,
            "ttlSecondsAfterFinished": 6,
        },
    });
    let mut old = job.clone();
    *old.pointer_mut("/spec/ttlSecondsAfterFinished").unwrap() = 7.into();
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "kind": "TrainJob"},
            "resource": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "resource": "trainjobs"},
            "name": "job", "namespace": "team", "operation": operation, "dryRun": false,
            "userInfo": {"username": "admin"},
            "object": job,
            "oldObject": if operation == "UPDATE" { old } else { Value::Null },
        },
    })
}

/// Pointers to every value within.
fn pointers(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let children: Vec<_> = match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    for (key, child) in children {
        let key = key.replace('~', "~0").replace('/', "~1");
        found.extend(pointers(child).into_iter().map(|rest| format!("/{key}{rest}")));
    }
    found
}

/// Something that does not belong where it is put.
fn strange() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
        Just("x".repeat(100_000).into()),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null, null])),
        Just(json!({"": null, "unknown": {"a": [1]}})),
        Just(Value::from(vec![json!({"name": "node"}); 2_000])),
        (1_usize..200).prop_map(|depth| (0..depth).fold(Value::Null, |inner, _| json!([inner]))),
    ]
}

/// What is done to the text of a body after all.
#[derive(Debug, Clone)]
enum Damage {
    None,
    CutOff(Index),
    Byte(Index, u8),
    Nested(usize),
    Garbage(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        6 => Just(Damage::None),
        1 => any::<Index>().prop_map(Damage::CutOff),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        1 => (1_usize..200_000).prop_map(Damage::Nested),
        1 => vec(any::<u8>(), 0..300).prop_map(Damage::Garbage),
    ]
}

fn body(operation: &str, changes: &[(Index, Value)], damage: &Damage) -> Vec<u8> {
    let mut review = review(operation);
    for (at, strange) in changes {
        let pointers = pointers(&review);
        *review.pointer_mut(at.get::<String>(&pointers)).unwrap() = strange.clone();
    }
    let mut body = review.to_string().into_bytes();
    match damage {
        Damage::None => {}
        Damage::CutOff(at) => body.truncate(at.index(body.len())),
        Damage::Byte(at, byte) => *at.get_mut(&mut body) = *byte,
        Damage::Nested(depth) => {
            body = [b"{\"request\":".to_vec(), b"[".repeat(*depth)].concat();
        }
        Damage::Garbage(garbage) => body.clone_from(garbage),
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_sent_gets_an_answer() {
    let server = Running::start().await;
    let path = select(Task::ALL.to_vec()).prop_map(Task::path);
    let operation = select(vec!["CREATE", "UPDATE"]);
    let changes = vec((any::<Index>(), strange()), 0..4);
    let case = (path, operation, changes, damage());
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        let mut runner = TestRunner::default();
        runner
            .run(&case, |(path, operation, changes, damage)| {
                let body = body(operation, &changes, &damage);
                let (status, text) = runtime.block_on(server.post(path, &body));
                prop_assert!([200, 400].contains(&status), "{status}: {text}");
                if status == 200 {
                    let answer: Value = serde_json::from_str(&text).unwrap();
                    let allowed = &answer["response"]["allowed"];
                    prop_assert!(allowed.is_boolean(), "{text}");
                    let message = &answer["response"]["status"]["message"];
                    prop_assert!(*allowed == true || message.is_string(), "{text}");
                } else {
                    prop_assert!(!text.is_empty());
                }
                Ok(())
            })
            .unwrap();
    });
    server.is_well().await;
}

#[tokio::test]
async fn what_is_no_review_is_refused_with_a_reason() {
    let server = Running::start().await;
    let path = Task::ValidateTrainJob.path();
    let wrong_kind = {
        let mut review = review("CREATE");
        review["request"]["kind"]["kind"] = "Pod".into();
        review.to_string()
    };
    let too_long = vec![b' '; LONGEST_BODY + 1];
    let longest = [vec![b' '; LONGEST_BODY - 2], b"{}".to_vec()].concat();
    for (body, status, text) in [
        (&b"{"[..], 400, "not an AdmissionReview of admission.k8s.io/v1: EOF"),
        (b"\xc3\x28", 400, "not UTF-8: "),
        (&longest, 400, "no name of no name, expected AdmissionReview"),
        (&too_long, 413, "the body is too long, expected at most 6 MiB"),
        (
            wrong_kind.as_bytes(),
            200,
            "Pod of trainer.kubeflow.org/v1alpha1, expected TrainJob of trainer.kubeflow.org/v1alpha1",
        ),
    ] {
        let (found, answer) = server.post(path, body).await;
        assert_eq!(found, status, "{answer}");
        assert!(answer.contains(text), "{answer}");
    }
    assert_eq!(server.post("/validate", b"{}").await.0, 404);
    assert_eq!(server.request("GET", path, b"").await.0, 405);
    server.is_well().await;
}

#[tokio::test]
async fn connections_that_say_nothing_keep_nobody_out() {
    let server = Running::start().await;
    many_files();
    let mut silent = Vec::new();
    for _ in 0..2 * CONNECTIONS {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    let begin = Instant::now();
    server.is_well().await;
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn slow_senders_keep_nobody_out() {
    let server = Running::start().await;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n",
        Task::ValidateTrainJob.path()
    );
    many_files();
    let mut slow = Vec::new();
    for number in 0..CONNECTIONS + 32 {
        let mut stream = server.connect().await;
        // Half of them do not even end their head.
        let sent = if number % 2 == 0 { head.clone() } else { format!("{head}\r\n{{") };
        stream.write_all(sent.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    let begin = Instant::now();
    server.is_well().await;
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
}

/// Lets this process have as many connections as these tests need.
fn many_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

#[tokio::test]
async fn more_parts_than_any_object_has_are_not_made() {
    let server = Running::start().await;
    for (parts, expected) in [(10, "unsupported"), (900_000, "more than 13500 parts")] {
        let mut review = review("CREATE");
        let volumes = vec![json!({}); parts];
        *review.pointer_mut("/request/object/spec").unwrap() = json!({
            "runtimeRef": {"name": "a", "kind": "Pod"},
            "runtimePatches": [{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec": {
                "replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {
                    "volumes": volumes,
                }}}}}],
            }}}}],
        });
        let body = review.to_string();
        assert!(body.len() < LONGEST_BODY);
        let (status, text) = server.post(Task::ValidateTrainJob.path(), body.as_bytes()).await;
        assert!(status == 200 && text.contains(expected), "{status} {text}");
    }
    server.is_well().await;
}

/// A TTL may not change, however much there is that cannot be read or is not looked at.
#[tokio::test]
async fn rules_of_ttl_and_deadline_hold_beside_more_parts_than_are_read() {
    let server = Running::start().await;
    let parts =
        |count: usize| (0..count).map(|number| json!({"uid": number.to_string()})).collect();
    let many: Value = parts(30_000);
    let mut owned = review("UPDATE");
    for object in ["object", "oldObject"] {
        owned["request"][object]["metadata"]["ownerReferences"] = many.clone();
    }
    let mut unreadable = review("UPDATE");
    let pod = json!({"spec": {"template": {"spec": {"volumes": many}}}});
    *unreadable
        .pointer_mut("/request/oldObject/spec/runtimePatches/0/trainingRuntimeSpec/template/spec")
        .unwrap() = json!({"replicatedJobs": [{"name": "node", "template": pod}]});
    for (review, warns) in [(owned, false), (unreadable, true)] {
        let body = review.to_string();
        assert!(body.len() < LONGEST_BODY);
        let (status, text) = server.post(Task::ValidateTrainJob.path(), body.as_bytes()).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        let response = &answer["response"];
        assert!(status == 200 && response["allowed"] == false, "{text}");
        let message = response["status"]["message"].as_str().unwrap();
        assert!(message.contains("spec.ttlSecondsAfterFinished"), "{message}");
        assert_eq!(text.contains("the stored TrainJob cannot be read"), warns, "{text}");
    }
}

#[tokio::test]
async fn half_a_body_is_not_waited_for_for_ever() {
    let server = Running::start().await;
    let mut stream = server.connect().await;
    let path = Task::ValidateTrainJob.path();
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{{");
    stream.write_all(head.as_bytes()).await.unwrap();
    let (status, text) = server::answer(&mut stream).await;
    assert_eq!((status, &*text), (408, "the body was not complete within 10 seconds"));
    server.is_well().await;
}

#[tokio::test]
async fn who_has_asked_is_answered_when_the_server_stops() {
    let server = Running::start().await;
    let mut stream = server.connect().await;
    let path = Task::ValidateTrainJob.path();
    let body = review("CREATE").to_string();
    let (first, rest) = body.split_at(body.len() / 2);
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{first}").as_bytes()).await.unwrap();
    server.is_well().await;
    server.close();
    stream.write_all(rest.as_bytes()).await.unwrap();
    let (status, text) = server::answer(&mut stream).await;
    assert_eq!(status, 200, "{text}");
    server.ended().await;
}
