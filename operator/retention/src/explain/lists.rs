//! Lists of objects as texts.

use kube::{Client, api::ListParams, core::Request};
use serde::Deserialize;
use serde_json::value::RawValue;
use trainjob_engine::{answer::timed, error::RequestError};

/// How many objects come at a time.
const PAGE: u32 = 500;

/// A part of a list.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    items: Vec<Box<RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
}

/// All objects under a path.
pub(super) async fn all(client: &Client, path: &str) -> Result<Vec<Box<RawValue>>, RequestError> {
    list(client, path, ListParams::default()).await
}

/// The object of a name under a path, if there is one.
pub(super) async fn one(
    client: &Client,
    path: &str,
    name: &str,
) -> Result<Option<Box<RawValue>>, RequestError> {
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    Ok(list(client, path, params).await?.into_iter().next())
}

async fn list(
    client: &Client,
    path: &str,
    params: ListParams,
) -> Result<Vec<Box<RawValue>>, RequestError> {
    let (mut items, mut params) = (Vec::new(), params.limit(PAGE));
    loop {
        let request = Request::new(path).list(&params);
        let request = request.map_err(|error| RequestError::Unbuildable(Box::new(error)))?;
        let page: Page = timed(client.request(request)).await?;
        items.extend(page.items);
        params.continue_token = page.metadata.next.filter(|next| !next.is_empty());
        if params.continue_token.is_none() {
            return Ok(items);
        }
    }
}
