//! Lists whose items are handed on one by one, while their text arrives.
//!
//! A page of a list may be hundreds of megabytes, if the objects of somebody are large, and hardly anything of it is kept.
//! So no page is ever in memory: its text is cut into its items (`items`), each of which is read and dropped.

use std::{collections::VecDeque, future::ready, io, pin::pin, time::Duration};

use futures::{AsyncBufRead, AsyncBufReadExt};
use http::Request;
use kube::{Client, api::ListParams};
use serde::Deserialize;
use thiserror::Error;
use tokio::time::timeout;
use trainjob_process::client::REQUEST_TIMEOUT;

pub use crate::items::ItemsError;
use crate::{
    error::RequestError,
    items::{Items, Part},
};

/// Objects of the first page.
pub(crate) const FIRST_PAGE: u32 = 50;
/// Fewest and most objects of a page. A watch asks for one that fails in smaller ones.
pub(crate) const PAGE: (u32, u32) = (10, 500);
/// A page of so many bytes is followed by a smaller one, for the sake of the API server, which has all of it in memory.
pub(crate) const LARGE_PAGE: usize = 16 << 20;
/// A page of so many bytes or fewer is followed by a larger one.
pub(crate) const SMALL_PAGE: usize = 4 << 20;
/// How long a page may take.
const PAGE_WITHIN: Duration = Duration::from_mins(1);

/// What went wrong with a page.
#[derive(Debug, Error)]
pub enum PageError {
    /// There was no answer, or one that refuses.
    #[error(transparent)]
    Refused(#[from] kube::Error),
    /// Nothing came for so long, or not the whole page.
    #[error("no answer from the API server within {0:?}")]
    Silent(Duration),
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

impl From<PageError> for kube::Error {
    fn from(error: PageError) -> Self {
        match error {
            PageError::Refused(error) => error,
            PageError::Broken(error) => Self::ReadEvents(error),
            PageError::Unreadable(error) => Self::SerdeError(error),
            PageError::Silent(_) | PageError::NoList(_) => Self::Service(error.into()),
        }
    }
}

impl From<PageError> for RequestError {
    fn from(error: PageError) -> Self {
        match error {
            PageError::Silent(limit) => Self::TimedOut(limit),
            error => kube::Error::from(error).into(),
        }
    }
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

/// How many objects the page has that follows one with so many objects and bytes.
pub(crate) fn next_size(objects: u32, bytes: usize) -> u32 {
    if bytes > LARGE_PAGE {
        (objects / 2).max(PAGE.0)
    } else if bytes <= SMALL_PAGE {
        objects.saturating_mul(2).min(PAGE.1)
    } else {
        objects
    }
}

/// Asks for all pages, one after the other, and hands on the text of each item as soon as it is there. `request` makes the
/// request of a page. Where nothing comes for as long as a request may take ([`REQUEST_TIMEOUT`]), the list fails. Returns the
/// version of the list.
///
/// # Errors
///
/// Items may have been handed on before it failed.
pub async fn each(
    client: &Client,
    mut params: ListParams,
    request: impl Fn(&ListParams) -> Result<Request<Vec<u8>>, kube::core::request::Error>,
    mut take: impl FnMut(&str),
) -> Result<String, RequestError> {
    let mut size = FIRST_PAGE;
    loop {
        params.limit = Some(size);
        let request = request(&params).map_err(kube::Error::BuildRequest)?;
        let one_by_one = |item: String| {
            take(&item);
            ready(())
        };
        let page = read_page(client, request, REQUEST_TIMEOUT, one_by_one).await?;
        if page.next.is_empty() {
            return Ok(page.resource_version);
        }
        size = next_size(size, page.bytes);
        params.continue_token = Some(page.next);
    }
}

/// Asks for a page, and hands on the text of each of its items as soon as it is there.
///
/// # Errors
///
/// Items may have been handed on before it failed.
pub async fn page(
    client: &Client,
    request: Request<Vec<u8>>,
    mut take: impl FnMut(&str),
) -> Result<PageMetadata, PageError> {
    page_as_there_is_room(client, request, |item| {
        take(&item);
        ready(())
    })
    .await
}

/// Like [`page`], for who has not always room for another item: what `take` returns is awaited.
pub(crate) async fn page_as_there_is_room<F: Future<Output = ()>>(
    client: &Client,
    request: Request<Vec<u8>>,
    take: impl FnMut(String) -> F,
) -> Result<PageMetadata, PageError> {
    read_page(client, request, PAGE_WITHIN, take).await
}

async fn read_page<F: Future<Output = ()>>(
    client: &Client,
    request: Request<Vec<u8>>,
    silence: Duration,
    mut take: impl FnMut(String) -> F,
) -> Result<PageMetadata, PageError> {
    let read = async {
        let body = pin!(within(silence, client.request_stream(request)).await??);
        let mut page = Page::of(body);
        while let Some(item) = within(silence, page.next()).await?? {
            take(item).await;
        }
        page.metadata()
    };
    within(PAGE_WITHIN, read).await?
}

async fn within<T>(limit: Duration, part: impl Future<Output = T>) -> Result<T, PageError> {
    timeout(limit, part).await.map_err(|_| PageError::Silent(limit))
}

/// A page that arrives.
struct Page<B> {
    body: B,
    items: Items,
    /// Items that are there and were not handed on.
    arrived: VecDeque<String>,
    metadata: String,
    length: usize,
}

impl<B: AsyncBufRead + Unpin> Page<B> {
    fn of(body: B) -> Self {
        let (items, arrived) = (Items::default(), VecDeque::new());
        Self { body, items, arrived, metadata: String::new(), length: 0 }
    }

    /// The text of the next item; `None` after the last.
    async fn next(&mut self) -> Result<Option<String>, PageError> {
        while self.arrived.is_empty() {
            let bytes = self.body.fill_buf().await?;
            if bytes.is_empty() {
                self.items.end()?;
                return Ok(None);
            }
            let read = bytes.len();
            self.items.push(bytes, |part| match part {
                Part::Item(item) => self.arrived.push_back(item.to_owned()),
                Part::Field("metadata", value) => value.clone_into(&mut self.metadata),
                Part::Field(..) => {}
            })?;
            self.length += read;
            self.body.consume_unpin(read);
        }
        Ok(self.arrived.pop_front())
    }

    /// Its metadata, which is complete after the last item.
    fn metadata(&self) -> Result<PageMetadata, PageError> {
        Ok(PageMetadata { bytes: self.length, ..serde_json::from_str(&self.metadata)? })
    }
}
