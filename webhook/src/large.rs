//! Large reviews: judged one at a time, on a thread that yields to all others.
//!
//! A review of three megabytes takes a hundred times as long as a usual one, and is no more important; so does one of a job
//! whose runtime has thousands of parts. Among the tasks of the server it would hold up all that wait for the same thread,
//! and several at once would take every processor, and the memory. So large ones have one thread together, with the lowest
//! priority that the system has: it runs when no usual review needs the processor.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, Sender, channel},
};

use rustix::process::setpriority_process;
use tokio::{runtime::Handle, sync::oneshot};

/// The priority of the thread: the lowest niceness that there is. On Linux each thread has its own.
const NICENESS: i32 = 19;

type Job = Box<dyn FnOnce() + Send>;

/// The thread that judges large reviews. It ends when this is dropped.
#[derive(Debug)]
pub struct LargeReviews(Sender<Job>);

impl LargeReviews {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// There is no thread for it.
    pub fn start() -> io::Result<Self> {
        let (queue, jobs) = channel();
        std::thread::Builder::new().name("large-reviews".to_owned()).spawn(move || work(&jobs))?;
        Ok(Self(queue))
    }

    /// Judges one when its turn comes. `None` if that failed by a defect of the program. A review that nobody waits for
    /// any more when its turn comes is not judged.
    pub async fn judge<T: Send + 'static>(
        &self,
        review: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let runtime = Handle::current();
        let job = move || {
            if !answer.is_closed() {
                // Whoever asked may have gone away meanwhile.
                let _ = answer.send(runtime.block_on(review));
            }
        };
        self.0.send(Box::new(job)).ok()?;
        answered.await.ok()
    }
}

fn work(jobs: &Receiver<Job>) {
    // Always allowed; and if it were not, large reviews would only be as important as others.
    let _ = setpriority_process(None, NICENESS);
    while let Ok(job) = jobs.recv() {
        // The panic is logged; whoever waits is told by the end of the channel, as with a task.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use futures::future::join_all;
    use rustix::process::getpriority_process;
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn large_reviews_are_judged_one_at_a_time() {
        let (reviews, under_way) = (LargeReviews::start().unwrap(), Arc::new(AtomicUsize::new(0)));
        let review = |number: usize| {
            let under_way = Arc::clone(&under_way);
            reviews.judge(async move {
                let others = under_way.fetch_add(1, Ordering::SeqCst);
                yield_now().await;
                under_way.fetch_sub(1, Ordering::SeqCst);
                (number, others)
            })
        };
        let judged = join_all((0..20).map(review)).await;
        assert_eq!(judged, (0..20).map(|number| Some((number, 0))).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn they_yield_to_all_other_threads() {
        let own = getpriority_process(None).unwrap();
        let judged =
            LargeReviews::start().unwrap().judge(async { getpriority_process(None) }).await;
        assert_eq!(judged.unwrap().unwrap(), NICENESS);
        assert_eq!(getpriority_process(None).unwrap(), own);
    }

    #[tokio::test]
    async fn a_review_that_panics_takes_no_other_along() {
        let reviews = LargeReviews::start().unwrap();
        assert_eq!(reviews.judge(async { assert_eq!(1, 2) }).await, None);
        assert_eq!(reviews.judge(async { 3 }).await, Some(3));
    }

    #[tokio::test]
    async fn a_review_that_nobody_waits_for_is_not_judged() {
        let reviews = LargeReviews::start().unwrap();
        let (go, wait) = oneshot::channel::<()>();
        let mut first = Box::pin(reviews.judge(wait));
        assert!(futures::poll!(&mut first).is_pending());
        let judged = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&judged);
        let mut second =
            Box::pin(reviews.judge(async move { count.fetch_add(1, Ordering::SeqCst) }));
        assert!(futures::poll!(&mut second).is_pending());
        drop(second);
        go.send(()).unwrap();
        assert!(first.await.is_some());
        // Those after it come after it.
        assert_eq!(reviews.judge(async {}).await, Some(()));
        assert_eq!(judged.load(Ordering::SeqCst), 0);
    }
}
