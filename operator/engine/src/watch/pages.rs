//! The pages of a list, asked for one after the other while what arrived is read elsewhere.
//!
//! To make objects of the texts of a page takes about as long as the API server needs for the next, so the two go on side by
//! side. What has arrived and was not read yet is bounded in bytes: a page may be hundreds of megabytes.

use std::sync::Arc;

use kube::{
    Client,
    api::{ListParams, Request},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc::UnboundedSender};

use crate::list::{self, PageMetadata};

/// So many kilobytes of texts may wait to be read, or one text that is longer: as many as a page of usual objects has.
const ROOM: u32 = 2 << 10;

/// A text that waits to be read.
#[derive(Debug)]
pub(super) struct Text {
    /// The text of an object.
    pub(super) text: String,
    /// Its share of the room, given back when it was read.
    _room: Option<OwnedSemaphorePermit>,
}

/// What came of a list.
#[derive(Debug)]
pub(super) struct Fetched {
    /// How many objects a page has next time.
    pub(super) page: u32,
    /// The version of the list.
    pub(super) version: Result<String, kube::Error>,
}

/// The pages of a list.
pub(super) struct Pages {
    client: Client,
    url: String,
    params: ListParams,
    page: u32,
    room: Arc<Semaphore>,
}

impl Pages {
    /// Those of what is listed there, the first with so many objects.
    pub(super) fn new(client: Client, url: &str, params: ListParams, page: u32) -> Self {
        Self {
            client,
            url: url.to_owned(),
            params,
            page,
            room: Arc::new(Semaphore::new(ROOM as usize)),
        }
    }

    /// Asks for all of them, and sends the text of each object.
    pub(super) async fn fetch(mut self, found: UnboundedSender<Text>) -> Fetched {
        let version = loop {
            let page = self.fetch_page(&found).await;
            match page {
                Ok(page) => {
                    self.page = list::next_size(self.page, page.bytes);
                    if page.next.is_empty() {
                        break Ok(page.resource_version);
                    }
                    self.params.continue_token = Some(page.next);
                }
                Err(error) => {
                    self.page = (self.page / 2).max(list::PAGE.0);
                    break Err(error);
                }
            }
        };
        Fetched { page: self.page, version }
    }

    async fn fetch_page(&self, found: &UnboundedSender<Text>) -> Result<PageMetadata, kube::Error> {
        let params = ListParams { limit: Some(self.page), ..self.params.clone() };
        let request = Request::new(self.url.as_str()).list(&params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let send = |text: String| async move {
            let kilobytes = u32::try_from(text.len() >> 10).unwrap_or(ROOM).clamp(1, ROOM);
            let room = Arc::clone(&self.room).acquire_many_owned(kilobytes).await.ok();
            // Who does not listen any more has ended this task.
            let _ = found.send(Text { text, _room: room });
        };
        list::page_as_there_is_room(&self.client, request, send).await.map_err(kube::Error::from)
    }
}
