//! How many bytes of bodies are held at the same time, and who waits for room.
//!
//! | length | room | if there is none |
//! |---|---|---|
//! | up to [`SMALL_BODY`] | its own, taken as the bytes come | refused |
//! | up to [`LONGEST_BODY`] | another, taken at once for the announced length | waits its turn; refused if too many wait |
//! | longer | none | refused |
//!
//! So what is held has a limit, whatever comes, and a small body, which a usual review is, never waits for a large one.
//! A small one takes room only for what has been sent of it: otherwise connections that announce a body and send nothing
//! would take all of it.

use std::{sync::Arc, time::Duration};

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::metrics::Rejection;

/// The longest body, in bytes: what the API server accepts of a request.
pub const LONGEST_BODY: usize = 3 * 1024 * 1024;
/// The longest small body, in bytes.
pub const SMALL_BODY: usize = 64 * 1024;
/// How long a body may take, its turn included. The API server waits ten seconds for the whole answer.
pub const BODY_TIME: Duration = Duration::from_secs(10);

/// How much of small bodies is held at the same time, in KiB.
const SMALL_BODIES: usize = 48 * 1024;
/// How much of large bodies is held at the same time, in KiB: four of the longest. One of them is judged, the others come
/// in meanwhile.
const LARGE_BODIES: usize = 12 * 1024;
/// How many large bodies may wait for room. What has come of them already is held by their connections.
const WAITING: usize = 8;

/// The room for bodies.
#[derive(Debug)]
pub struct Bodies {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    waiting: Semaphore,
}

/// A whole body. Its room is given back when it is dropped.
#[derive(Debug)]
pub struct Held {
    bytes: Bytes,
    _room: Room,
}

impl Held {
    /// What it says.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether judging it may take long.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.bytes.len() > SMALL_BODY
    }
}

impl Default for Bodies {
    fn default() -> Self {
        Self {
            small: Arc::new(Semaphore::new(SMALL_BODIES)),
            large: Arc::new(Semaphore::new(LARGE_BODIES)),
            waiting: Semaphore::new(WAITING),
        }
    }
}

impl Bodies {
    /// Reads a whole body.
    ///
    /// # Errors
    ///
    /// It is too long or too slow, breaks off, or there is no room for it.
    pub async fn read<B>(&self, body: B) -> Result<Held, Rejection>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        if body.size_hint().lower() > LONGEST_BODY as u64 {
            return Err(Rejection::TooLong);
        }
        timeout(BODY_TIME, self.collect(body)).await.unwrap_or(Err(Rejection::TooSlow))
    }

    /// Most bodies come in one piece, which then is not copied.
    async fn collect<B>(&self, mut body: B) -> Result<Held, Rejection>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(0);
        let mut room =
            if announced > SMALL_BODY { self.large(announced).await? } else { Room::default() };
        let (mut piece, mut pieces) = (Bytes::new(), Vec::new());
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame.map_err(|_| Rejection::BrokenOff)?.into_data() else { continue };
            let length = piece.len() + pieces.len() + frame.len();
            if length > LONGEST_BODY {
                return Err(Rejection::TooLong);
            }
            if length > room.bytes() {
                room = self.grown(room, length).await?;
            }
            if length == frame.len() {
                piece = frame;
                continue;
            }
            if pieces.is_empty() {
                // Of a small body, room is taken for what has come.
                pieces.reserve_exact(room.bytes().max(announced.min(SMALL_BODY)));
                pieces.extend_from_slice(&std::mem::take(&mut piece));
            }
            pieces.extend_from_slice(&frame);
        }
        let bytes = if pieces.is_empty() { piece } else { pieces.into() };
        Ok(Held { bytes, _room: room })
    }

    /// Room for so many bytes of a body that has some already. One that becomes large may become as long as any.
    async fn grown(&self, mut room: Room, length: usize) -> Result<Room, Rejection> {
        if length > SMALL_BODY {
            return self.large(LONGEST_BODY).await;
        }
        let more = kib(length).saturating_sub(room.kib());
        let more = u32::try_from(more).map_err(|_| Rejection::TooLong)?;
        let more = Arc::clone(&self.small).try_acquire_many_owned(more);
        let more = more.map_err(|_| Rejection::NoRoom)?;
        match &mut room.0 {
            Some(taken) => taken.merge(more),
            None => room.0 = Some(more),
        }
        Ok(room)
    }

    /// Room for a large body. Whoever came first gets it first.
    async fn large(&self, length: usize) -> Result<Room, Rejection> {
        let _place = self.waiting.try_acquire().map_err(|_| Rejection::NoRoom)?;
        let length = u32::try_from(kib(length)).map_err(|_| Rejection::TooLong)?;
        let room = Arc::clone(&self.large).acquire_many_owned(length).await;
        Ok(Room(Some(room.map_err(|_| Rejection::NoRoom)?)))
    }
}

/// The room of a body, given back when dropped.
#[derive(Debug, Default)]
struct Room(Option<OwnedSemaphorePermit>);

