//! Whether a server is ready.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::{Client, Config};

use crate::testenv::until::until_ok;

/// How long any part may take to become ready; a busy machine needs a multiple of an idle one, and an API server that
/// finds some hundred thousand objects a minute.
const START: Duration = Duration::from_mins(4);

/// Waits until `GET path` on `server` succeeds.
pub(crate) async fn answers(server: &str, path: &str, authority: &str) -> Result<()> {
    let mut config = Config::new(server.parse()?);
    config.root_cert = Some(vec![der(authority)?]);
    // Who is not ready says 503, and by default the client asks again at ever longer intervals, up to a quarter of an hour.
    config.default_retry = false;
    let client = Client::try_from(config)?;
    until_ok(format!("{server}{path} answers"), START, || async {
        let request = http::Request::get(path).body(Vec::new())?;
        client.request_text(request).await.context("it does not answer")?;
        Ok(())
    })
    .await
}

fn der(pem: &str) -> Result<Vec<u8>> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    Ok(CertificateDer::from_pem_slice(pem.as_bytes())?.to_vec())
}
