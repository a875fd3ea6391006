//! The Secret that holds the CAs.
//!
//! | Key | Content |
//! |---|---|
//! | `ca.crt`, `ca.key` | the CA that signs |
//! | `ca-next.crt`, `ca-next.key` | the CA that will sign next |
//! | `ca-previous.crt` | the certificates of those that signed before |
//!
//! Other keys are somebody else's and stay. Every change is fenced by the resourceVersion.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{
    authority::Authority,
    request::{FIELD_MANAGER, RequestError, timed},
    rotation::{Place, State, Step},
    settings::Settings,
    x509::{self, Certificate},
};

const SIGNER: Keys = Keys { certificate: "ca.crt", key: "ca.key" };
const NEXT: Keys = Keys { certificate: "ca-next.crt", key: "ca-next.key" };
const PREVIOUS: &str = "ca-previous.crt";

/// Where a CA is.
struct Keys {
    certificate: &'static str,
    key: &'static str,
}

type Data = BTreeMap<String, ByteString>;

/// New content by key; `None` removes it.
type Changes = BTreeMap<&'static str, Option<ByteString>>;

/// What the Secret held when it was read.
pub struct Content {
    /// The CAs, as far as rotation is concerned.
    pub state: State,
    /// The CA that signs.
    pub signer: Option<Authority>,
    /// Why there is something where the CA is to be that cannot sign.
    pub unusable: Option<String>,
    /// `None` if there is no Secret.
    version: Option<String>,
    data: Data,
}

impl Content {
    /// Reads a Secret; `None` if there is none.
    #[must_use]
    pub fn of(secret: Option<Secret>) -> Self {
        let version =
            secret.as_ref().map(|s| s.metadata.resource_version.clone().unwrap_or_default());
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        let (signer, authority, unusable) = place(&data, &SIGNER);
        let (next, ..) = place(&data, &NEXT);
        // What cannot be read here has not been written here.
        let previous = Certificate::all(value(&data, PREVIOUS)).unwrap_or_default();
        let state = State { signer, next, previous };
        Self { state, signer: authority, unusable, version, data }
    }

    /// What a step changes, given what [`super::rotation::after`] says.
    fn changes(&self, step: Step, new: Option<&Authority>, after: &State) -> Changes {
        let text = |text: String| Some(ByteString(text.into_bytes()));
        let of = |new: Option<&Authority>| {
            (
                new.and_then(|new| text(x509::to_pem([new.certificate()]))),
                new.and_then(|new| text(new.key_pem().to_owned())),
            )
        };
        let kept = |keys: &Keys| {
            (self.data.get(keys.certificate).cloned(), self.data.get(keys.key).cloned())
        };
        let (signer, next) = match step {
            Step::Create => (of(new), (None, None)),
            Step::AddNext => (kept(&SIGNER), of(new)),
            Step::Promote(_) => (kept(&NEXT), (None, None)),
            Step::DropPrevious | Step::Remember | Step::Wait(_) => (kept(&SIGNER), kept(&NEXT)),
        };
        let previous =
            (!after.previous.is_empty()).then(|| x509::to_pem(&after.previous)).and_then(text);
        let content = [
            (SIGNER.certificate, signer.0),
            (SIGNER.key, signer.1),
            (NEXT.certificate, next.0),
            (NEXT.key, next.1),
            (PREVIOUS, previous),
        ];
        content.into_iter().filter(|(key, value)| self.data.get(*key) != value.as_ref()).collect()
    }
}

fn value<'a>(data: &'a Data, key: &str) -> &'a [u8] {
    data.get(key).map_or(&[], |value| &value.0)
}

fn place(data: &Data, keys: &Keys) -> (Place, Option<Authority>, Option<String>) {
    let (certificate, key) = (value(data, keys.certificate), value(data, keys.key));
    if certificate.is_empty() && key.is_empty() {
        return (Place::Empty, None, None);
    }
    match Authority::read(certificate, key) {
        Ok(authority) => (Place::Usable(authority.certificate().clone()), Some(authority), None),
        Err(error) => {
            let trusted = Certificate::all(certificate).unwrap_or_default().into_iter().next();
            (Place::Unusable(trusted), None, Some(error.to_string()))
        }
    }
}

/// The Secret in the cluster.
pub(super) struct Store {
    api: Api<Secret>,
    name: String,
}

impl Store {
    pub(super) fn new(client: Client, settings: &Settings) -> Self {
        let api = Api::namespaced(client, &settings.namespace);
        Self { api, name: settings.secret.clone() }
    }

    pub(super) async fn read(&self) -> Result<Content, RequestError> {
        Ok(Content::of(timed(self.api.get_opt(&self.name)).await?))
    }

