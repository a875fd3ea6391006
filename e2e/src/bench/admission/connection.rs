//! Connections to an admission server, and what is sent on them.

use std::time::Duration;

use anyhow::Result;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

/// A recorded request.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    pub(super) path: String,
    pub(super) body: Bytes,
}

pub(super) type Connection = SendRequest<Full<Bytes>>;

pub(super) async fn connect(connector: &TlsConnector, address: &str) -> Result<Connection> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("127.0.0.1")?;
    let stream = connector.connect(name, stream).await?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // What goes wrong with it is seen by who sends.
    tokio::spawn(connection);
    Ok(sender)
}

/// Sends one; returns how long it took and whether the answer was yes; `None` if it was not judged.
pub(super) async fn one(
    connection: &mut Connection,
    review: &Recorded,
) -> Result<(Duration, Option<bool>)> {
    let request = Request::post(&review.path)
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .body(Full::new(review.body.clone()))?;
    let begin = Instant::now();
    connection.ready().await?;
    let answer = connection.send_request(request).await?;
    let is_judged = answer.status().is_success();
    let body = answer.into_body().collect().await?.to_bytes();
    let took = begin.elapsed();
    let text = std::str::from_utf8(&body)?;
    Ok((took, is_judged.then(|| text.contains(r#""allowed":true"#))))
}
