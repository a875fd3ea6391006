//! A certificate authority of a test's own, for servers on 127.0.0.1.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// An authority, whose certificates an API server accepts that is given [`Authority::pem`].
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// A new one.
    pub fn new() -> Result<Self> {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, "e2e-authority");
        Ok(Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?))
    }

    /// Its own certificate.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Puts a new certificate for 127.0.0.1 and its key into `folder`, as `tls.crt` and `tls.key`, each
    /// whole from one moment to the next.
    pub fn issue(&self, folder: &Path) -> Result<()> {
        let key = KeyPair::generate()?;
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let certificate = CertificateParams::new(names)?.signed_by(&key, &self.0)?;
        fs::create_dir_all(folder)?;
        for (name, text) in [("tls.key", key.serialize_pem()), ("tls.crt", certificate.pem())] {
            let written = folder.join(format!("{name}.new"));
            fs::write(&written, text)
                .and_then(|()| fs::rename(&written, folder.join(name)))
                .with_context(|| format!("cannot write {name} in {}", folder.display()))?;
        }
        Ok(())
    }
}