    /// Carries out a step on what was read.
    pub(super) async fn write(
        &self,
        read: &Content,
        step: Step,
        new: Option<&Authority>,
        after: &State,
    ) -> Result<(), RequestError> {
        let data = read.changes(step, new, after);
        let field_manager = Some(FIELD_MANAGER.to_owned());
        if let Some(version) = &read.version {
            let patch = json!({"metadata": {"resourceVersion": version}, "data": data});
            let params = PatchParams { field_manager, ..PatchParams::default() };
            timed(self.api.patch(&self.name, &params, &Patch::Merge(patch))).await?;
        } else {
            let data = data.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
            let secret = Secret {
                metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                data: Some(data.collect()),
                ..Secret::default()
            };
            let params = PostParams { field_manager, ..PostParams::default() };
            timed(self.api.create(&params, &secret)).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::certificate::rotation::{Reason, after, bundle};

    const RSA: &str = include_str!("testdata/rsa-authority.pem");
    const HOUR: Duration = Duration::from_hours(1);

    fn secret<const N: usize>(data: [(&str, &str); N]) -> Secret {
        let data = data.map(|(key, value)| (key.to_owned(), ByteString(value.into())));
        let metadata =
            ObjectMeta { resource_version: Some("7".to_owned()), ..ObjectMeta::default() };
        Secret { metadata, data: Some(data.into()), ..Secret::default() }
    }

    /// What the Secret is after a step.
    fn stepped(before: &Content, step: Step, new: Option<&Authority>) -> Content {
        let settings = Settings::new("ns".into(), "ca".into(), "hook".into());
        let certificate = new.map(|new| new.certificate().clone());
        let state = after(&before.state, step, certificate, &settings, SystemTime::now());
        let mut data = before.data.clone();
        for (key, value) in before.changes(step, new, &state) {
            match value {
                Some(value) => data.insert(key.to_owned(), value),
                None => data.remove(key),
            };
        }
        let content = Content::of(Some(Secret { data: Some(data), ..Secret::default() }));
        assert_eq!(content.state, state, "{step:?}");
        content
    }

    #[test]
    fn every_step_leaves_in_the_secret_what_rotation_says() {
        let now = SystemTime::now();
        let (one, two) =
            (Authority::create(now, HOUR).unwrap(), Authority::create(now, HOUR).unwrap());
        let empty = Content::of(None);
        assert_eq!((&empty.state, &empty.version), (&State::default(), &None));
        let first = stepped(&empty, Step::Create, Some(&one));
        let both = stepped(&first, Step::AddNext, Some(&two));
        let second = stepped(&both, Step::Promote(Reason::Stood), None);
        assert_eq!(second.signer.unwrap().key_pem(), two.key_pem());
        assert_eq!(second.state.previous, [one.certificate().clone()]);
        let keys: Vec<_> = second.data.keys().map(String::as_str).collect();
        assert_eq!(keys, ["ca-previous.crt", "ca.crt", "ca.key"]);
    }

    #[test]
    fn the_authority_of_another_rotator_is_replaced_and_stays_trusted() {
        let other =
            [("ca.crt", RSA), ("ca.key", RSA), ("tls.crt", "theirs"), ("tls.key", "theirs")];
        let before = Content::of(Some(secret(other)));
        assert!(before.unusable.as_ref().unwrap().contains("PKCS #8"), "{:?}", before.unusable);
        assert_eq!(before.version.as_deref(), Some("7"));
        let ours = Authority::create(SystemTime::now(), HOUR).unwrap();
        let after = stepped(&before, Step::Create, Some(&ours));
        let theirs = Certificate::all(RSA.as_bytes()).unwrap().remove(0);
        assert_eq!(bundle(&after.state, SystemTime::now()), [&theirs, ours.certificate()]);
        assert_eq!(value(&after.data, "tls.crt"), b"theirs");
        let text = String::from_utf8(after.data["ca.key"].0.clone()).unwrap();
        assert!(text.starts_with("-----BEGIN PRIVATE KEY-----"));
    }

    #[test]
    fn what_cannot_be_read_is_no_reason_to_fail() {
        for (data, expected) in [
            ([("ca.crt", ""), ("ca.key", "")], Place::Empty),
            ([("ca.crt", "rubbish"), ("ca.key", "rubbish")], Place::Unusable(None)),
            ([("ca.crt", ""), ("ca.key", "rubbish")], Place::Unusable(None)),
            ([("ca-previous.crt", "rubbish"), ("ca-next.crt", "")], Place::Empty),
        ] {
            let content = Content::of(Some(secret(data)));
            assert_eq!(content.state.signer, expected, "{data:?}");
            assert_eq!(content.state.previous, []);
            assert!(content.signer.is_none());
        }
        assert_eq!(Content::of(Some(Secret::default())).state, State::default());
    }
}
