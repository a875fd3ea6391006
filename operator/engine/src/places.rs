//! Places for requests under way: the [shares](crate::shares) between those that take them and those that give them back.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, futures::Notified},
    time::{Instant, timeout},
};
use trainjob_core::queue_position::QueuePriority;

use crate::{
    error::RequestError,
    shares::{Flow, PlaceId, Share, Shares},
};

/// How long whoever has a place waits with it for the turn of a request. A flow that was not asked before answers within
/// that time, so that work that has begun is seldom begun anew.
const WAIT_WITH_PLACE: Duration = Duration::from_secs(1);

/// A number of places, shared by all that send requests.
#[derive(Debug)]
pub struct Places<P: QueuePriority> {
    shares: Mutex<Shares<P>>,
    freed: Notify,
    called_back: Notify,
}

impl<P: QueuePriority> Places<P> {
    /// So many, at least [`FEWEST_PLACES`](crate::shares::FEWEST_PLACES).
    #[must_use]
    pub fn new(places: usize) -> Arc<Self> {
        let shares = Mutex::new(Shares::new(places));
        Arc::new(Self { shares, freed: Notify::new(), called_back: Notify::new() })
    }

    /// The rules, to ask several things of the same moment.
    pub(crate) fn shares(&self) -> MutexGuard<'_, Shares<P>> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends when a request is answered or a place given back from now on, once this was polled or enabled.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// Takes a place that the rules allow.
    pub(crate) fn take(
        self: &Arc<Self>,
        shares: &mut Shares<P>,
        priority: P,
        namespace: Arc<str>,
        share: Share,
        reserved: Option<Flow>,
    ) -> Place<P> {
        let id = shares.take(priority, namespace, share, reserved);
        Place(Arc::new(Held { places: Arc::clone(self), id }))
    }

    /// Calls a place back that is on loan.
    pub(crate) fn call_back(&self, shares: &mut Shares<P>, place: PlaceId) {
        shares.call_back(place);
        self.called_back.notify_waiters();
    }
}

/// A place of somebody who sends one request after the other.
///
/// A request that is not waited for any more keeps the place until it is answered, so that it counts as under way for as
/// long as it is.
#[derive(Debug)]
pub struct Place<P: QueuePriority>(Arc<Held<P>>);

#[derive(Debug)]
struct Held<P: QueuePriority> {
    places: Arc<Places<P>>,
    id: PlaceId,
}

impl<P: QueuePriority> Place<P> {
    /// Uses it for a request of this flow. False if too many of those are under way.
    #[must_use]
    pub fn enter(&self, flow: &Flow) -> bool {
        self.0.places.shares().enter(self.0.id, flow, Instant::now())
    }

    /// The same, but waits a moment for the turn of the request.
    pub async fn enter_soon(&self, flow: &Flow) -> bool {
        let enter = async {
            loop {
                let mut freed = pin!(self.0.places.freed());
                freed.as_mut().enable();
                if self.enter(flow) {
                    return;
                }
                freed.await;
            }
        };
        timeout(WAIT_WITH_PLACE, enter).await.is_ok()
    }

    /// The request is sent. It is under way until what this returns is dropped, and its answer is waited for with
    /// [`UnderWay::answer`]: a request that does not hear that its place is called back keeps others waiting.
    #[must_use]
    pub fn ask(&self) -> UnderWay<P> {
        self.0.places.shares().asked(self.0.id, Instant::now());
        UnderWay(Arc::clone(&self.0))
    }
}

impl<P: QueuePriority> Drop for Place<P> {
    fn drop(&mut self) {
        self.0.places.shares().leave(self.0.id);
    }
}

impl<P: QueuePriority> Drop for Held<P> {
    fn drop(&mut self) {
        self.places.shares().give_back(self.id);
        self.places.freed.notify_waiters();
    }
}

/// A request under way.
#[derive(Debug)]
pub struct UnderWay<P: QueuePriority>(Arc<Held<P>>);

impl<P: QueuePriority> UnderWay<P> {
    /// Waits for the answer of the request.
    ///
    /// # Errors
    ///
    /// It was given up, because its place was on loan and is needed.
    pub async fn answer<T>(self, request: impl Future<Output = T>) -> Result<T, RequestError> {
        tokio::select! {
            biased;
            answer = request => Ok(answer),
            waited = self.called_back() => Err(RequestError::TimedOut(waited)),
        }
    }

    /// Ends when the request is to be given up, with the time that it was under way.
    async fn called_back(&self) -> Duration {
        loop {
            let mut called_back = pin!(self.0.places.called_back.notified());
            called_back.as_mut().enable();
            if let Some(waited) = self.called_back_after() {
                return waited;
            }
            called_back.await;
        }
    }

    /// If the request is to be given up: how long it was under way.
    pub(crate) fn called_back_after(&self) -> Option<Duration> {
        self.0.places.shares().called_back(self.0.id, Instant::now())
    }
}

impl<P: QueuePriority> Drop for UnderWay<P> {
    fn drop(&mut self) {
        self.0.places.shares().answered(self.0.id, Instant::now());
        self.0.places.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::{task::yield_now, time::sleep};
    use trainjob_core::priority::Priority;

    use super::*;
    use crate::shares::{LOAN, Operation, Verb};

    /// So few that a flow which has not answered yet has one request at a time.
    const FEW: usize = 5;

    fn flow() -> Flow {
        Flow { namespace: "ns".into(), operation: Operation { verb: Verb::Get, kind: "jobsets" } }
    }

    fn take(places: &Arc<Places<Priority>>) -> Place<Priority> {
        places.take(&mut places.shares(), Priority::Live, "ns".into(), Share::Own, None)
    }

    #[tokio::test]
    async fn place_is_given_back_when_its_holder_and_its_request_are_gone() {
        let places = Places::new(64);
        let place = take(&places);
        assert!(place.enter(&flow()));
        let request = place.ask();
        drop(place);
        assert_eq!(places.shares().taken(), 1);
        drop(request);
        assert_eq!(places.shares().taken(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn request_is_given_up_when_its_place_called_back_after_and_the_next_one_is_not() {
        let places = Places::new(64);
        let place =
            places.take(&mut places.shares(), Priority::Live, "ns".into(), Share::OnLoan, None);
        let asked = tokio::spawn(place.ask().answer(pending::<()>()));
        sleep(LOAN).await;
        let now = Instant::now();
        let overdue = places.shares().overdue_loans(Priority::Stop, now).next().map(|it| it.0);
        places.call_back(&mut places.shares(), overdue.unwrap());
        let given_up = asked.await.unwrap();
        assert!(matches!(given_up, Err(RequestError::TimedOut(LOAN))), "{given_up:?}");
        let answer = place.ask().answer(async { yield_now().await });
        assert!(answer.await.is_ok(), "another request from this place");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_a_place_waits_a_moment_for_the_turn_of_a_request() {
        let places = Places::new(FEW);
        let first = take(&places);
        assert!(first.enter(&flow()));
        let request = first.ask();
        let second = take(&places);
        assert!(!second.enter(&flow()), "one request of a new flow at a time");
        assert!(!second.enter_soon(&flow()).await, "it is not answered");
        let waits = tokio::spawn(async move { second.enter_soon(&flow()).await });
        yield_now().await;
        drop(request);
        assert!(waits.await.unwrap());
    }
}
