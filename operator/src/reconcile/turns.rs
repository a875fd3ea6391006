//! Jobs with long texts are planned one at a time.
//!
//! A runtime of the most parts that are read, and the JobSet that is built of it, take more than half of the memory that
//! the chart allows, for as long as a plan is made.

use std::{pin::pin, time::Duration};

use tokio::{
    sync::{Mutex, MutexGuard, watch},
    time::sleep,
};
use trainjob_core::priority::Priority;

/// So many bytes may be read at any time: at worst, all of them empty volumes, what is built of them takes tens of megabytes.
const SHORT: usize = 64 << 10;
/// How often a job that waits is asked whether its deadline has come due.
const LOOK: Duration = Duration::from_secs(1);

/// Whose turn it is: what enforces a deadline goes first, all else in the order in which it came.
#[derive(Debug, Default)]
pub(super) struct Turns {
    turn: Mutex<()>,
    /// Who is the next of those that wait in line.
    head: Mutex<()>,
    /// How many wait that enforce a deadline.
    stops: watch::Sender<usize>,
}

impl Turns {
    /// Waits for the turn of a job with texts of so many bytes, if it has to. Its priority may rise meanwhile.
    pub(super) async fn wait(
        &self,
        bytes: usize,
        priority: impl Fn() -> Option<Priority>,
    ) -> Option<MutexGuard<'_, ()>> {
        if bytes <= SHORT {
            return None;
        }
        Some(match self.wait_in_line(priority).await {
            Some(turn) => turn,
            None => self.go_first().await,
        })
    }

    /// `None`: it enforces a deadline, and does not have to.
    async fn wait_in_line(
        &self,
        priority: impl Fn() -> Option<Priority>,
    ) -> Option<MutexGuard<'_, ()>> {
        let mut line = pin!(self.after_stops());
        while priority() != Some(Priority::Stop) {
            tokio::select! {
                turn = &mut line => return Some(turn),
                () = sleep(LOOK) => {}
            }
        }
        None
    }

    async fn after_stops(&self) -> MutexGuard<'_, ()> {
        let mut stops = self.stops.subscribe();
        let _head = self.head.lock().await;
        loop {
            let turn = self.turn.lock().await;
            if *stops.borrow_and_update() == 0 {
                return turn;
            }
            drop(turn);
            // It cannot fail: the sender is not dropped before this.
            let _ = stops.wait_for(|waiting| *waiting == 0).await;
        }
    }

    async fn go_first(&self) -> MutexGuard<'_, ()> {
        let _waits = Waits::new(&self.stops);
        self.turn.lock().await
    }
}

/// One that is counted as long as it waits.
struct Waits<'a>(&'a watch::Sender<usize>);

impl<'a> Waits<'a> {
    fn new(stops: &'a watch::Sender<usize>) -> Self {
        stops.send_modify(|waiting| *waiting = waiting.saturating_add(1));
        Self(stops)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    };

    use tokio::task::JoinSet;

    use super::*;

    type Order = Arc<std::sync::Mutex<Vec<u8>>>;

    /// A job that waits, and is noted when its turn comes.
    async fn waits(
        (turns, order): (Arc<Turns>, Order),
        number: u8,
        priority: impl Fn() -> Priority + Send + Sync + 'static,
    ) {
        let turn = turns.wait(SHORT + 1, || Some(priority())).await;
        assert!(turn.is_some());
        order.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    #[tokio::test(start_paused = true)]
    async fn what_enforces_a_deadline_goes_before_what_has_waited_longer() {
        let shared = <(Arc<Turns>, Order)>::default();
        let (turns, order) = &shared;
        let first = turns.wait(SHORT + 1, || None).await;
        assert!(turns.wait(SHORT, || None).await.is_none(), "a short one has no turn");
        let is_due = Arc::new(AtomicBool::new(false));
        let mut jobs = JoinSet::new();
        for number in 1..=3 {
            jobs.spawn(waits(shared.clone(), number, || Priority::Live));
        }
        let due = Arc::clone(&is_due);
        let rises =
            move || if due.load(Ordering::Relaxed) { Priority::Stop } else { Priority::Live };
        jobs.spawn(waits(shared.clone(), 4, rises));
        jobs.spawn(waits(shared.clone(), 5, || Priority::Stop));
        sleep(LOOK / 2).await;
        is_due.store(true, Ordering::Relaxed);
        sleep(LOOK).await;
        drop(first);
        jobs.join_all().await;
        let order = order.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(*order, [5, 4, 1, 2, 3]);
    }
}
