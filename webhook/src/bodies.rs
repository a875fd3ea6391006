//! How many bytes of bodies are held at the same time, and who waits for room.
//!
//! | length | room | if there is none |
//! |---|---|---|
//! | up to [`SMALL_BODY`] | its own, taken as the bytes come | takes that of the [unfinished] one that began first |
//! | up to [`LONGEST_BODY`] | another, taken at once for the announced length | waits its turn; refused if too many wait |
//! | longer | none | refused |
//!
//! So what is held has a limit, whatever comes, and a small body, which a usual review is, never waits for a large one.
//! A small one takes room only for what has been sent of it: otherwise connections that announce a body and send nothing
//! would take all of it.

mod unfinished;

use std::{future::pending, sync::Arc, time::Duration};

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use trainjob_engine::stripped::object_count;

use self::unfinished::{Coming, Unfinished};
use crate::metrics::Rejection;

/// The longest body, in bytes: an object as long as the API server accepts, as it is and as it is to be.
pub const LONGEST_BODY: usize = 6 * 1024 * 1024;
/// The longest small body, in bytes.
pub const SMALL_BODY: usize = 64 * 1024;
/// How many JSON objects a body may consist of that is not large. What usual objects consist of, managed fields and all, is
/// a tenth of that.
const MANY_PARTS: usize = 2_000;
/// How long a body may take, its turn included. The API server waits ten seconds for the whole answer.
pub const BODY_TIME: Duration = Duration::from_secs(10);

/// How much of small bodies is held at the same time, in KiB.
const SMALL_BODIES: usize = 48 * 1024;
/// How much of large bodies is held at the same time, in KiB: two of the longest. One of them is judged, the other comes
/// in meanwhile.
const LARGE_BODIES: usize = 12 * 1024;
/// How many large bodies may wait for room. What has come of them already is held by their connections.
const WAITING: usize = 8;

/// The room for bodies.
#[derive(Debug)]
pub struct Bodies {
    small: Arc<Semaphore>,
    unfinished: Unfinished,
    large: Arc<Semaphore>,
    waiting: Semaphore,
}

