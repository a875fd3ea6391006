//! TLS, as the configuration wants it, and a certificate for whoever has none.

use std::sync::Arc;

use rustls::{
    ProtocolVersion, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::PrivateKeyDer,
    server::ResolvesServerCert,
    sign::{CertifiedKey, SingleCertAndKey},
    version::{TLS12, TLS13},
};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

use crate::config::Tls;

/// Why there is no certificate.
#[derive(Debug, Error)]
pub enum SelfSignedError {
    /// It cannot be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// It cannot be used.
    #[error("cannot use a certificate: {0}")]
    Use(#[from] rustls::Error),
}

/// A certificate of this process's own, for this name, which nobody vouches for. Its key is gone with the
/// process.
///
/// # Errors
///
/// If the system has no randomness, or the name is none.
pub fn self_signed(name: &str) -> Result<Arc<dyn ResolvesServerCert>, SelfSignedError> {
    Ok(Arc::new(SingleCertAndKey::from(certified(name)?)))
}

fn certified(name: &str) -> Result<CertifiedKey, SelfSignedError> {
    let own = rcgen::generate_simple_self_signed([name.to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
    let chain = vec![own.cert.der().clone()];
    Ok(CertifiedKey::from_der(chain, key, &ring::default_provider())?)
}

/// How to speak TLS with the certificate that `certificates` names for each connection.
///
/// # Errors
///
/// If versions and suites do not fit together: never, as the configuration has been checked.
pub fn acceptor(
    tls: &Tls,
    certificates: Arc<dyn ResolvesServerCert>,
) -> Result<TlsAcceptor, rustls::Error> {
    let versions = match tls.min_version {
        ProtocolVersion::TLSv1_3 => &[&TLS13][..],
        _ => &[&TLS13, &TLS12],
    };
    let provider = CryptoProvider { cipher_suites: tls.suites.clone(), ..ring::default_provider() };
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.alpn_protocols = tls.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, pki_types::ServerName};
    use tokio::io::duplex;
    use tokio_rustls::TlsConnector;

    use super::*;
    use crate::config::{self, Flags};

    /// What a client and the server agree on: the version, the suite and the protocol.
    async fn agreed(
        tls: &Tls,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> Option<(ProtocolVersion, String, Option<String>)> {
        let own = certified("localhost").unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(own.cert[0].clone()).unwrap();
        let certificate: Arc<dyn ResolvesServerCert> = Arc::new(SingleCertAndKey::from(own));
        let mut client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();

        let (near, far) = duplex(16 * 1024);
        let server = acceptor(tls, certificate).unwrap();
        let client = TlsConnector::from(Arc::new(client));
        let name = ServerName::try_from("localhost").unwrap();
        let (client, server) = tokio::join!(client.connect(name, near), server.accept(far));
        let (client, _server) = (client.ok()?, server.ok()?);
        let session = client.get_ref().1;
        let protocol =
            session.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
        let suite = format!("{:?}", session.negotiated_cipher_suite().unwrap().suite());
        Some((session.protocol_version().unwrap(), suite, protocol))
    }

    fn by_default() -> Tls {
        config::load(&Flags::default()).unwrap().admission.tls
    }

    #[tokio::test]
    async fn both_versions_are_spoken_and_http_2_first() {
        for (versions, expected) in [
            (&[&TLS12][..], ProtocolVersion::TLSv1_2),
            (&[&TLS13], ProtocolVersion::TLSv1_3),
            (&[&TLS12, &TLS13], ProtocolVersion::TLSv1_3),
        ] {
            let protocols = ["http/1.1", "h2"];
            let (version, _, protocol) = agreed(&by_default(), versions, &protocols).await.unwrap();
            assert_eq!((version, protocol.as_deref()), (expected, Some("h2")));
        }
    }

    #[tokio::test]
    async fn version_suites_and_protocols_are_those_of_the_configuration() {
        let newest = Tls { min_version: ProtocolVersion::TLSv1_3, ..by_default() };
        assert!(agreed(&newest, &[&TLS12], &[]).await.is_none());
        assert!(agreed(&newest, &[&TLS13], &[]).await.is_some());

        let wanted = ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
        let mut suites = vec![wanted];
        suites.extend(by_default().suites.into_iter().filter(|suite| suite.tls13().is_some()));
        let chosen = Tls { suites, protocols: vec!["http/1.1"], ..by_default() };
        let (_, suite, protocol) = agreed(&chosen, &[&TLS12], &["h2", "http/1.1"]).await.unwrap();
        assert_eq!(suite, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256");
        assert_eq!(protocol.as_deref(), Some("http/1.1"));
    }
}
