//! Notices when what a certificate depends on has changed.

use std::{fmt::Debug, pin::pin, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    core::v1::Secret,
};
use kube::{
    Api, Client, Resource,
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::sync::Notify;

use super::{
    settings::Settings,
    webhook_configurations::{MUTATING, VALIDATING},
};

/// The longest time between two looks at what may have changed unnoticed.
pub(super) const LOOK: Duration = Duration::from_secs(30);

/// Says when one of the three objects may have changed; never ends.
pub(super) async fn watch(client: Client, settings: Settings, changed: &Notify) {
    let secrets = Api::<PartialObjectMeta<Secret>>::namespaced(client.clone(), &settings.namespace);
    let validating = Api::<PartialObjectMeta<ValidatingWebhookConfiguration>>::all(client.clone());
    let mutating = Api::<PartialObjectMeta<MutatingWebhookConfiguration>>::all(client);
    tokio::join!(
        follow(secrets, &settings.secret, changed),
        follow(validating, VALIDATING, changed),
        follow(mutating, MUTATING, changed),
    );
}

async fn follow<K>(api: Api<K>, name: &str, changed: &Notify)
where
    K: Resource + Clone + Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = pin!(watcher(api, config).default_backoff());
    let mut told = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(_) | Event::Delete(_) | Event::InitDone) => changed.notify_one(),
            Ok(Event::Init | Event::InitApply(_)) => {}
            // It may well be read all the same.
            Err(error) if is_forbidden(&error) && !told => {
                told = true;
                tracing::warn!(
                    name,
                    %error,
                    "not allowed to watch, so a change may be noticed only after {LOOK:?}"
                );
            }
            // What is really wrong is seen, and said, when the object is read.
            Err(error) => tracing::debug!(name, %error, "watch begins anew"),
        }
    }
}

fn is_forbidden(error: &watcher::Error) -> bool {
    matches!(
        error,
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 403
    )
}
