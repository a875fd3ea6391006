//! The certificate that TLS handshakes get, and how a pair of PEM texts becomes one.

use std::{sync::Arc, time::SystemTime};

use rustls::{
    crypto::ring,
    pki_types::{PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use thiserror::Error;
use tokio::sync::watch;
use trainjob_api::time::Timestamp;

use super::x509::{Certificate, Unreadable};

/// The serving certificate of this process, if there is one yet. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Serving(watch::Sender<Option<Current>>);

/// A certificate in use.
#[derive(Debug, Clone)]
pub struct Current {
    /// The chain and its key.
    pub key: Arc<CertifiedKey>,
    /// When it expires.
    pub expiry: SystemTime,
}

impl Serving {
    /// Without a certificate: handshakes fail until there is one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Every handshake that begins from now on gets this certificate. Connections go on as they are.
    pub fn set(&self, key: Arc<CertifiedKey>, expiry: SystemTime) {
        self.0.send_replace(Some(Current { key, expiry }));
    }

    /// Whether there is a certificate.
    #[cfg(test)]
    fn is_loaded(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// What is in use, and a way to wait for the next.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<Current>> {
        self.0.subscribe()
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.borrow().as_ref().map(|current| Arc::clone(&current.key))
    }
}

/// Why a pair of certificate and key is of no use.
#[derive(Debug, Error)]
pub enum Refusal {
    /// There is no certificate in the text.
    #[error("there is no certificate in it")]
    NoCertificate,
    /// A certificate cannot be read.
    #[error("its certificate is {0}")]
    Certificate(#[from] Unreadable),
    /// The private key cannot be read.
    #[error("its private key is unusable: {0}")]
    Key(rustls::pki_types::pem::Error),
    /// They do not fit, or are of a kind that is not supported.
    #[error("certificate and private key are unusable together: {0}")]
    Pair(#[from] rustls::Error),
    /// It is over.
    #[error("its certificate expired at {0}")]
    Expired(Timestamp),
    /// It has not begun; or the clock is wrong.
    #[error("its certificate is not valid before {0}")]
    NotYetValid(Timestamp),
}

/// What can be served at `now`, from a chain (the certificate of the server first) and its key.
///
/// Keys may be PKCS #8, PKCS #1 or SEC 1.
///
/// # Errors
///
/// If the two do not fit each other, or could not be served now.
pub fn certified(chain: &[u8], key: &[u8], now: SystemTime) -> Result<Current, Refusal> {
    let chain = Certificate::all(chain)?;
    let leaf = chain.first().ok_or(Refusal::NoCertificate)?;
    let (begin, expiry) = (leaf.not_before, leaf.not_after);
    let key = PrivateKeyDer::from_pem_slice(key).map_err(Refusal::Key)?;
    let chain = chain.into_iter().map(|certificate| certificate.der).collect();
    let key = certified_der(chain, key)?;
    if expiry <= now {
        return Err(Refusal::Expired(expiry.into()));
    }
    if begin > now {
        return Err(Refusal::NotYetValid(begin.into()));
    }
    Ok(Current { key, expiry })
}

/// A chain and the key of its first certificate.
///
/// # Errors
///
/// If they do not fit, or it cannot be said whether they do.
pub fn certified_der(
    chain: Vec<rustls::pki_types::CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<CertifiedKey>, rustls::Error> {
    let key = CertifiedKey::from_der(chain, key, &ring::default_provider())?;
    // The above lets pass what it cannot compare.
    key.keys_match()?;
    Ok(Arc::new(key))
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use rustls::{
        ClientConfig, RootCertStore, ServerConfig,
        pki_types::{CertificateDer, ServerName},
    };
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

    use super::*;
    use crate::certificate::authority::Authority;

    const HOUR: Duration = Duration::from_hours(1);

    /// A self-signed pair for `years`, as PEM.
    pub(in crate::certificate) fn pair(years: std::ops::Range<i32>) -> (String, String) {
        let mut params = CertificateParams::new(["hook.example".to_owned()]).unwrap();
        params.not_before = date_time_ymd(years.start, 1, 1);
        params.not_after = date_time_ymd(years.end, 1, 1);
        let key = KeyPair::generate().unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    #[test]
    fn a_pair_is_taken_if_it_fits_and_is_valid_now() {
        let now = SystemTime::now();
        let (certificate, key) = pair(2020..2120);
        let (other, _) = pair(2020..2120);
        let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let past = pair(2020..2021);
        let future = pair(2110..2120);
        let (half_certificate, half_key) =
            (&certificate[..certificate.len() / 2], &key[..key.len() / 2]);
        for (chain, key, expected) in [
            (certificate.as_str(), key.as_str(), None),
            (&format!("{certificate}{other}"), &key, None),
            (&format!("{key}{certificate}"), &format!("{certificate}{key}"), None),
            (&format!("{other}{certificate}"), &key, Some("certificate and private key are")),
            (&other, &key, Some("certificate and private key are unusable together")),
            ("", &key, Some("there is no certificate in it")),
            (&key, &key, Some("there is no certificate in it")),
            (half_certificate, &key, Some("its certificate is not PEM")),
            (garbage, &key, Some("its certificate is not an X.509 certificate")),
            (&certificate, "", Some("its private key is unusable")),
            (&certificate, half_key, Some("its private key is unusable")),
            (&certificate, &certificate, Some("its private key is unusable")),
            (&past.0, &past.1, Some("its certificate expired at 2021-01-01T00:00:00Z")),
            (
                &future.0,
                &future.1,
                Some("its certificate is not valid before 2110-01-01T00:00:00Z"),
            ),
        ] {
            let refusal = certified(chain.as_bytes(), key.as_bytes(), now).err();
            let refusal = refusal.map(|refusal| refusal.to_string());
            match (expected, &refusal) {
                (None, None) => {}
                (Some(expected), Some(refusal)) if refusal.starts_with(expected) => {}
                _ => panic!("{refusal:?} is not {expected:?}"),
            }
        }
    }

    #[test]
    fn every_usual_form_of_a_key_is_taken() {
        /// Where the SEC 1 form begins within the PKCS #8 form of a P-256 key.
        const SEC1: usize = 29;
        let (certificate, pkcs8) = pair(2020..2120);
        let sec1 = pem::parse(&pkcs8).unwrap().contents()[SEC1..].to_vec();
        let sec1 = pem::encode(&pem::Pem::new("EC PRIVATE KEY", sec1));
        let rsa = include_str!("testdata/rsa-authority.pem");
        for (form, chain, key) in [
            ("PKCS #8", certificate.as_str(), pkcs8.as_str()),
            ("SEC 1", &certificate, &sec1),
            ("PKCS #1", rsa, rsa),
        ] {
            let current = certified(chain.as_bytes(), key.as_bytes(), SystemTime::now());
            assert!(current.is_ok(), "{form}: {}", current.unwrap_err());
        }
    }

    struct Connection {
        client: client::TlsStream<DuplexStream>,
        server: server::TlsStream<DuplexStream>,
    }

    impl Connection {
        /// A handshake with a server that serves `serving`, of a client that trusts `authorities`.
        async fn open(serving: &Serving, authorities: &[&Certificate]) -> std::io::Result<Self> {
            let provider = Arc::new(ring::default_provider());
            let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_cert_resolver(Arc::new(serving.clone()));
            let mut roots = RootCertStore::empty();
            for authority in authorities {
                roots.add(authority.der.clone()).unwrap();
            }
            let client = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            let (near, far) = duplex(16 * 1024);
            let name = ServerName::try_from("hook.ns.svc").unwrap();
            let connector = TlsConnector::from(Arc::new(client));
            let acceptor = TlsAcceptor::from(Arc::new(server));
            let (client, server) =
                tokio::join!(connector.connect(name, near), acceptor.accept(far));
            Ok(Self { client: client?, server: server? })
        }

        async fn works(&mut self) {
            self.client.write_all(b"ping").await.unwrap();
            self.client.flush().await.unwrap();
            let mut heard = [0; 4];
            self.server.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"ping");
        }

        fn certificate(&self) -> CertificateDer<'static> {
            let chain = self.client.get_ref().1.peer_certificates().unwrap();
            chain[0].clone().into_owned()
        }
    }

    #[tokio::test]
    async fn handshakes_get_the_newest_certificate_and_connections_outlive_theirs() {
        let now = SystemTime::now();
        let (old, new) =
            (Authority::create(now, HOUR).unwrap(), Authority::create(now, HOUR).unwrap());
        let bundle = [old.certificate(), new.certificate()];
        let names = ["hook.ns.svc".to_owned(), "127.0.0.1".to_owned()];
        let serving = Serving::new();
        let mut changes = serving.subscribe();
        assert!(!serving.is_loaded());
        assert!(Connection::open(&serving, &bundle).await.is_err());

        let leaf = old.sign(&names, now, HOUR).unwrap();
        serving.set(Arc::clone(&leaf.key), leaf.certificate.not_after);
        assert!(serving.is_loaded() && changes.has_changed().unwrap());
        assert_eq!(
            changes.borrow_and_update().as_ref().unwrap().expiry,
            leaf.certificate.not_after
        );
        let mut before = Connection::open(&serving, &bundle).await.unwrap();
        assert_eq!(before.certificate(), leaf.certificate.der);
        before.works().await;

        let leaf = new.sign(&names, now, HOUR).unwrap();
        serving.set(Arc::clone(&leaf.key), leaf.certificate.not_after);
        let mut after = Connection::open(&serving, &bundle).await.unwrap();
        assert_eq!(after.certificate(), leaf.certificate.der);
        after.works().await;
        before.works().await;
        // Who does not know the new CA yet does not trust it: hence the lead of the bundle.
        assert!(Connection::open(&serving, &[old.certificate()]).await.is_err());
        assert!(Connection::open(&serving, &[new.certificate()]).await.is_ok());
    }
}
