//! The body of a request, whole.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT};
use axum::http::{HeaderMap, HeaderValue, Request, Response};
use bytes::BytesMut;
use ctx_core::{Error, ErrorKind};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tower::Layer;
use tower::ServiceExt;
use tower_http::decompression::RequestDecompressionLayer;

use super::Proxy;

/// So long a client may take to send a body.
const SLOWEST: Duration = Duration::from_secs(120);

/// So long a client may send nothing of a body, or wait for memory for the rest of it.
const IDLE: Duration = Duration::from_secs(10);

/// Of each body so much is [`Space::first`].
const FIRST_KIB: usize = 1 << 10;

/// So much memory is taken at a time.
const STEP_KIB: usize = 64;

/// The memory that bodies may take, in KiB, taken as their bytes come. The beginnings of bodies have
/// their own, so that who sends little does not wait for those who send much.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) first: Arc<Semaphore>,
    pub(super) rest: Arc<Semaphore>,
}

impl Space {
    /// Of each half.
    pub(super) const KIB: usize = 256 << 10;

    pub(super) fn new() -> Self {
        let half = || Arc::new(Semaphore::new(Self::KIB));
        Self { first: half(), rest: half() }
    }

    /// Whether even a small body would have to wait.
    pub(super) fn is_full(&self) -> bool {
        self.first.available_permits() < STEP_KIB
    }

    /// Takes memory until there is enough for so many bytes. A body that is larger than all of it has
    /// enough when it has all.
    async fn reach(
        &self,
        taken: &mut Vec<OwnedSemaphorePermit>,
        bytes: usize,
    ) -> Result<(), Unread> {
        let most = FIRST_KIB + Self::KIB;
        while taken.len() * STEP_KIB < bytes.div_ceil(1_024).min(most) {
            let is_first = taken.len() * STEP_KIB < FIRST_KIB;
            let half = if is_first { &self.first } else { &self.rest };
            let step = timeout(IDLE, half.clone().acquire_many_owned(STEP_KIB as u32)).await;
            taken.push(step.ok().and_then(Result::ok).ok_or_else(|| {
                let what = "too many large requests are open";
                let error = Error::new(ErrorKind::Upstream, what).retryable();
                Unread { status: 503, error: error.hint("try again") }
            })?);
        }
        Ok(())
    }
}

/// A body, and the memory that it takes as long as this is there.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) bytes: Bytes,
    space: Arc<Vec<OwnedSemaphorePermit>>,
}

impl Held {
    /// Its memory, for work that goes on when the client hung up.
    pub(super) fn space(&self) -> Arc<Vec<OwnedSemaphorePermit>> {
        self.space.clone()
    }
}

