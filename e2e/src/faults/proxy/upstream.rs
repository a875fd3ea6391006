//! The side of the API server.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{Authority, PathAndQuery, Scheme};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::log::LineOf;
use crate::testenv::cluster::Cluster;

/// What is agreed between two ends of one connection, and the proxy has two.
const OF_ONE_CONNECTION: [http::HeaderName; 6] =
    [CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING, UPGRADE];

/// Connections to the API server: as many as there are calls at a time.
#[derive(Debug, Clone)]
pub(super) struct Upstream {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    authority: Arc<Mutex<Authority>>,
}

impl Upstream {
    pub(super) fn new(cluster: &Cluster) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(cluster.authority().as_bytes())?)?;
        let tls =
            rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let authority = Arc::new(Mutex::new(cluster.address().parse()?));
        Ok(Self { client, authority })
    }

    /// Calls that come from now on go to another API server.
    pub(super) fn send_to(&self, address: &str) -> Result<()> {
        *self.authority.lock().unwrap_or_else(PoisonError::into_inner) = address.parse()?;
        Ok(())
    }

    fn authority(&self) -> Authority {
        self.authority.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forwards a call; its reply comes as it comes.
    pub(super) async fn open(
        &self,
        mut head: http::request::Parts,
        path: PathAndQuery,
        body: Bytes,
    ) -> Result<http::Response<Incoming>> {
        strip(&mut head.headers);
        // So that replies can be read.
        head.headers.remove(ACCEPT_ENCODING);
        head.version = http::Version::HTTP_11;
        head.uri = http::Uri::builder()
            .scheme(Scheme::HTTPS)
            .authority(self.authority())
            .path_and_query(path)
            .build()?;
        let request = http::Request::from_parts(head, Full::new(body));
        let mut response =
            self.client.request(request).await.context("the API server does not answer")?;
        strip(response.headers_mut());
        Ok(response)
    }

    /// Forwards a call, waits for all of its reply and notes it.
    pub(super) async fn call(
        &self,
        head: http::request::Parts,
        path: PathAndQuery,
        body: Bytes,
        line: LineOf,
    ) -> Result<http::Response<Bytes>> {
        let (head, body) = self.open(head, path, body).await?.into_parts();
        let body = body.collect().await.context("the API server broke off")?.to_bytes();
        line.served(head.status, version(&body));
        Ok(http::Response::from_parts(head, body))
    }
}

fn strip(headers: &mut HeaderMap) {
    for name in &OF_ONE_CONNECTION {
        headers.remove(name);
    }
}

/// The resource version of the object in a reply; none in a `Status` or a list.
fn version(body: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
        items: Option<IgnoredAny>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: Option<String>,
    }
    let object: Object = serde_json::from_slice(body).ok()?;
    if object.items.is_some() {
        return None;
    }
    object.metadata.resource_version?.parse().ok()
}
