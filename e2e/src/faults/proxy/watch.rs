//! The reply to a watch: passed on as it comes, until it is frozen.

use std::sync::Arc;

use futures::stream::{self, Stream};
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame};
use tokio::sync::watch::Receiver;

use super::fault::{Fault, Rule};
use super::log::Entry;

/// What is left of a reply.
struct Rest<B> {
    body: B,
    fault: Option<Arc<Rule>>,
    ends: Receiver<()>,
    // The call lasts as long as its reply.
    _entry: Entry,
}

/// Passes the frames of a reply on, and none while the fault freezes it. Ends it when `ends` changes.
pub(super) fn passed<B>(
    body: B,
    rule: Option<Arc<Rule>>,
    ends: Receiver<()>,
    entry: Entry,
) -> impl Stream<Item = Result<Frame<Bytes>, B::Error>>
where
    B: Body<Data = Bytes> + Unpin,
{
    let fault = rule.filter(|rule| rule.fault == Fault::FreezeWatch);
    stream::unfold(Rest { body, fault, ends, _entry: entry }, |mut rest| async {
        let frame = next(&mut rest).await?;
        Some((frame, rest))
    })
}

async fn next<B>(rest: &mut Rest<B>) -> Option<Result<Frame<Bytes>, B::Error>>
where
    B: Body<Data = Bytes> + Unpin,
{
    loop {
        let Some(fault) = &rest.fault else {
            return tokio::select! {
                Ok(()) = rest.ends.changed() => None,
                frame = rest.body.frame() => frame,
            };
        };
        tokio::select! {
            biased;
            _held = fault.frozen() => fault.thawed().await,
            Ok(()) = rest.ends.changed() => return None,
            frame = rest.body.frame() => return frame,
        }
    }
}
