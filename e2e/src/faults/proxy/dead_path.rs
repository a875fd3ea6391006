//! Connections whose path dies without a word.
//!
//! The kernel drops every packet that comes for the proxy's socket before TCP sees it, so the client gets no
//! acknowledgement; and the proxy sends nothing more. To the client it looks like a machine that has lost its power.

use std::future::pending;
use std::io;

use socket2::{SockFilter, SockRef, Socket};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Drops every packet: `BPF_RET | BPF_K`, of which 0 bytes are kept.
const DROP_ALL: SockFilter = SockFilter::new(0x06, 0, 0, 0);

/// The paths of all connections.
#[derive(Debug, Default)]
pub(super) struct Paths(watch::Sender<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// How often paths were broken.
    breaks: usize,
    /// Connections that were opened since.
    open: usize,
    /// Connections that are to be broken and are not yet.
    to_break: usize,
}

/// The path of one connection. Dropped, the connection is over.
#[derive(Debug)]
pub(super) struct Path<'a> {
    paths: &'a Paths,
    /// A second handle. It ends with the connection, which it would keep open otherwise.
    socket: Socket,
    breaks: usize,
}

impl Paths {
    /// The path of a connection that was opened.
    pub(super) fn opened(&self, stream: &TcpStream) -> io::Result<Path<'_>> {
        let socket = SockRef::from(stream).try_clone()?;
        let mut breaks = 0;
        self.0.send_modify(|counts| {
            counts.open += 1;
            breaks = counts.breaks;
        });
        Ok(Path { paths: self, socket, breaks })
    }

    /// Breaks the paths of all connections that are open; returns once that is done.
    pub(super) async fn break_all(&self) {
        self.0.send_modify(|counts| {
            counts.breaks += 1;
            counts.to_break += std::mem::take(&mut counts.open);
        });
        // Its sender lives as long as this.
        let _ = self.0.subscribe().wait_for(|counts| counts.to_break == 0).await;
    }
}

impl Path<'_> {
    /// Serves a connection, until its path is broken; then nothing comes of it any more, for ever.
    pub(super) async fn serve(mut self, serving: impl Future<Output = ()>) {
        let mut counts = self.paths.0.subscribe();
        let breaks = self.breaks;
        tokio::select! {
            () = serving => return,
            // Its sender lives as long as this.
            _ = counts.wait_for(|counts| counts.breaks > breaks) => {}
        }
        // A socket that has no more packets is as dead.
        let _ = self.socket.attach_filter(&[DROP_ALL]);
        self.over();
        pending::<()>().await;
    }

    /// It is counted no longer.
    fn over(&mut self) {
        let own = self.breaks;
        self.breaks = usize::MAX;
        self.paths.0.send_modify(|counts| match own {
            usize::MAX => {}
            own if own < counts.breaks => counts.to_break -= 1,
            _ => counts.open -= 1,
        });
    }
}

impl Drop for Path<'_> {
    fn drop(&mut self) {
        self.over();
    }
}