/// Why a body cannot be had.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) status: u16,
    pub(super) error: Error,
}

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packing(&'static str);

impl Packing {
    const KNOWN: [&'static str; 4] = ["gzip", "deflate", "br", "zstd"];

    /// How a body says that it is packed.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, Unread> {
        let mut all = Vec::new();
        for value in headers.get_all(CONTENT_ENCODING) {
            let value = value.to_str().unwrap_or("?").split(',');
            all.extend(value.map(|how| how.trim().to_ascii_lowercase()));
        }
        all.retain(|how| !how.is_empty() && how != "identity");
        let known = |how: &str| Self::KNOWN.into_iter().find(|known| *known == how);
        match all.as_slice() {
            [] => Ok(None),
            [one] if one == "x-gzip" => Ok(Some(Self("gzip"))),
            [one] if known(one).is_some() => Ok(known(one).map(Self)),
            _ => {
                let how = all.join(", ").chars().take(80).collect::<String>();
                let what = "the body of the request is packed in a way that is not known";
                let error = Error::new(ErrorKind::InvalidInput, what)
                    .with("content-encoding", how)
                    .hint("send it as it is, or packed once with gzip, deflate, br or zstd");
                Err(Unread { status: 415, error })
            }
        }
    }
}

/// Reads a body of at most so many bytes: as it came, or unpacked.
pub(super) async fn read(
    proxy: &Proxy,
    headers: &HeaderMap,
    body: Body,
    packing: Option<Packing>,
) -> Result<Held, Unread> {
    let most = usize::try_from(proxy.settings.config.max_body_bytes).unwrap_or(usize::MAX);
    let length = headers.get(CONTENT_LENGTH).and_then(|text| text.to_str().ok()?.parse().ok());
    let length = length.map(|length: u64| usize::try_from(length).unwrap_or(usize::MAX));
    if length.is_some_and(|length| length > most) {
        // Who asks first sends nothing that could be in the way of the answer.
        if !headers.contains_key(EXPECT) {
            drain(body).await;
        }
        return Err(too_large(most));
    }
    let mut body = match packing {
        Some(packing) => unpacked(packing, body).await?,
        None => body,
    };
    match timeout(SLOWEST, collected(&mut body, most, &proxy.space)).await {
        Ok(Err(unread)) if unread.status == 413 && packing.is_none() => {
            drain(body).await;
            Err(unread)
        }
        Ok(read) => read,
        Err(_) => Err(late("the body of the request took too long", SLOWEST)),
    }
}

/// Takes what is left of a body, and drops it: a client that is still sending reads no answer, and
/// loses the one that was given when the connection is closed on it. One that pauses reads.
async fn drain(mut body: Body) {
    const MOST: usize = 256 << 20;
    const PAUSE: Duration = Duration::from_secs(2);
    let all = async {
        let mut left = MOST;
        while let Ok(Some(Ok(frame))) = timeout(PAUSE, body.frame()).await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    // Whatever is left then is not waited for.
    let _ = timeout(SLOWEST, all).await;
}

/// A body as it was before it was packed.
async fn unpacked(packing: Packing, body: Body) -> Result<Body, Unread> {
    let mut request = Request::new(body);
    request.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(packing.0));
    let (give, given) = tokio::sync::oneshot::channel();
    let give = std::sync::Mutex::new(Some(give));
    let take = tower::service_fn(move |request: Request<_>| {
        let body = Body::new(request.into_body());
        if let Ok(mut give) = give.lock()
            && let Some(give) = give.take()
        {
            let _ = give.send(body);
        }
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let _ = RequestDecompressionLayer::new().layer(take).oneshot(request).await;
    given.await.map_err(|_| {
        let what = "the body of the request is packed in a way that is not known";
        broken(Error::new(ErrorKind::InvalidInput, what))
    })
}

/// All of a body, as long as it is not more than `most`.
async fn collected(body: &mut Body, most: usize, space: &Space) -> Result<Held, Unread> {
    let (mut all, mut taken) = (BytesMut::new(), Vec::new());
    loop {
        let Ok(frame) = timeout(IDLE, body.frame()).await else {
            return Err(late("the body of the request stopped coming", IDLE));
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| {
            let what = "the body of the request cannot be read";
            broken(Error::new(ErrorKind::InvalidInput, what).with("cause", error))
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        if piece.len() > most - all.len() {
            return Err(too_large(most));
        }
        space.reach(&mut taken, all.len() + piece.len()).await?;
        all.extend_from_slice(&piece);
    }
    Ok(Held { bytes: all.freeze(), space: Arc::new(taken) })
}

fn late(what: &'static str, waited: Duration) -> Unread {
    let error = Error::new(ErrorKind::Timeout, what).with("waited", format!("{waited:?}"));
    Unread { status: 408, error: error.hint("send the whole body without a pause") }
}

fn too_large(most: usize) -> Unread {
    let error = Error::new(ErrorKind::InvalidInput, "the body of the request is too large")
        .with("most", most)
        .hint("send less, or give `ctx serve` a larger --max-body");
    Unread { status: 413, error }
}

fn broken(error: Error) -> Unread {
    Unread {
        status: 400,
        error: error.hint("send the whole body, packed as content-encoding says"),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::{self, StreamExt};

    use super::*;

    fn piece(bytes: usize) -> std::io::Result<Bytes> {
        Ok(vec![b' '; bytes].into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_coming_is_given_up_and_holds_what_came() {
        let space = Space::new();
        let beginning = stream::iter([piece(2 << 20)]).chain(stream::pending());
        let mut body = Body::from_stream(beginning);
        let began = tokio::time::Instant::now();
        let mut reading = std::pin::pin!(collected(&mut body, 1 << 30, &space));
        tokio::select! {
            biased;
            read = &mut reading => panic!("it was to wait: {read:?}"),
            () = tokio::task::yield_now() => {}
        }
        let half = |half: &Semaphore| Space::KIB - half.available_permits();
        assert_eq!((half(&space.first), half(&space.rest)), (1_024, 1_024));
        let unread = reading.await.unwrap_err();
        assert_eq!((unread.status, began.elapsed() < 2 * IDLE), (408, true));
        assert_eq!(space.rest.available_permits(), Space::KIB);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_waits_for_memory_no_longer_than_for_bytes() {
        let space = Space::new();
        let held = space.rest.clone().acquire_many_owned(Space::KIB as u32).await.unwrap();
        let body = || Body::from_stream(stream::iter([piece(1 << 20), piece(1)]));
        let unread = collected(&mut body(), 1 << 30, &space).await.unwrap_err();
        assert_eq!(unread.status, 503);
        drop(held);
        let read = collected(&mut body(), 1 << 30, &space).await.unwrap();
        assert_eq!(read.bytes.len(), (1 << 20) + 1);
    }
}
