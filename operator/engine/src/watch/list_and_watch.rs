//! One list, and the watch that goes on from there.

use std::{pin::pin, time::Duration};

use futures::TryStreamExt;
use kube::{
    Api, Client, Resource,
    api::{ListParams, Request, WatchEvent, WatchParams},
    runtime::watcher::{Error, Event},
};
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc::unbounded_channel, task::JoinSet, time::timeout};

use super::{
    pages::{Fetched, Pages, Text},
    span::Span,
};
use crate::list::FIRST_PAGE;

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

/// What a request shows.
#[derive(Debug)]
pub(super) enum Sign<K> {
    /// Something that happened.
    Event(Event<K>),
    /// The API server has begun to answer a watch, or sent a bookmark: nothing happened, and the watch works.
    Alive,
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
        Self { client, api, selected, span, page: FIRST_PAGE, version: None }
    }

    /// Lists, or watches until the API server ends the watch in its time.
    pub(super) async fn go_on(&mut self, take: &mut impl FnMut(Sign<K>)) -> Result<(), Error> {
        let Some(version) = self.version.take() else {
            self.version = Some(self.list(&mut |event| take(Sign::Event(event))).await?);
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
        let (found, mut texts) = unbounded_channel();
        let Selected { labels, fields } = self.selected.clone();
        let params =
            ListParams { label_selector: labels, field_selector: fields, ..ListParams::default() };
        let pages = Pages::new(self.client.clone(), self.api.resource_url(), params, self.page);
        // It ends with this.
        let mut fetching = JoinSet::new();
        fetching.spawn(pages.fetch(found));
        while let Some(Text { text, .. }) = texts.recv().await {
            match serde_json::from_str(&text) {
                Ok(object) => take(Event::InitApply(object)),
                Err(error) => {
                    return Err(Error::InitialListFailed(kube::Error::SerdeError(error)));
                }
            }
        }
        let fetched = fetching.join_next().await.and_then(Result::ok);
        let Some(Fetched { page, version }) = fetched else {
            return Err(Error::NoResourceVersion);
        };
        self.page = page;
        let version = version.map_err(Error::InitialListFailed)?;
        if version.is_empty() {
            return Err(Error::NoResourceVersion);
        }
        take(Event::InitDone);
        Ok(version)
    }

    /// Hands on what happens after this version, and says which was reached.
    async fn watch(
        &self,
        reached: &mut String,
        take: &mut impl FnMut(Sign<K>),
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
        take(Sign::Alive);
        let silence = Duration::from_secs(self.span.seconds().into()) + PATIENCE;
        // One that is silent for too long has ended, though the connection has not said so.
        while let Ok(event) = timeout(silence, events.try_next()).await {
            let (sign, version) = match event {
                Err(error) if is_unreadable(&error) => {
                    // To ask for it again would bring it again, and nothing after it.
                    tracing::warn!(kind = %K::kind(&()), %error, "an event cannot be read and is left out");
                    continue;
                }
                Err(error) => return Err(Error::WatchFailed(error)),
                Ok(None) => break,
                Ok(Some(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                    let version = object.meta().resource_version.clone();
                    (Sign::Event(Event::Apply(object)), version)
                }
                Ok(Some(WatchEvent::Deleted(object))) => {
                    let version = object.meta().resource_version.clone();
                    (Sign::Event(Event::Delete(object)), version)
                }
                Ok(Some(WatchEvent::Bookmark(mark))) => {
                    (Sign::Alive, Some(mark.metadata.resource_version))
                }
                Ok(Some(WatchEvent::Error(status))) => {
                    return Err(Error::WatchError(status.boxed()));
                }
            };
            *reached = version.filter(|it| !it.is_empty()).ok_or(Error::NoResourceVersion)?;
            take(sign);
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

#[cfg(test)]
mod tests;
