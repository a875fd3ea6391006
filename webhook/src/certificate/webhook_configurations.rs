//! The CA bundle in the webhook configurations.
//!
//! Every webhook of both webhook configurations gets exactly the bundle that rotation wants. Nothing else of them
//! is touched: the change is a JSON patch of the one field, fenced by a test of the resourceVersion.

use std::fmt::Debug;

use json_patch::{AddOperation, PatchOperation, TestOperation, jsonptr::PointerBuf};
use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{
    request::{FIELD_MANAGER, RequestError, timed},
    x509::Certificate,
};

/// Name of the `ValidatingWebhookConfiguration`.
pub const VALIDATING: &str = "validator.trainer.kubeflow.org";
/// Name of the `MutatingWebhookConfiguration`.
pub const MUTATING: &str = "defaulter.trainer.kubeflow.org";

/// A kind of webhook configuration.
pub trait Registered: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug {
    /// Name of the one object that is ours.
    const NAME: &'static str;
    /// How its webhooks are called.
    fn clients(&self) -> impl Iterator<Item = &WebhookClientConfig>;
}

impl Registered for ValidatingWebhookConfiguration {
    const NAME: &'static str = VALIDATING;

    fn clients(&self) -> impl Iterator<Item = &WebhookClientConfig> {
        self.webhooks.iter().flatten().map(|webhook| &webhook.client_config)
    }
}

impl Registered for MutatingWebhookConfiguration {
    const NAME: &'static str = MUTATING;

    fn clients(&self) -> impl Iterator<Item = &WebhookClientConfig> {
        self.webhooks.iter().flatten().map(|webhook| &webhook.client_config)
    }
}

/// What a webhook configuration held when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookConfiguration {
    version: String,
    /// The bundle of each webhook; empty if it has none.
    bundles: Vec<Vec<u8>>,
}

impl WebhookConfiguration {
    /// Reads one.
    #[must_use]
    pub fn of<K: Registered>(configuration: &K) -> Self {
        let ObjectMeta { resource_version, .. } = configuration.meta();
        let bundle = |client: &WebhookClientConfig| client.ca_bundle.clone().unwrap_or_default().0;
        Self {
            version: resource_version.clone().unwrap_or_default(),
            bundles: configuration.clients().map(bundle).collect(),
        }
    }

    /// Whether every webhook trusts this CA.
    #[must_use]
    pub fn holds(&self, ca: &Certificate) -> bool {
        let trusts = |bundle: &Vec<u8>| {
            Certificate::all(bundle).is_ok_and(|certificates| certificates.contains(ca))
        };
        self.bundles.iter().all(trusts)
    }

    /// What makes every webhook trust exactly this bundle; `None` if they do.
    #[must_use]
    pub fn patch(&self, bundle: &str) -> Option<json_patch::Patch> {
        let path = |tokens: &[&str]| PointerBuf::from_tokens(tokens.iter().copied());
        let value = json!(ByteString(bundle.as_bytes().to_vec()));
        let differs = |held: &Vec<u8>| held != bundle.as_bytes();
        let different = self.bundles.iter().enumerate().filter(|(_, held)| differs(held));
        let mut operations: Vec<_> = different
            .map(|(index, _)| {
                let path = path(&["webhooks", &index.to_string(), "clientConfig", "caBundle"]);
                PatchOperation::Add(AddOperation { path, value: value.clone() })
            })
            .collect();
        if operations.is_empty() {
            return None;
        }
        let (path, value) = (path(&["metadata", "resourceVersion"]), json!(self.version));
        operations.insert(0, PatchOperation::Test(TestOperation { path, value }));
        Some(json_patch::Patch(operations))
    }
}

/// Both webhook configurations as they were read; `None` for one that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookConfigurations {
    /// That of the validating webhooks.
    pub validating: Option<WebhookConfiguration>,
    /// That of the mutating webhooks.
    pub mutating: Option<WebhookConfiguration>,
}

impl WebhookConfigurations {
    /// Whether the API server can trust what this CA signed: whatever is registered trusts it, and
    /// something is.
    #[must_use]
    pub fn hold(&self, ca: &Certificate) -> bool {
        let mut there = self.validating.iter().chain(&self.mutating).peekable();
        there.peek().is_some() && there.all(|configuration| configuration.holds(ca))
    }

    /// Names of those that do not exist; `None` if both do.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let validating = ("ValidatingWebhookConfiguration", VALIDATING, &self.validating);
        let mutating = ("MutatingWebhookConfiguration", MUTATING, &self.mutating);
        let missing: Vec<_> = [validating, mutating]
            .into_iter()
            .filter(|(_, _, configuration)| configuration.is_none())
            .map(|(kind, name, _)| format!("{kind} {name}"))
            .collect();
        (!missing.is_empty()).then(|| missing.join(", "))
    }
}

/// The webhook configurations in the cluster.
pub(super) struct Store {
    validating: Api<ValidatingWebhookConfiguration>,
    mutating: Api<MutatingWebhookConfiguration>,
}

impl Store {
    pub(super) fn new(client: Client) -> Self {
        Self { validating: Api::all(client.clone()), mutating: Api::all(client) }
    }

    pub(super) async fn read(&self) -> Result<WebhookConfigurations, RequestError> {
        let (validating, mutating) = tokio::join!(read(&self.validating), read(&self.mutating));
        Ok(WebhookConfigurations { validating: validating?, mutating: mutating? })
    }

    /// Writes the bundle where it differs, also to one if that fails for the other. `read` is what is
    /// there from then on; says whether anything was written.
    pub(super) async fn write(
        &self,
        read: &mut WebhookConfigurations,
        bundle: &str,
    ) -> Result<bool, RequestError> {
        let (validating, mutating) = tokio::join!(
            write(&self.validating, &mut read.validating, bundle),
            write(&self.mutating, &mut read.mutating, bundle),
        );
        Ok(validating? | mutating?)
    }
}

