//! Ctrl-C, and what else asks a program to end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Waits until this program is asked to end.
pub async fn stopped() -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
