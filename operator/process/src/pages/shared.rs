//! A page that takes long to make: made at most once a second, whoever asks.
//!
//! Metrics look at all jobs of a cluster. Many readers, or one that asks without a break, must not make the program do
//! that all the time. So who asks within [`KEPT`] gets the same page again, and who asks while it is made waits for it.
//! It is made to its end even if whoever asked first goes away: otherwise the next would begin from the start.

use std::{sync::Arc, time::Duration};

use hyper::StatusCode;
use tokio::{
    sync::Mutex,
    task::{JoinError, spawn_blocking},
    time::Instant,
};

use super::{Page, Pages};

/// How long a page is served again after it was made.
const KEPT: Duration = Duration::from_secs(1);

/// The page that was made last.
#[derive(Default)]
pub(super) struct SharedPage(Arc<Mutex<Option<Made>>>);

struct Made {
    path: String,
    page: Page,
    at: Instant,
}

impl SharedPage {
    /// The page at a path, at most [`KEPT`] old; `None` where there is none.
    pub(super) async fn at(&self, pages: &Arc<dyn Pages>, path: String) -> Option<Page> {
        let (last, pages) = (Arc::clone(&self.0), Arc::clone(pages));
        // As a task, which goes on when nobody waits for it any more.
        let made = tokio::spawn(async move {
            let mut last = last.lock().await;
            if let Some(made) = &*last
                && made.path == path
                && made.at.elapsed() < KEPT
            {
                return Ok(Some(made.page.clone()));
            }
            let asked = path.clone();
            let page = spawn_blocking(move || pages.at(&asked)).await?;
            if let Some(page) = &page {
                *last = Some(Made { path, page: page.clone(), at: Instant::now() });
            }
            Ok::<_, JoinError>(page)
        });
        made.await.flatten().unwrap_or_else(|error| {
            Some(Page::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
        })
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
        times: AtomicUsize,
        permits: Lock<Receiver<()>>,
    }

    impl Pages for Counted {
        fn at(&self, path: &str) -> Option<Page> {
            if path != "/metrics" {
                return None;
            }
            self.permits.lock().unwrap().recv().unwrap();
            let times = self.times.fetch_add(1, Ordering::Relaxed) + 1;
            Some(Page::text(StatusCode::OK, times.to_string()))
        }
    }

    fn counted() -> (Arc<dyn Pages>, Sender<()>) {
        let (permit, permits) = channel();
        (Arc::new(Counted { times: AtomicUsize::new(0), permits: Lock::new(permits) }), permit)
    }

    fn made(times: usize) -> Page {
        Page::text(StatusCode::OK, times.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_made_once_a_second_whoever_asks() {
        let (shared, (pages, permit)) = (SharedPage::default(), counted());
        for times in 1..=3 {
            permit.send(()).unwrap();
            let readers = (0..50).map(|_| shared.at(&pages, "/metrics".to_owned()));
            assert_eq!(join_all(readers).await, vec![Some(made(times)); 50]);
            advance(Duration::from_millis(999)).await;
            assert_eq!(shared.at(&pages, "/metrics".to_owned()).await, Some(made(times)));
            assert_eq!(shared.at(&pages, "/other".to_owned()).await, None);
            advance(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn a_page_whose_reader_goes_away_is_made_once_all_the_same() {
        let (shared, (pages, permit)) = (SharedPage::default(), counted());
        for _ in 0..3 {
            let reader = shared.at(&pages, "/metrics".to_owned());
            // It has begun to wait, and then it is dropped.
            let mut reader = Box::pin(reader);
            assert!(futures::poll!(&mut reader).is_pending());
        }
        permit.send(()).unwrap();
        assert_eq!(shared.at(&pages, "/metrics".to_owned()).await, Some(made(1)));
    }
}