async fn read<K: Registered>(api: &Api<K>) -> Result<Option<WebhookConfiguration>, RequestError> {
    Ok(timed(api.get_opt(K::NAME)).await?.as_ref().map(WebhookConfiguration::of))
}

async fn write<K: Registered>(
    api: &Api<K>,
    read: &mut Option<WebhookConfiguration>,
    bundle: &str,
) -> Result<bool, RequestError> {
    let Some(patch) = read.as_ref().and_then(|configuration| configuration.patch(bundle)) else {
        return Ok(false);
    };
    let field_manager = Some(FIELD_MANAGER.to_owned());
    let params = PatchParams { field_manager, ..PatchParams::default() };
    let written = timed(api.patch(K::NAME, &params, &Patch::<()>::Json(patch))).await?;
    tracing::info!(configuration = K::NAME, "CA bundle written");
    *read = Some(WebhookConfiguration::of(&written));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use serde_json::Value;

    use super::*;
    use crate::certificate::{authority::Authority, x509::to_pem};

    fn webhook(name: &str, client: &Value) -> Value {
        json!({
            "name": name, "clientConfig": client, "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 7,
            "matchConditions": [{"name": "a", "expression": "true"}],
        })
    }

    fn configuration(clients: &[Value]) -> Value {
        let webhooks: Vec<_> = clients.iter().map(|client| webhook("a.b.c", client)).collect();
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": VALIDATING, "resourceVersion": "7", "labels": {"keep": "me"}},
            "webhooks": webhooks,
        })
    }

    fn service(bundle: Option<&str>) -> Value {
        let mut client = json!({"service": {"name": "hook", "namespace": "ns", "path": "/x"}});
        if let Some(bundle) = bundle {
            client["caBundle"] = json!(ByteString(bundle.into()));
        }
        client
    }

    fn read(object: &Value) -> WebhookConfiguration {
        let typed: ValidatingWebhookConfiguration = serde_json::from_value(object.clone()).unwrap();
        WebhookConfiguration::of(&typed)
    }

    #[test]
    fn only_the_bundle_changes_and_only_where_it_differs() {
        let url = json!({"url": "https://hook.example/x"});
        let mut with_url = url.clone();
        with_url["caBundle"] = json!(ByteString("ours".into()));
        let ours = service(Some("ours"));
        for (what, before, after, operations) in [
            ("none yet", vec![service(None), url], vec![ours.clone(), with_url], 3),
            ("a foreign one", vec![service(Some("theirs"))], vec![ours.clone()], 2),
            ("ours and more", vec![service(Some("oursmore"))], vec![ours.clone()], 2),
            ("one emptied", vec![ours.clone(), service(Some(""))], vec![ours.clone(); 2], 2),
            ("right", vec![ours.clone(); 2], vec![ours; 2], 0),
            ("no webhooks", vec![], vec![], 0),
        ] {
            let mut object = configuration(&before);
            let patch = read(&object).patch("ours");
            assert_eq!(patch.as_ref().map_or(0, |patch| patch.0.len()), operations, "{what}");
            if let Some(patch) = &patch {
                json_patch::patch(&mut object, patch).unwrap();
                let mut newer = configuration(&before);
                newer["metadata"]["resourceVersion"] = json!("8");
                assert!(json_patch::patch(&mut newer, patch).is_err(), "{what}: not fenced");
            }
            assert_eq!(object, configuration(&after), "{what}");
        }
    }

    #[test]
    fn webhook_configuration_holds_a_ca_that_all_its_webhooks_trust() {
        let now = SystemTime::now();
        let authority = || Authority::create(now, Duration::from_hours(1)).unwrap();
        let (one, two) = (authority(), authority());
        let (one, two) = (one.certificate(), two.certificate());
        let (first, both) = (to_pem([one]), to_pem([one, two]));
        let broken = format!("{both}-----BEGIN CERTIFICATE-----\n");
        for (bundles, holds) in [
            (vec![Some(both.as_str())], (true, true)),
            (vec![Some(&both), Some(&first)], (true, false)),
            (vec![Some(&both), None], (false, false)),
            (vec![Some("rubbish")], (false, false)),
            (vec![Some(&broken)], (false, false)),
            (vec![], (true, true)),
        ] {
            let clients: Vec<_> = bundles.iter().map(|bundle| service(*bundle)).collect();
            let read = read(&configuration(&clients));
            assert_eq!((read.holds(one), read.holds(two)), holds, "{bundles:?}");
        }
    }

    #[test]
    fn what_is_missing_is_named_and_nothing_is_trusted_without_any() {
        let ca = Authority::create(SystemTime::now(), Duration::from_hours(1)).unwrap();
        let ca = ca.certificate();
        let right = Some(read(&configuration(&[service(Some(&to_pem([ca])))])));
        let wrong = Some(read(&configuration(&[service(None)])));
        let kinds = [
            "ValidatingWebhookConfiguration validator.trainer.kubeflow.org",
            "MutatingWebhookConfiguration defaulter.trainer.kubeflow.org",
        ];
        for (validating, mutating, hold, missing) in [
            (&right, &right, true, None),
            (&right, &wrong, false, None),
            (&right, &None, true, Some(kinds[1].to_owned())),
            (&None, &wrong, false, Some(kinds[0].to_owned())),
            (&None, &None, false, Some(kinds.join(", "))),
        ] {
            let both = WebhookConfigurations {
                validating: validating.clone(),
                mutating: mutating.clone(),
            };
            assert_eq!((both.hold(ca), both.missing()), (hold, missing));
        }
    }
}
