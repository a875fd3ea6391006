//! What the file says of the admission server.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use trainjob_api::crd::FieldUpdates;
use trainjob_core::admission::limits::ClusterLimits;

use super::{
    error::Problem,
    file::{CertManagement, Certificates, Configuration, Lifecycle, Webhook},
    tls::{self, Tls},
    value::Whole,
};

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
    /// Defaults and maxima of TTL and deadline in all namespaces.
    pub limits: ClusterLimits,
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
    /// How long a new authority stands in the webhook configurations before it signs; less than `renew_before`.
    pub bundle_lead: Duration,
}

/// What a file that has been checked says.
pub(super) fn resolve(file: &Configuration) -> Admission {
    let Configuration { cert_management: management, certificates, lifecycle, .. } = file;
    Admission {
        address: address(&file.webhook).unwrap_or_else(|| everywhere(&file.webhook)),
        certificate: if management.enable {
            CertificateSource::SelfManaged(self_managed(management, certificates))
        } else {
            CertificateSource::Files {
                directory: certificates.directory.clone(),
                poll_interval: certificates.poll_interval.get(),
            }
        },
        tls: tls::resolve(&file.tls).0,
        field_updates: lifecycle.field_updates,
        limits: ClusterLimits {
            default_ttl: lifecycle.default_ttl_seconds_after_finished.map(seconds),
            maximum_ttl: lifecycle.maximum_ttl_seconds_after_finished.map(seconds),
            maximum_deadline: lifecycle.maximum_active_deadline_seconds.map(seconds),
        },
    }
}

fn seconds<const MIN: u32, const MAX: u32>(number: Whole<MIN, MAX>) -> i64 {
    number.get().into()
}

/// `None` if the host is none.
fn address(webhook: &Webhook) -> Option<SocketAddr> {
    let host: IpAddr = match webhook.host.as_str() {
        "" => return Some(everywhere(webhook)),
        "localhost" => Ipv4Addr::LOCALHOST.into(),
        host => host.parse().ok()?,
    };
    Some((host, webhook.port.number()).into())
}

fn everywhere(webhook: &Webhook) -> SocketAddr {
    (Ipv6Addr::UNSPECIFIED, webhook.port.number()).into()
}

fn self_managed(management: &CertManagement, certificates: &Certificates) -> SelfManaged {
    SelfManaged {
        service: management.webhook_service_name.clone(),
        secret: management.webhook_secret_name.clone(),
        names: certificates.names.iter().map(|name| name.0.clone()).collect(),
        authority_lifetime: certificates.authority_lifetime.0,
        lifetime: certificates.lifetime.0,
        renew_before: certificates.renew_before.0,
        bundle_lead: certificates.bundle_lead.0,
    }
}

/// Refuses fields that have no meaning, or none together.
pub(super) fn check(file: &Configuration) -> Result<(), Problem> {
    if address(&file.webhook).is_none() {
        let message = "not an IP address, expected one, such as 127.0.0.1, localhost, or nothing";
        return Err(Problem::new("webhook.host", message));
    }
    tls::check(&file.tls)?;
    default_ttl(&file.lifecycle)?;
    lifetimes(&file.certificates)
}

fn default_ttl(lifecycle: &Lifecycle) -> Result<(), Problem> {
    let default = lifecycle.default_ttl_seconds_after_finished.map(seconds);
    let maximum = lifecycle.maximum_ttl_seconds_after_finished.map(seconds);
    match default.zip(maximum) {
        Some((default, maximum)) if default > maximum => {
            let message =
                format!("{default}, expected at most maximumTTLSecondsAfterFinished, {maximum}");
            Err(Problem::new("lifecycle.defaultTTLSecondsAfterFinished", message))
        }
        _ => Ok(()),
    }
}

fn lifetimes(certificates: &Certificates) -> Result<(), Problem> {
    let renew = certificates.renew_before.0;
    for (name, lifetime) in [
        ("authorityLifetime", certificates.authority_lifetime.0),
        ("lifetime", certificates.lifetime.0),
    ] {
        if lifetime < renew.saturating_mul(2) {
            let message = format!("{lifetime:?}, expected at least twice renewBefore, {renew:?}");
            return Err(Problem::new(format!("certificates.{name}"), message));
        }
    }
    let lead = certificates.bundle_lead.0;
    if lead >= renew {
        let message = format!("{lead:?}, expected less than renewBefore, {renew:?}");
        return Err(Problem::new("certificates.bundleLead", message));
    }
    Ok(())
}
