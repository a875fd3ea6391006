//! A CA of our own: makes one, reads one, signs with it.

use std::{
    net::IpAddr,
    str::FromStr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, date_time_ymd,
};
use rustls::{
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use thiserror::Error;

use super::{
    serving,
    x509::{self, Certificate, Unreadable},
};

/// Common name of every CA; Kubeflow Trainer's has the same.
pub const COMMON_NAME: &str = "kubeflow-trainer-ca";
/// Organisation of every CA.
pub const ORGANISATION: &str = "kubeflow-trainer";

/// How far the clocks of the cluster may be behind the one that signs, unless what is signed lives so
/// shortly that a tenth of its life is less.
const SKEW: Duration = Duration::from_mins(5);
/// The last second that a certificate can name, in the year 9999.
const LAST: Duration = Duration::from_secs(253_402_300_799);

/// A CA and its key.
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
    key: String,
}

/// A serving certificate that a CA signed, with its key.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// What TLS needs of it.
    pub key: Arc<CertifiedKey>,
    /// The certificate.
    pub certificate: Certificate,
    /// The CA that signed it.
    pub authority: Certificate,
}

/// Why there is no CA, or why it does not sign.
#[derive(Debug, Error)]
pub enum AuthorityError {
    /// There is no certificate in the text.
    #[error("there is no certificate")]
    Missing,
    /// There is something, but no certificate.
    #[error("the certificate is {0}")]
    Certificate(#[from] Unreadable),
    /// The certificate is not that of a CA.
    #[error("the certificate must not sign others")]
    NotAuthority,
    /// The key is not that of the certificate.
    #[error("the key does not fit the certificate")]
    Mismatch,
    /// The key has another form, such as PKCS #1, or is none.
    #[error("the key is not a PKCS #8 key in PEM: {0}")]
    Key(#[source] rustls::pki_types::pem::Error),
    /// A name that a certificate cannot have, or a key that nobody here can use.
    #[error("cannot sign: {0}")]
    Sign(#[from] rcgen::Error),
    /// What was signed cannot be served.
    #[error("cannot serve what was signed: {0}")]
    Serve(#[from] rustls::Error),
}

impl Authority {
    /// Makes one that is valid from now on.
    ///
    /// # Errors
    ///
    /// If no key can be made.
    pub fn create(now: SystemTime, lifetime: Duration) -> Result<Self, AuthorityError> {
        let mut params = params(now, lifetime, now + lifetime.min(LAST));
        params.distinguished_name.push(DnType::OrganizationName, ORGANISATION);
        params.distinguished_name.push(DnType::CommonName, COMMON_NAME);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = Certificate::parse(params.self_signed(&key)?.der().clone())?;
        let text = key.serialize_pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key), key: text })
    }

    /// Reads one, ours or anybody's, if it can sign. Of several certificates the first counts.
    ///
    /// # Errors
    ///
    /// If it is damaged, if the two do not fit, or if it is of a kind that cannot be used here.
    pub fn read(certificate: &[u8], key: &[u8]) -> Result<Self, AuthorityError> {
        let certificate = Certificate::all(certificate)?.into_iter().next();
        let certificate = certificate.ok_or(AuthorityError::Missing)?;
        let pair = PrivatePkcs8KeyDer::from_pem_slice(key).map_err(AuthorityError::Key)?;
        let pair = KeyPair::try_from(&pair)?;
        let parsed = x509::parsed(&certificate.der)?;
        let may_sign = parsed.key_usage().ok().flatten().is_none_or(|u| u.value.key_cert_sign());
        if !parsed.is_ca() || !may_sign {
            return Err(AuthorityError::NotAuthority);
        }
        if parsed.public_key().raw != pair.subject_public_key_info() {
            return Err(AuthorityError::Mismatch);
        }
        let text = pair.serialize_pem();
        let issuer = Issuer::from_ca_cert_der(&certificate.der, pair)?;
        Ok(Self { certificate, issuer, key: text })
    }

    /// Its certificate.
    #[must_use]
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Its private key, as PEM.
    #[must_use]
    pub fn key_pem(&self) -> &str {
        &self.key
    }

    /// Signs a serving certificate with a new key, for DNS names and IP addresses. It never outlives the
    /// CA.
    ///
    /// # Errors
    ///
    /// If a name is none, or no key can be made.
    pub fn sign(
        &self,
        names: &[String],
        now: SystemTime,
        lifetime: Duration,
    ) -> Result<Leaf, AuthorityError> {
        let end = (now + lifetime.min(LAST)).min(self.certificate.not_after);
        let mut params = params(now, lifetime, end);
        params.subject_alt_names = names.iter().map(|text| name(text)).collect::<Result<_, _>>()?;
        params.distinguished_name.push(DnType::OrganizationName, ORGANISATION);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let pair = KeyPair::generate()?;
        let der = params.signed_by(&pair, &self.issuer)?.der().clone();
        let certificate = Certificate::parse(der.clone())?;
        let key = PrivateKeyDer::Pkcs8(pair.serialize_der().into());
        let key = serving::certified_der(vec![der], key)?;
        Ok(Leaf { key, certificate, authority: self.certificate.clone() })
    }
}

/// What both kinds have in common.
fn params(now: SystemTime, lifetime: Duration, end: SystemTime) -> CertificateParams {
    let date = |at: SystemTime| {
        let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        date_time_ymd(1970, 1, 1) + since.min(LAST)
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.not_before = date(now.checked_sub(SKEW.min(lifetime / 10)).unwrap_or(now));
    params.not_after = date(end);
    params
}

fn name(name: &str) -> Result<SanType, rcgen::Error> {
    Ok(match IpAddr::from_str(name) {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName(name.try_into()?),
    })
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::{GeneralName, ParsedExtension};

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);
    const RSA: &str = include_str!("testdata/rsa-authority.pem");

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn error(certificate: &str, key: &str) -> String {
        let read = Authority::read(certificate.as_bytes(), key.as_bytes());
        read.err().map_or_else(|| "none".to_owned(), |error| error.to_string())
    }

    #[test]
    fn what_was_made_is_read_again_and_is_what_kubeflow_trainer_calls_its_own() {
        let made = Authority::create(at(1_000_000), HOUR).unwrap();
        let pem = x509::to_pem([made.certificate()]);
        let read = Authority::read(pem.as_bytes(), made.key_pem().as_bytes()).unwrap();
        assert_eq!(read.certificate(), made.certificate());
        assert_eq!(read.key_pem(), made.key_pem());
        let parsed = x509::parsed(&made.certificate().der).unwrap();
        assert_eq!(parsed.subject().to_string(), "O=kubeflow-trainer, CN=kubeflow-trainer-ca");
        assert!(parsed.is_ca());
    }

    #[test]
    fn what_cannot_sign_is_refused_with_its_reason() {
        let (one, two) =
            (Authority::create(at(0), HOUR).unwrap(), Authority::create(at(0), HOUR).unwrap());
        let pem = x509::to_pem([one.certificate()]);
        let leaf = one.sign(&["a.example".to_owned()], at(0), HOUR).unwrap();
        let leaf = x509::to_pem([&leaf.certificate]);
        for (certificate, key, expected) in [
            (pem.as_str(), one.key_pem(), "none"),
            (&format!("{pem}{leaf}"), one.key_pem(), "none"),
            ("", one.key_pem(), "there is no certificate"),
            ("rubbish", "rubbish", "there is no certificate"),
            (&pem[..99], one.key_pem(), "the certificate is not PEM"),
            (&pem, two.key_pem(), "the key does not fit the certificate"),
            (&pem, "", "the key is not a PKCS #8 key"),
            (&pem, &one.key_pem()[..99], "the key is not a PKCS #8 key"),
            (&leaf, one.key_pem(), "the certificate must not sign others"),
            (RSA, RSA, "the key is not a PKCS #8 key"),
        ] {
            let error = error(certificate, key);
            assert!(error.starts_with(expected), "{error} is not {expected}");
        }
    }

    #[test]
    fn a_certificate_is_backdated_a_little_and_does_not_outlive_its_authority() {
        let now = at(1_000_000);
        let (second, day) = (Duration::from_secs(1), 24 * HOUR);
        for (authority, lifetime, backdated, lives) in [
            (10 * day, day, SKEW, day),
            (10 * day, 100 * day, SKEW, 10 * day),
            (20 * second, day, SKEW, 20 * second),
            (20 * second, 10 * second, second, 10 * second),
            (Duration::MAX, Duration::MAX, SKEW, Duration::from_secs(253_401_300_799)),
        ] {
            let signer = Authority::create(now, authority).unwrap();
            let leaf = signer.sign(&["a.example".to_owned()], now, lifetime).unwrap();
            assert_eq!(leaf.certificate.not_before, now - backdated, "{authority:?} {lifetime:?}");
            assert_eq!(leaf.certificate.not_after, now + lives, "{authority:?} {lifetime:?}");
            assert_eq!(&leaf.authority, signer.certificate());
            assert_eq!(signer.certificate().not_before, now - SKEW.min(authority / 10));
        }
    }

    #[test]
    fn names_may_be_dns_names_and_addresses() {
        let authority = Authority::create(at(0), HOUR).unwrap();
        let names = ["hook.ns.svc", "10.0.0.1", "::1"].map(str::to_owned);
        let leaf = authority.sign(&names, at(0), HOUR).unwrap();
        let parsed = x509::parsed(&leaf.certificate.der).unwrap();
        let found =
            parsed.extensions().iter().find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
                _ => None,
            });
        let expected = [
            GeneralName::DNSName("hook.ns.svc"),
            GeneralName::IPAddress(&[10, 0, 0, 1]),
            GeneralName::IPAddress(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ];
        assert_eq!(found.unwrap(), &expected);
        assert!(authority.sign(&["ü.example".to_owned()], at(0), HOUR).is_err());
    }
}
