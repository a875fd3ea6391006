//! What the file says of the admission server.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use super::{
    error::Problem,
    file::{CertManagement, Certificates, Configuration, FieldUpdates, Webhook},
    tls::{self, Tls},
    value::{Count, GoDuration, Port},
};

/// Trainer's port.
const PORT: u16 = 9443;
/// Where Trainer's certificate is mounted.
const DIRECTORY: &str = "/tmp/k8s-webhook-server/serving-certs";
const SERVICE: &str = "kubeflow-trainer-controller-manager";
const SECRET: &str = "kubeflow-trainer-webhook-cert";

const DAY: Duration = Duration::from_hours(24);
const AUTHORITY_LIFETIME: Duration = DAY.saturating_mul(3_650);
const LIFETIME: Duration = DAY.saturating_mul(365);
const RENEW_BEFORE: Duration = DAY.saturating_mul(90);
const BUNDLE_LEAD: Duration = Duration::from_mins(5);
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How often files may be looked at. A change is to be noticed within ten seconds.
const POLL_INTERVALS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(10)];

/// What the admission server uses, complete and valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    /// Where it listens; port 9443 of every interface by default.
    pub address: SocketAddr,
    /// Where its certificate comes from; it makes its own by default.
    pub certificate: CertificateSource,
    /// How it speaks TLS.
    pub tls: Tls,
    /// Whether TTL and deadline may be changed later.
    pub field_updates: FieldUpdates,
    /// The TTL of jobs that are created without one, in seconds.
    pub default_ttl: Option<i32>,
}

/// Where a certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// From files that somebody else writes.
    Files {
        /// The directory with `tls.crt` and `tls.key`.
        directory: PathBuf,
        /// How often they are looked at.
        poll_interval: Duration,
    },
    /// From an authority that the replicas share.
    SelfManaged(SelfManaged),
}

/// A certificate authority of one's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfManaged {
    /// The Service that its certificates are for.
    pub service: String,
    /// The Secret that it is kept in.
    pub secret: String,
    /// Further names that its certificates are for.
    pub names: Vec<String>,
    /// How long an authority is valid.
    pub authority_lifetime: Duration,
    /// How long a certificate is valid.
    pub lifetime: Duration,
    /// How long before its end either is renewed; at most half of either lifetime.
    pub renew_before: Duration,
    /// How long a new authority stands in the registrations before it signs; less than `renew_before`.
    pub bundle_lead: Duration,
}

/// What a file that has been checked says.
pub(super) fn resolve(file: &Configuration) -> Admission {
    let lifecycle = file.lifecycle.as_ref();
    let ttl = lifecycle.and_then(|it| it.default_ttl_seconds_after_finished).map(Count::get);
    let certificates = file.certificates.clone().unwrap_or_default();
    Admission {
        address: address(file.webhook.as_ref()).unwrap_or((Ipv6Addr::UNSPECIFIED, PORT).into()),
        certificate: match &file.cert_management {
            Some(CertManagement { enable: Some(false), .. }) => files(&certificates),
            management => self_managed(management.as_ref(), &certificates),
        },
        tls: tls::resolve(file.tls.as_ref()).0,
        field_updates: lifecycle.and_then(|it| it.field_updates).unwrap_or_default(),
        default_ttl: ttl.and_then(|seconds| i32::try_from(seconds).ok()),
    }
}

/// `None` if the host is none.
fn address(webhook: Option<&Webhook>) -> Option<SocketAddr> {
    let port = webhook.and_then(|webhook| webhook.port).map(Port::get);
    // A port has been checked to be one.
    let port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or(PORT);
    let host: IpAddr = match webhook.and_then(|webhook| webhook.host.as_deref()) {
        None | Some("") => Ipv6Addr::UNSPECIFIED.into(),
        Some("localhost") => Ipv4Addr::LOCALHOST.into(),
        Some(host) => host.parse().ok()?,
    };
    Some((host, port).into())
}

fn files(certificates: &Certificates) -> CertificateSource {
    CertificateSource::Files {
        directory: certificates.directory.clone().unwrap_or_else(|| DIRECTORY.into()),
        poll_interval: given(certificates.poll_interval, POLL_INTERVAL),
    }
}

fn self_managed(
    management: Option<&CertManagement>,
    certificates: &Certificates,
) -> CertificateSource {
    let name = |of: fn(&CertManagement) -> &Option<String>, default: &str| {
        let given = management.and_then(|it| of(it).clone()).filter(|name| !name.is_empty());
        given.unwrap_or_else(|| default.to_owned())
    };
    let names = certificates.names.iter().flatten();
    CertificateSource::SelfManaged(SelfManaged {
        service: name(|it| &it.webhook_service_name, SERVICE),
        secret: name(|it| &it.webhook_secret_name, SECRET),
        names: names.map(|name| name.0.clone()).collect(),
        authority_lifetime: given(certificates.authority_lifetime, AUTHORITY_LIFETIME),
        lifetime: given(certificates.lifetime, LIFETIME),
        renew_before: given(certificates.renew_before, RENEW_BEFORE),
        bundle_lead: given(certificates.bundle_lead, BUNDLE_LEAD),
    })
}

fn given(field: Option<GoDuration>, default: Duration) -> Duration {
    field.map_or(default, |duration| duration.0)
}

/// Refuses fields that have no meaning, or none together.
pub(super) fn check(file: &Configuration) -> Result<(), Problem> {
    if address(file.webhook.as_ref()).is_none() {
        let message = "not an IP address, expected one, such as 127.0.0.1, localhost, or nothing";
        return Err(Problem::new("webhook.host", message));
    }
    tls::check(file.tls.as_ref())?;
    let Some(certificates) = &file.certificates else { return Ok(()) };
    let interval = given(certificates.poll_interval, POLL_INTERVAL);
    let [least, most] = POLL_INTERVALS;
    if !(least..=most).contains(&interval) {
        let message = format!("{interval:?}, expected from {least:?} to {most:?}");
        return Err(Problem::new("certificates.pollInterval", message));
    }
    lifetimes(certificates)
}

fn lifetimes(certificates: &Certificates) -> Result<(), Problem> {
    let renew = given(certificates.renew_before, RENEW_BEFORE);
    for (name, lifetime) in [
        ("authorityLifetime", given(certificates.authority_lifetime, AUTHORITY_LIFETIME)),
        ("lifetime", given(certificates.lifetime, LIFETIME)),
    ] {
        if lifetime < renew.saturating_mul(2) {
            let message = format!("{lifetime:?}, expected at least twice renewBefore, {renew:?}");
            return Err(Problem::new(format!("certificates.{name}"), message));
        }
    }
    let lead = given(certificates.bundle_lead, BUNDLE_LEAD);
    if lead >= renew {
        let message = format!("{lead:?}, expected less than renewBefore, {renew:?}");
        return Err(Problem::new("certificates.bundleLead", message));
    }
    Ok(())
}
