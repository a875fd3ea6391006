//! Keys: what is in the Secrets of a TrainJob.
//!
//! Made anew each time one is asked for, and kept nowhere: a Secret is created once, and whoever comes
//! second is told that it is there.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use p521::elliptic_curve::{Generate, sec1::ToSec1Point};
use thiserror::Error;
use trainjob_core::build::{SecretClaim, SecretContent};
use x25519_dalek::{PublicKey, StaticSecret};

/// Why there are no keys.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The private key cannot be written.
    #[error("cannot write the private key: {0}")]
    Pem(#[from] p521::elliptic_curve::Error),
}

/// The Secret that is claimed, with new keys in it.
///
/// # Errors
///
/// See [`KeyError`].
pub fn fill(claim: &SecretClaim) -> Result<Secret, KeyError> {
    let (kind, data) = match claim.content {
        SecretContent::SshKeys => ("kubernetes.io/ssh-auth", ssh_keys()?),
        SecretContent::CurveKeys => {
            let owner = claim.metadata.owner_references.iter().flatten().next();
            ("Opaque", curve_keys(owner.map_or("", |owner| &owner.name)))
        }
    };
    Ok(Secret {
        metadata: claim.metadata.clone(),
        type_: Some(kind.to_owned()),
        immutable: Some(true),
        data: Some(data),
        ..Secret::default()
    })
}

type Data = BTreeMap<String, ByteString>;

fn ssh_keys() -> Result<Data, KeyError> {
    let private = p521::SecretKey::generate();
    let pem = private.to_sec1_pem(p521::pkcs8::LineEnding::LF)?;
    let point = private.public_key().to_sec1_point(false);
    Ok(BTreeMap::from([
        ("ssh-privatekey".to_owned(), ByteString(pem.as_bytes().to_vec())),
        ("ssh-publickey".to_owned(), ByteString(authorized_key(point.as_bytes()).into_bytes())),
    ]))
}

/// A line of `authorized_keys`, as RFC 5656 §3.1 lays it out.
fn authorized_key(point: &[u8]) -> String {
    const KIND: &str = "ecdsa-sha2-nistp521";
    let mut blob = Vec::new();
    for part in [KIND.as_bytes(), b"nistp521", point] {
        // None is longer than a few hundred bytes.
        blob.extend(u32::try_from(part.len()).unwrap_or(0).to_be_bytes());
        blob.extend(part);
    }
    format!("{KIND} {}\n", STANDARD.encode(blob))
}

/// A certificate file of `ZeroMQ`'s CURVE, as `zcert` reads it.
fn curve_keys(job: &str) -> Data {
    let private = StaticSecret::random();
    let public = PublicKey::from(&private);
    let (public, private) = (z85(public.as_bytes()), z85(private.as_bytes()));
    let certificate = format!(
        "#   ZeroMQ CURVE certificate of the Flux instance of one TrainJob.\n\
         #   Whoever has it may join that instance.\n\n\
         metadata\n    name = \"{job}\"\ncurve\n    public-key = \"{public}\"\n    \
         secret-key = \"{private}\"\n"
    );
    BTreeMap::from([("curve.cert".to_owned(), ByteString(certificate.into_bytes()))])
}

/// Z85, the encoding of ZeroMQ RFC 32: four bytes are five digits. Bytes beyond a multiple of four are
/// left out; keys have 32.
fn z85(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 85] =
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    let (words, _) = bytes.as_chunks::<4>();
    let digits = words.iter().flat_map(|word| {
        let word = u32::from_be_bytes(*word);
        (0..5).rev().map(move |power| word / 85_u32.pow(power) % 85)
    });
    digits.filter_map(|digit| DIGITS.get(digit as usize)).map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

    use super::*;

    fn filled(content: SecretContent) -> BTreeMap<String, String> {
        let owner = OwnerReference { name: "job".into(), ..OwnerReference::default() };
        let metadata = ObjectMeta {
            name: Some("keys".into()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        };
        let secret = fill(&SecretClaim { metadata: metadata.clone(), content }).unwrap();
        assert_eq!((secret.metadata, secret.immutable), (metadata, Some(true)));
        let data = secret.data.unwrap();
        data.into_iter().map(|(key, value)| (key, String::from_utf8(value.0).unwrap())).collect()
    }

    #[test]
    fn ssh_keys_are_a_pair() {
        let keys = filled(SecretContent::SshKeys);
        let pem = &keys["ssh-privatekey"];
        assert!(pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"), "{pem}");
        let private = p521::SecretKey::from_sec1_pem(pem).unwrap();
        let point = private.public_key().to_sec1_point(false);
        assert_eq!(keys["ssh-publickey"], authorized_key(point.as_bytes()));
        let line = &keys["ssh-publickey"];
        // The kind and the curve in base64, which every such key begins with.
        assert!(line.starts_with(
            "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACF"
        ));
        assert_ne!(filled(SecretContent::SshKeys), keys, "they are new each time");
    }

    #[test]
    fn curve_keys_are_a_certificate() {
        let file = &filled(SecretContent::CurveKeys)["curve.cert"];
        let value = |key: &str| {
            let line = file.lines().find(|line| line.trim_start().starts_with(key)).unwrap();
            line.split('"').nth(1).unwrap().to_owned()
        };
        assert_eq!(value("name"), "job");
        assert_eq!((value("public-key").len(), value("secret-key").len()), (40, 40));
        assert_ne!(value("public-key"), value("secret-key"));
    }

    #[test]
    fn z85_is_that_of_its_specification() {
        assert_eq!(z85(&[0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B]), "HelloWorld");
    }
}
