//! Jobs with long texts are planned one at a time.
//!
//! A runtime of the most parts that are read, and the JobSet that is built of it, take more than half of the memory that
//! the chart allows, for as long as a plan is made.

use tokio::sync::{Mutex, MutexGuard};

/// So many bytes may be read at any time: at worst, all of them empty volumes, what is built of them takes tens of megabytes.
const SHORT: usize = 64 << 10;

/// Whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<()>);

impl Turns {
    /// Waits for the turn of a job with texts of so many bytes, if it has to.
    pub(super) async fn wait(&self, bytes: usize) -> Option<MutexGuard<'_, ()>> {
        if bytes <= SHORT { None } else { Some(self.0.lock().await) }
    }
}
