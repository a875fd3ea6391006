//! Certificates, as far as anybody here looks into them: what they are and when they are valid.

use std::time::{Duration, SystemTime};

use rustls::pki_types::{CertificateDer, pem::PemObject};
use thiserror::Error;
use trainjob_api::time::Timestamp;
use x509_parser::{certificate::X509Certificate, prelude::FromDer};

/// A certificate and when it is valid.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Certificate {
    /// What it consists of.
    pub der: CertificateDer<'static>,
    /// From when on it is valid.
    pub not_before: SystemTime,
    /// From when on it is not valid any more.
    pub not_after: SystemTime,
}

/// Why something is no certificate.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The text around it is damaged.
    #[error("not PEM: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// The text is fine; what it contains is not.
    #[error("not an X.509 certificate: {0}")]
    Certificate(String),
}

impl Certificate {
    /// Reads one.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn parse(der: CertificateDer<'static>) -> Result<Self, Unreadable> {
        let parsed = parsed(&der)?;
        let (not_before, not_after) = (parsed.validity.not_before, parsed.validity.not_after);
        let time = |seconds| SystemTime::from(Timestamp(seconds));
        Ok(Self {
            not_before: time(not_before.timestamp()),
            not_after: time(not_after.timestamp()),
            der,
        })
    }

    /// Reads all that are in a text, in their order; what else is in it does not matter.
    ///
    /// # Errors
    ///
    /// If one of them cannot be read.
    pub fn all(pem: &[u8]) -> Result<Vec<Self>, Unreadable> {
        CertificateDer::pem_slice_iter(pem).map(|der| Self::parse(der?)).collect()
    }

    /// Whether it is over at `now`.
    #[must_use]
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.not_after <= now
    }

    /// When to replace it: `before` its end, but not in the first half of its life.
    #[must_use]
    pub fn renewal(&self, before: Duration) -> SystemTime {
        let life = self.not_after.duration_since(self.not_before).unwrap_or_default();
        self.not_after.checked_sub(before.min(life / 2)).unwrap_or(self.not_before)
    }
}

/// Looks into a certificate.
///
/// # Errors
///
/// If it is none.
pub fn parsed<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, Unreadable> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err(Unreadable::Certificate("more follows it".to_owned())),
        Err(error) => Err(Unreadable::Certificate(error.to_string())),
    }
}

/// The text of certificates, which is the same for the same ones.
#[must_use]
pub fn to_pem<'a>(certificates: impl IntoIterator<Item = &'a Certificate>) -> String {
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    let block = |certificate: &Certificate| pem::Pem::new("CERTIFICATE", certificate.der.to_vec());
    certificates
        .into_iter()
        .map(|certificate| pem::encode_config(&block(certificate), config))
        .collect()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn pem_until(year: i32) -> String {
        let mut params = CertificateParams::new(["a.example".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    #[test]
    fn what_was_read_is_written_as_it_was_in_the_same_order() {
        let text = pem_until(2021) + &pem_until(2022);
        let read = Certificate::all(text.as_bytes()).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(Certificate::all(to_pem(&read).as_bytes()).unwrap(), read);
        assert_eq!(to_pem(&read), text.replace("\r\n", "\n"));
        assert_eq!(to_pem([]), "");
    }

    #[test]
    fn the_times_are_those_of_the_certificate_also_beyond_2049() {
        for (year, seconds) in [(2021, 1_609_459_200), (2050, 2_524_608_000)] {
            let read = Certificate::all(pem_until(year).as_bytes()).unwrap().remove(0);
            assert_eq!(Timestamp::from(read.not_before), Timestamp(1_577_836_800));
            assert_eq!(Timestamp::from(read.not_after), Timestamp(seconds), "{year}");
            assert!(read.is_expired(read.not_after));
            assert!(!read.is_expired(read.not_after - Duration::from_secs(1)));
        }
    }

    #[test]
    fn what_is_no_certificate_is_refused_and_what_is_no_pem_is_not_there() {
        for text in
            ["", "no PEM at all", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"]
        {
            assert_eq!(Certificate::all(text.as_bytes()).unwrap(), [], "{text}");
        }
        let whole = pem_until(2021);
        let half = &whole[..whole.len() / 2];
        let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for text in [half, garbage, &format!("{whole}{garbage}")] {
            assert!(Certificate::all(text.as_bytes()).is_err(), "{text}");
        }
        let mut der = Certificate::all(whole.as_bytes()).unwrap().remove(0).der.to_vec();
        der.push(0);
        assert!(Certificate::parse(der.into()).is_err());
    }

    #[test]
    fn it_is_replaced_before_its_end_and_not_in_the_first_half_of_its_life() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let certificate =
            Certificate { der: vec![].into(), not_before: at(100), not_after: at(200) };
        for (before, renewal) in [(0, 200), (10, 190), (50, 150), (51, 150), (10_000, 150)] {
            assert_eq!(certificate.renewal(Duration::from_secs(before)), at(renewal), "{before}");
        }
    }
}
