//! Lists whose items are handed on one by one, while their text arrives.
//!
//! A page of a list may be hundreds of megabytes, if the objects of somebody are large, and hardly anything of it is kept.
//! So no page is ever in memory: its text is cut into its items (`items`), each of which is read and dropped.

use std::{io, pin::pin, time::Duration};

use futures::{AsyncBufRead, AsyncBufReadExt};
use http::Request;
use kube::Client;
use serde::Deserialize;
use thiserror::Error;
use tokio::time::timeout;

pub use crate::items::ItemsError;
use crate::items::{Items, Part};

/// How long a page may take.
const PAGE_WITHIN: Duration = Duration::from_mins(1);

/// What went wrong with a page.
#[derive(Debug, Error)]
pub enum PageError {
    /// There was no answer, or one that refuses.
    #[error(transparent)]
    Refused(#[from] kube::Error),
    /// It took more than a minute.
    #[error("no answer in time")]
    Silent,
    /// The connection broke in the middle.
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    /// The text is no list.
    #[error(transparent)]
    NoList(#[from] ItemsError),
    /// The list has other metadata than a list has.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// The metadata of a page.
#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct PageMetadata {
    /// The version of the list, where a watch goes on.
    pub resource_version: String,
    /// What to ask the next page with; empty after the last.
    #[serde(rename = "continue")]
    pub next: String,
    /// How long the text of the page was, in bytes.
    #[serde(skip)]
    pub bytes: usize,
}

/// Asks for a page, and hands on the text of each of its items as soon as it is there.
///
/// # Errors
///
/// Items may have been handed on before it failed.
pub async fn page(
    client: &Client,
    request: Request<Vec<u8>>,
    take: impl FnMut(&str),
) -> Result<PageMetadata, PageError> {
    let read = async { read(pin!(client.request_stream(request).await?), take).await };
    timeout(PAGE_WITHIN, read).await.map_err(|_| PageError::Silent)?
}

async fn read(
    mut body: impl AsyncBufRead + Unpin,
    mut take: impl FnMut(&str),
) -> Result<PageMetadata, PageError> {
    let (mut items, mut metadata, mut length) = (Items::default(), String::new(), 0);
    loop {
        let bytes = body.fill_buf().await?;
        if bytes.is_empty() {
            items.end()?;
            return Ok(PageMetadata { bytes: length, ..serde_json::from_str(&metadata)? });
        }
        let read = bytes.len();
        items.push(bytes, |part| match part {
            Part::Item(item) => take(item),
            Part::Field("metadata", value) => value.clone_into(&mut metadata),
            Part::Field(..) => {}
        })?;
        length += read;
        body.consume_unpin(read);
    }
}