impl Room {
    fn kib(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    fn bytes(&self) -> usize {
        self.kib() * 1024
    }
}

const fn kib(bytes: usize) -> usize {
    bytes.div_ceil(1024)
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending};

    use futures::{FutureExt as _, future::join_all, stream};
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;

    use super::*;

    const LARGE_AT_ONCE: usize = LARGE_BODIES * 1024 / LONGEST_BODY;

    fn whole(length: usize) -> Full<Bytes> {
        Full::new(vec![b' '; length].into())
    }

    /// A body that does not say how long it is, in so many pieces.
    fn pieces(length: usize, pieces: usize) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let piece = Bytes::from(vec![b' '; length]);
        let frames = (0..pieces).map(move |_| Ok::<_, Infallible>(Frame::data(piece.clone())));
        StreamBody::new(stream::iter(frames))
    }

    /// A body of which nothing comes.
    fn silent() -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let never = pending::<Result<Frame<Bytes>, Infallible>>();
        StreamBody::new(Box::pin(stream::once(never)))
    }

    async fn held(bodies: &Bodies, length: usize) -> Held {
        bodies.read(whole(length)).await.unwrap()
    }

    #[tokio::test]
    async fn a_body_is_read_as_it_was_sent() {
        let bodies = Bodies::default();
        for (length, count, is_large) in [
            (0, 0, false),
            (1, 1, false),
            (SMALL_BODY / 4, 4, false),
            (SMALL_BODY, 1, false),
            (SMALL_BODY, 2, true),
            (LONGEST_BODY / 4, 4, true),
        ] {
            let held = bodies.read(pieces(length, count)).await.unwrap();
            assert_eq!(held.bytes().len(), length * count);
            assert_eq!(held.is_large(), is_large, "{length} {count}");
        }
        assert_eq!(bodies.small.available_permits(), SMALL_BODIES);
        assert_eq!(bodies.large.available_permits(), LARGE_BODIES);
    }

    #[tokio::test]
    async fn a_body_longer_than_the_api_server_accepts_is_refused() {
        let bodies = Bodies::default();
        let announced = bodies.read(whole(LONGEST_BODY + 1)).await.unwrap_err();
        let sent =
            bodies.read(pieces(SMALL_BODY, LONGEST_BODY / SMALL_BODY + 1)).await.unwrap_err();
        assert_eq!((announced, sent), (Rejection::TooLong, Rejection::TooLong));
    }

    #[tokio::test]
    async fn a_large_body_waits_for_room_and_a_small_one_does_not() {
        let bodies = Bodies::default();
        let mut large = Vec::new();
        for _ in 0..LARGE_AT_ONCE {
            large.push(held(&bodies, LONGEST_BODY).await);
        }
        let mut waits = Box::pin(bodies.read(whole(LONGEST_BODY)));
        assert!(futures::poll!(&mut waits).is_pending());
        held(&bodies, SMALL_BODY).await;
        large.pop();
        waits.await.unwrap();
    }

    #[tokio::test]
    async fn large_bodies_get_room_in_the_order_in_which_they_came() {
        let bodies = Bodies::default();
        let full = join_all((0..LARGE_AT_ONCE).map(|_| held(&bodies, LONGEST_BODY))).await;
        let mut first = Box::pin(bodies.read(whole(LONGEST_BODY)));
        assert!(futures::poll!(&mut first).is_pending());
        // There would be room for it sooner.
        let mut second = Box::pin(bodies.read(whole(SMALL_BODY + 1)));
        assert!(futures::poll!(&mut second).is_pending());
        drop(full);
        let first = first.now_or_never().unwrap();
        assert!(first.is_ok() && second.await.is_ok());
    }

    #[tokio::test]
    async fn only_so_many_large_bodies_wait() {
        let bodies = Bodies::default();
        let full = join_all((0..LARGE_AT_ONCE).map(|_| held(&bodies, LONGEST_BODY))).await;
        let mut waiting = join_all((0..WAITING).map(|_| bodies.read(whole(LONGEST_BODY))));
        assert!(futures::poll!(&mut waiting).is_pending());
        let refused = bodies.read(whole(LONGEST_BODY)).now_or_never().unwrap();
        assert_eq!(refused.unwrap_err(), Rejection::NoRoom);
        drop((full, waiting));
        held(&bodies, LONGEST_BODY).await;
    }

    #[tokio::test]
    async fn small_bodies_have_a_limit_together_and_take_room_only_for_what_has_come() {
        let bodies = Bodies::default();
        let mut announced: Vec<_> =
            (0..SMALL_BODIES).map(|_| Box::pin(bodies.read(silent()))).collect();
        for silent in &mut announced {
            assert!(futures::poll!(silent).is_pending());
        }
        let all = SMALL_BODIES * 1024 / SMALL_BODY;
        let full = join_all((0..all).map(|_| held(&bodies, SMALL_BODY))).await;
        assert_eq!(bodies.read(whole(1)).await.unwrap_err(), Rejection::NoRoom);
        drop(full);
        held(&bodies, 1).await;
    }
}
