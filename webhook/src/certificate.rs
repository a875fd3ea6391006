//! The serving certificate: from files that somebody else keeps, or from a CA of our own.
//!
//! Either way it ends up in [`serving::Serving`], from which every TLS handshake takes it, so that a
//! new certificate needs no restart and breaks no connection.
//!
//! * [`files`] follows a directory with `tls.crt` and `tls.key`, which cert-manager or anybody else
//!   fills. Who fills it also puts the CA into the webhook configurations.
//! * [`self_managed`] needs nobody else. A Secret holds a CA; every replica signs its own certificate
//!   with it, in memory; the CA goes into the webhook configurations. CAs overlap when they are replaced:
//!   [`rotation`] decides, [`secret`] and [`webhook_configurations`] carry it out.

pub mod authority;
mod changes;
pub mod files;
mod request;
pub mod rotation;
pub mod secret;
pub mod self_managed;
pub mod serving;
pub mod settings;
mod trouble;
pub mod webhook_configurations;
pub mod x509;
