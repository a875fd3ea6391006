//! Bringing manifests of any kind into a cluster.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, TypeMeta};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Client, ResourceExt};
use serde_json::Value;

use crate::testenv::until::until_ok;

const PATIENCE: Duration = Duration::from_secs(30);

/// Applies `manifests` one after the other, by server-side apply. Those of a namespaced kind that
/// name no namespace go to `namespace`.
pub async fn apply(
    client: &Client,
    namespace: &str,
    manifests: Vec<Value>,
) -> Result<Vec<DynamicObject>> {
    let mut applied = Vec::with_capacity(manifests.len());
    for manifest in manifests {
        let object: DynamicObject = serde_json::from_value(manifest).context("not a manifest")?;
        let name = object.name_any();
        let types = object.types.clone().context("a manifest without a kind")?;
        let api = api_of(client, namespace, &object, &types).await?;
        let how = PatchParams::apply("e2e").force();
        let outcome = api.patch(&name, &how, &Patch::Apply(&object)).await;
        applied.push(outcome.with_context(|| format!("cannot apply {} {name}", types.kind))?);
    }
    Ok(applied)
}

/// Where objects like `object` live. A kind that was defined a moment ago takes a second to be
/// known.
async fn api_of(
    client: &Client,
    namespace: &str,
    object: &DynamicObject,
    types: &TypeMeta,
) -> Result<Api<DynamicObject>> {
    let kind = GroupVersionKind::try_from(types)?;
    let what = format!("the API server knows {}", types.kind);
    let (resource, capabilities) =
        until_ok(what, PATIENCE, || async { Ok(pinned_kind(client, &kind).await?) }).await?;
    Ok(match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = object.namespace().unwrap_or_else(|| namespace.to_owned());
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
    })
}

/// Waits until each of `definitions` is served.
pub async fn established(client: &Client, definitions: &[DynamicObject]) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions {
        let name = definition.name_any();
        until_ok(format!("{name} is established"), PATIENCE, || async {
            let definition = api.get(&name).await?;
            let conditions = definition.status.and_then(|status| status.conditions);
            let served = |kind: &str, status: &str| kind == "Established" && status == "True";
            if conditions.iter().flatten().any(|it| served(&it.type_, &it.status)) {
                return Ok(());
            }
            bail!("it is not served yet")
        })
        .await?;
    }
    Ok(())
}