/// A whole body. Its room is given back when it is dropped.
#[derive(Debug)]
pub struct Held {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Held {
    /// What it says.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether judging it may take long, or much memory: a part of two bytes may be kilobytes as a value.
    #[must_use]
    pub fn is_large(&self) -> bool {
        let has_many_parts = || {
            let text = std::str::from_utf8(&self.bytes);
            text.is_ok_and(|text| object_count(text) > MANY_PARTS)
        };
        let length = self.bytes.len();
        length > SMALL_BODY || (length > 2 * MANY_PARTS && has_many_parts())
    }
}

impl Default for Bodies {
    fn default() -> Self {
        Self {
            small: Arc::new(Semaphore::new(SMALL_BODIES)),
            unfinished: Unfinished::default(),
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
            if announced > SMALL_BODY { self.large(announced).await? } else { Room::None };
        let (mut piece, mut pieces) = (Bytes::new(), Vec::new());
        loop {
            let frame = tokio::select! {
                biased;
                () = room.gives_way() => return Err(Rejection::NoRoom),
                frame = body.frame() => frame,
            };
            let Some(frame) = frame else { break };
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
        Ok(Held { bytes, _room: room.complete()? })
    }

    /// Room for so many bytes of a body that has some already. One that becomes large may become as long as any.
    async fn grown<'a>(&'a self, room: Room<'a>, length: usize) -> Result<Room<'a>, Rejection> {
        if length > SMALL_BODY {
            return self.large(LONGEST_BODY).await;
        }
        let all = kib(length);
        let more = self.small(all.saturating_sub(room.bytes() / 1024))?;
        let coming = match room {
            Room::Small(coming, _) => coming.grow(more).then_some(coming),
            Room::None | Room::Large(_) => Some(self.unfinished.begin(more)),
        };
        coming.map(|coming| Room::Small(coming, all)).ok_or(Rejection::NoRoom)
    }

    /// Room for so many KiB of a small body.
    fn small(&self, kib: usize) -> Result<OwnedSemaphorePermit, Rejection> {
        let kib = u32::try_from(kib).map_err(|_| Rejection::TooLong)?;
        loop {
            if let Ok(room) = Arc::clone(&self.small).try_acquire_many_owned(kib) {
                return Ok(room);
            }
            if !self.unfinished.first_gives_way() {
                return Err(Rejection::NoRoom);
            }
        }
    }

    /// Room for a large body. Whoever came first gets it first.
    async fn large(&self, length: usize) -> Result<Room<'_>, Rejection> {
        let _place = self.waiting.try_acquire().map_err(|_| Rejection::NoRoom)?;
        let length = u32::try_from(kib(length)).map_err(|_| Rejection::TooLong)?;
        let room = Arc::clone(&self.large).acquire_many_owned(length).await;
        Ok(Room::Large(room.map_err(|_| Rejection::NoRoom)?))
    }
}

/// The room of a body that is coming in, given back when dropped.
#[derive(Debug)]
enum Room<'a> {
    None,
    /// So many KiB.
    Small(Coming<'a>, usize),
    Large(OwnedSemaphorePermit),
}

impl Room<'_> {
    fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Small(_, kib) => kib * 1024,
            Self::Large(room) => room.num_permits() * 1024,
        }
    }

    /// Waits until others need the room more.
    async fn gives_way(&self) {
        match self {
            Self::Small(coming, _) => coming.gives_way().await,
            Self::None | Self::Large(_) => pending().await,
        }
    }

    /// That of the whole body.
    fn complete(self) -> Result<Option<OwnedSemaphorePermit>, Rejection> {
        match self {
            Self::None => Ok(None),
            Self::Small(coming, _) => coming.complete().map(Some).ok_or(Rejection::NoRoom),
            Self::Large(room) => Ok(Some(room)),
        }
    }
}

const fn kib(bytes: usize) -> usize {
    bytes.div_ceil(1024)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{FutureExt as _, StreamExt as _, future::join_all, stream};
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

    /// A body of which so much comes, and no more.
    fn beginning(length: usize) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let frame = Frame::data(Bytes::from(vec![b' '; length]));
        let never = stream::once(pending::<Result<Frame<Bytes>, Infallible>>());
        StreamBody::new(Box::pin(stream::iter([Ok(frame)]).chain(never)))
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
    async fn short_body_of_many_parts_is_large() {
        let bodies = Bodies::default();
        for (parts, is_large) in [(MANY_PARTS, false), (MANY_PARTS + 1, true)] {
            for text in ["{}, ".repeat(parts), "\u{e9}{} ".repeat(parts)] {
                let held = bodies.read(Full::new(text.into())).await.unwrap();
                assert_eq!(held.is_large(), is_large, "{parts}");
            }
        }
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

    #[tokio::test(start_paused = true)]
    async fn beginnings_of_bodies_keep_no_whole_one_out() {
        let bodies = Bodies::default();
        let all = SMALL_BODIES * 1024 / SMALL_BODY;
        let mut begun: Vec<_> =
            (0..all).map(|_| Box::pin(bodies.read(beginning(SMALL_BODY)))).collect();
        for beginning in &mut begun {
            assert!(futures::poll!(beginning).is_pending());
        }
        // Within their grace they have it for certain.
        assert_eq!(bodies.read(whole(1)).await.unwrap_err(), Rejection::NoRoom);
        tokio::time::advance(unfinished::GRACE).await;
        let whole = held(&bodies, 1).await;
        let gave_way: Vec<_> =
            begun.iter_mut().map(|body| body.now_or_never().map(Result::unwrap_err)).collect();
        assert_eq!(gave_way.iter().position(|it| *it == Some(Rejection::NoRoom)), Some(0));
        assert_eq!(gave_way.iter().flatten().count(), 1);
        drop((whole, begun));
        assert_eq!(bodies.small.available_permits(), SMALL_BODIES);
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
