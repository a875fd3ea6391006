//! An admission server that reads what it is sent and says yes: what the real one is compared with in
//! `cargo bench-box admission`.
//!
//! TLS and HTTP are those of the real one; between them is nothing. With a third argument, a folder,
//! it writes each body into a file there, so that what the API server sends can be sent again.

use std::convert::Infallible;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().context("no address to listen on")?;
    let certificates = PathBuf::from(arguments.next().context("no folder of a certificate")?);
    let records = arguments.next().map(PathBuf::from);

    let acceptor = TlsAcceptor::from(Arc::new(tls(&certificates)?));
    let listener = TcpListener::bind(&address).await?;
    let recorder = Arc::new(Recorder { folder: records, count: AtomicUsize::new(0) });
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (acceptor, recorder) = (acceptor.clone(), Arc::clone(&recorder));
        tokio::spawn(async move {
            // A client that breaks a connection is the bench's to notice.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request| {
                let recorder = Arc::clone(&recorder);
                async move { Ok::<_, Infallible>(answer(&recorder, request).await) }
            });
            let http = auto::Builder::new(TokioExecutor::new());
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn tls(folder: &Path) -> Result<ServerConfig> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(folder.join("tls.crt"))?.collect();
    let key = PrivateKeyDer::from_pem_file(folder.join("tls.key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain?, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Where bodies are written, if anywhere.
struct Recorder {
    folder: Option<PathBuf>,
    count: AtomicUsize,
}

/// Reads the body and says yes. Only while it records does it look at what it has read: the API server
/// wants its own identifier back.
async fn answer(recorder: &Recorder, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let Ok(body) = request.into_body().collect().await else { return Response::default() };
    let body = body.to_bytes();
    let uid = match &recorder.folder {
        None => Value::Null,
        Some(folder) => {
            let number = recorder.count.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = fs::write(folder.join(format!("{number:04}.{path}")), &body) {
                launcher::say(format_args!("cannot record: {error}"));
            }
            let review: Value = serde_json::from_slice(&body).unwrap_or_default();
            review.pointer("/request/uid").cloned().unwrap_or_default()
        }
    };
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": uid, "allowed": true},
    });
    Response::new(Full::from(answer.to_string()))
}
