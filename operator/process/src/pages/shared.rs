//! A page that takes long to make: made at most once a second, whoever asks.
//!
//! Metrics look at all jobs of a cluster. Many readers, or one that asks without a break, must not make the program do
//! that all the time. So who asks within [`KEPT`] gets the same page again, and who asks while it is made waits for it.
//! It is made to its end even if whoever asked first goes away: otherwise the next would begin from the start.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Mutex,
    task::{JoinError, spawn_blocking},
    time::Instant,
};

/// How long a page is served again after it was made.
const KEPT: Duration = Duration::from_secs(1);

/// The page that was made last.
pub(super) struct Shared<P>(Arc<Mutex<Option<Made<P>>>>);

struct Made<P> {
    path: String,
    page: P,
    at: Instant,
}

impl<P> Default for Shared<P> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<P: Clone + Send + 'static> Shared<P> {
    /// The page at a path, at most [`KEPT`] old; `None` where there is none. `make` makes it, on a thread for what takes
    /// long.
    ///
    /// # Errors
    ///
    /// Making it panicked.
    pub(super) async fn at(
        &self,
        path: String,
        make: impl FnOnce(&str) -> Option<P> + Send + 'static,
    ) -> Result<Option<P>, JoinError> {
        let last = Arc::clone(&self.0);
        // As a task, which goes on when nobody waits for it any more.
        let page = tokio::spawn(async move {
            let mut last = last.lock().await;
            if let Some(made) = &*last
                && made.path == path
                && made.at.elapsed() < KEPT
            {
                return Ok(Some(made.page.clone()));
            }
            let (path, page) = spawn_blocking(move || {
                let page = make(&path);
                (path, page)
            })
            .await?;
            if let Some(page) = &page {
                *last = Some(Made { path, page: page.clone(), at: Instant::now() });
            }
            Ok(page)
        });
        page.await.flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex as Lock,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    };

    use futures::future::join_all;
    use tokio::time::advance;

    use super::*;

    /// A page that says how often it was made. Making it waits for a permit.
    struct Counted {
        shared: Shared<usize>,
        times: AtomicUsize,
        permits: Lock<Receiver<()>>,
    }

    impl Counted {
        fn new() -> (Arc<Self>, Sender<()>) {
            let (permit, permits) = channel();
            let (shared, times) = (Shared::default(), AtomicUsize::new(0));
            (Arc::new(Self { shared, times, permits: Lock::new(permits) }), permit)
        }

        async fn at(self: &Arc<Self>, path: &str) -> Option<usize> {
            let counted = Arc::clone(self);
            let make = move |path: &str| {
                (path == "/metrics").then(|| {
                    counted.permits.lock().unwrap().recv().unwrap();
                    counted.times.fetch_add(1, Ordering::Relaxed) + 1
                })
            };
            self.shared.at(path.to_owned(), make).await.unwrap()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_made_once_a_second_whoever_asks() {
        let (page, permit) = Counted::new();
        for times in 1..=3 {
            permit.send(()).unwrap();
            let readers = (0..50).map(|_| page.at("/metrics"));
            assert_eq!(join_all(readers).await, vec![Some(times); 50]);
            advance(Duration::from_millis(999)).await;
            assert_eq!(page.at("/metrics").await, Some(times));
            assert_eq!(page.at("/other").await, None);
            advance(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn a_page_whose_reader_goes_away_is_made_once_all_the_same() {
        let (page, permit) = Counted::new();
        for _ in 0..3 {
            // It has begun to wait, and then it is dropped.
            let mut reader = Box::pin(page.at("/metrics"));
            assert!(futures::poll!(&mut reader).is_pending());
        }
        permit.send(()).unwrap();
        assert_eq!(page.at("/metrics").await, Some(1));
    }
}
