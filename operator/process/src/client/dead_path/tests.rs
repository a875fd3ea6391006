//! A path that dies: the kernel drops every packet that a server gets on a connection, as a broken network would.

use http::Request;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo},
};
use socket2::{SockFilter, SockRef, Socket};
use tokio::net::TcpListener;

use super::*;

/// `BPF_RET | BPF_K` with 0: of every packet nothing is kept, not even an acknowledgement is sent.
const DROP_ALL: SockFilter = SockFilter::new(0x06, 0, 0, 0);

/// Accepts a connection and answers its requests until `dead` is true for it.
async fn accept(listener: &TcpListener) -> Socket {
    let (stream, _) = listener.accept().await.unwrap();
    let socket = SockRef::from(&stream).try_clone().unwrap();
    let answer = |_| async { Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from("ok")))) };
    tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)));
    socket
}

#[tokio::test]
async fn a_request_on_a_connection_with_a_dead_path_fails_and_the_next_one_finds_another() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let mut connector = HttpConnector::new();
    close_dead_paths(&mut connector);
    let client = Client::builder(TokioExecutor::new()).build::<_, Empty<Bytes>>(connector);
    let ask = || {
        let asked = client.request(Request::get(&uri).body(Empty::new()).unwrap());
        async move { asked.await.map(|answer| answer.into_body().collect()) }
    };
    let (first, served) = tokio::join!(ask(), accept(&listener));
    first.unwrap().await.unwrap();

    served.attach_filter(&[DROP_ALL]).unwrap();
    // Without a limit of its own: it ends because the system closes the connection.
    ask().await.map(drop).unwrap_err();
    let (next, _other) = tokio::join!(ask(), accept(&listener));
    next.unwrap().await.unwrap();
}

#[tokio::test]
async fn an_idle_connection_with_a_dead_path_leaves_the_pool() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: http::Uri = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let mut connector = HttpConnector::new();
    close_dead_paths(&mut connector);
    let (stream, served) = tokio::join!(
        async { tower::Service::call(&mut connector, uri).await.unwrap().into_inner() },
        accept(&listener)
    );
    served.attach_filter(&[DROP_ALL]).unwrap();
    // A pool looks at its idle connections in this way.
    stream.readable().await.unwrap();
    let error = stream.try_read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}
