//! One list, and the watch that goes on from there.

use std::{pin::pin, time::Duration};

use futures::TryStreamExt;
use kube::{
    Api, Client, Resource,
    api::{ListParams, Request, WatchEvent, WatchParams},
    runtime::watcher::{Error, Event},
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::span::Span;
use crate::list::{self, PageError};

/// First, most and fewest objects of a page. One that fails is asked for in smaller ones.
const PAGE: (u32, u32, u32) = (50, 500, 10);
/// A page of so many bytes is followed by a smaller one, for the sake of the API server, which has all of it in memory.
const LARGE_PAGE: usize = 16 << 20;
/// A page of so many bytes or fewer is followed by a larger one.
const SMALL_PAGE: usize = 4 << 20;
/// How much longer than its span a watch may be silent.
const PATIENCE: Duration = Duration::from_secs(5);

/// Some objects of one kind.
pub(super) struct ListAndWatch<K> {
    client: Client,
    api: Api<K>,
    selected: Selected,
    span: Span,
    page: u32,
    /// Where the watch goes on; `None` before all objects are known.
    version: Option<String>,
}

/// Which objects.
#[derive(Debug, Clone, Default)]
pub(super) struct Selected {
    /// A label selector.
    pub(super) labels: Option<String>,
    /// A field selector.
    pub(super) fields: Option<String>,
}

impl<K> ListAndWatch<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Send + 'static,
{
    pub(super) fn new(api: Api<K>, selected: Selected, span: Span) -> Self {
        let client = api.clone().into_client();
        Self { client, api, selected, span, page: PAGE.0, version: None }
    }

    /// Lists, or watches until the API server ends the watch in its time.
    pub(super) async fn go_on(&mut self, take: &mut impl FnMut(Event<K>)) -> Result<(), Error> {
        let Some(version) = self.version.take() else {
            self.version = Some(self.list(take).await?);
            return Ok(());
        };
        let mut reached = version;
        let watched = self.watch(&mut reached, take).await;
        self.version = Some(reached).filter(|_| !watched.as_ref().is_err_and(is_desynced));
        watched
    }

    /// Hands on all objects. The version of the list is where a watch goes on.
    async fn list(&mut self, take: &mut impl FnMut(Event<K>)) -> Result<String, Error> {
        take(Event::Init);
        let mut next = None;
        loop {
            let page = self.list_page(next, take).await;
            let page = page.inspect_err(|_| self.page = (self.page / 2).max(PAGE.2))?;
            if page.bytes > LARGE_PAGE {
                self.page = (self.page / 2).max(PAGE.2);
            } else if page.bytes <= SMALL_PAGE {
                self.page = (self.page * 2).min(PAGE.1);
            }
            next = Some(page.next).filter(|next| !next.is_empty());
            if next.is_some() {
                continue;
            }
            if page.resource_version.is_empty() {
                return Err(Error::NoResourceVersion);
            }
            take(Event::InitDone);
            return Ok(page.resource_version);
        }
    }

    async fn list_page(
        &self,
        next: Option<String>,
        take: &mut impl FnMut(Event<K>),
    ) -> Result<list::PageMetadata, Error> {
        let Selected { labels, fields } = self.selected.clone();
        let params = ListParams {
            label_selector: labels,
            field_selector: fields,
            limit: Some(self.page),
            continue_token: next,
            ..ListParams::default()
        };
        let request = Request::new(self.api.resource_url()).list(&params);
        let request = request.map_err(|error| Error::InitialListFailed(not_asked(error)))?;
        let mut unreadable = None;
        let page = list::page(&self.client, request, |item| match serde_json::from_str(item) {
            Ok(object) => take(Event::InitApply(object)),
            Err(error) => unreadable = Some(error),
        });
        let page = page.await.map_err(|error| Error::InitialListFailed(kube_error(error)))?;
        match unreadable {
            Some(error) => Err(Error::InitialListFailed(kube::Error::SerdeError(error))),
            None => Ok(page),
        }
    }

    /// Hands on what happens after this version, and says which was reached.
    async fn watch(
        &self,
        reached: &mut String,
        take: &mut impl FnMut(Event<K>),
    ) -> Result<(), Error> {
        let Selected { labels, fields } = self.selected.clone();
        let params = WatchParams {
            label_selector: labels,
            field_selector: fields,
            timeout: Some(self.span.seconds()),
            bookmarks: true,
            send_initial_events: false,
        };
        let request = Request::new(self.api.resource_url()).watch(&params, reached);
        let request = request.map_err(|error| Error::WatchStartFailed(not_asked(error)))?;
        let events = self.client.request_events::<K>(request).await;
        let mut events = pin!(events.map_err(Error::WatchStartFailed)?);
        let silence = Duration::from_secs(self.span.seconds().into()) + PATIENCE;
        // One that is silent for too long has ended, though the connection has not said so.
        while let Ok(event) = timeout(silence, events.try_next()).await {
            let (event, version) = match event {
                Err(error) if is_unreadable(&error) => {
                    // To ask for it again would bring it again, and nothing after it.
                    tracing::warn!(kind = %K::kind(&()), %error, "an event cannot be read and is left out");
                    continue;
                }
                Err(error) => return Err(Error::WatchFailed(error)),
                Ok(None) => break,
                Ok(Some(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                    let version = object.meta().resource_version.clone();
                    (Some(Event::Apply(object)), version)
                }
                Ok(Some(WatchEvent::Deleted(object))) => {
                    let version = object.meta().resource_version.clone();
                    (Some(Event::Delete(object)), version)
                }
                Ok(Some(WatchEvent::Bookmark(mark))) => {
                    (None, Some(mark.metadata.resource_version))
                }
                Ok(Some(WatchEvent::Error(status))) => {
                    return Err(Error::WatchError(status.boxed()));
                }
            };
            *reached = version.filter(|it| !it.is_empty()).ok_or(Error::NoResourceVersion)?;
            event.into_iter().for_each(&mut *take);
        }
        Ok(())
    }
}

/// Whether one event could not be read. The library takes a line that is no event for a status, of which it then has nothing.
fn is_unreadable(error: &kube::Error) -> bool {
    match error {
        kube::Error::SerdeError(_) => true,
        kube::Error::Api(status) => status.code == 0,
        _ => false,
    }
}

/// Whether what happened since is not to be had any more, so that all has to be listed again.
fn is_desynced(error: &Error) -> bool {
    match error {
        Error::WatchError(status) | Error::WatchStartFailed(kube::Error::Api(status)) => {
            status.code == 410
        }
        Error::NoResourceVersion => true,
        _ => false,
    }
}

const fn not_asked(error: kube::core::request::Error) -> kube::Error {
    kube::Error::BuildRequest(error)
}

fn kube_error(error: PageError) -> kube::Error {
    match error {
        PageError::Refused(error) => error,
        PageError::Broken(error) => kube::Error::ReadEvents(error),
        PageError::Unreadable(error) => kube::Error::SerdeError(error),
        PageError::Silent | PageError::NoList(_) => kube::Error::Service(error.into()),
    }
}

#[cfg(test)]
mod tests;
