//! Reads the whole body of a request.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT};
use axum::http::{HeaderMap, HeaderValue, Request, Response};
use bytes::BytesMut;
use ctx_core::{Error, ErrorKind};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tower::{Layer, ServiceExt};
use tower_http::decompression::RequestDecompressionLayer;

use super::Proxy;

/// Timeout for a whole body.
const SLOWEST: Duration = Duration::from_secs(120);

/// Timeout between two chunks of a body, and for waiting for memory.
const IDLE: Duration = Duration::from_secs(10);

/// The part of each body that is taken from [`BodyMemory::first`].
const FIRST_KIB: usize = 1 << 10;

/// The unit in which memory is reserved.
const STEP_KIB: usize = 64;

/// The memory for bodies in KiB, reserved as bytes arrive. The first part of each body has its own
/// pool, so that small bodies do not wait for large ones.
#[derive(Debug)]
pub(super) struct BodyMemory {
    pub(super) first: Arc<Semaphore>,
    pub(super) rest: Arc<Semaphore>,
}

impl BodyMemory {
    /// The size of each pool in KiB.
    pub(super) const KIB: usize = 256 << 10;

    pub(super) fn new() -> Self {
        let half = || Arc::new(Semaphore::new(Self::KIB));
        Self { first: half(), rest: half() }
    }

    /// Whether even a small body would have to wait.
    pub(super) fn is_full(&self) -> bool {
        self.first.available_permits() < STEP_KIB
    }

    /// Reserves memory until it is enough for that many bytes, or until the whole pool is reserved.
    async fn reach(
        &self,
        taken: &mut Vec<OwnedSemaphorePermit>,
        bytes: usize,
    ) -> Result<(), BodyError> {
        let most = FIRST_KIB + Self::KIB;
        while taken.len() * STEP_KIB < bytes.div_ceil(1_024).min(most) {
            let is_first = taken.len() * STEP_KIB < FIRST_KIB;
            let half = if is_first { &self.first } else { &self.rest };
            let step = timeout(IDLE, half.clone().acquire_many_owned(STEP_KIB as u32)).await;
            taken.push(step.ok().and_then(Result::ok).ok_or_else(|| {
                let what = "too many large open requests";
                let error = Error::new(ErrorKind::Upstream, what).retryable();
                BodyError { status: 503, error: error.hint("try again") }
            })?);
        }
        Ok(())
    }
}

/// A body, and the memory reserved for it until this is dropped.
#[derive(Debug)]
pub(super) struct RequestBody {
    pub(super) bytes: Bytes,
    space: Arc<Vec<OwnedSemaphorePermit>>,
}

impl RequestBody {
    /// Returns the reservation, for work that continues after the client has disconnected.
    pub(super) fn space(&self) -> Arc<Vec<OwnedSemaphorePermit>> {
        self.space.clone()
    }
}

/// Why a body could not be read.
#[derive(Debug)]
pub(super) struct BodyError {
    pub(super) status: u16,
    pub(super) error: Error,
}

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentEncoding(&'static str);

impl ContentEncoding {
    const KNOWN: [&'static str; 3] = ["gzip", "deflate", "zstd"];

    /// Returns the content encoding of a body.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, BodyError> {
        let mut all = Vec::new();
        for value in headers.get_all(CONTENT_ENCODING) {
            let value = value.to_str().unwrap_or("?").split(',');
            all.extend(value.map(|name| name.trim().to_ascii_lowercase()));
        }
        all.retain(|name| !name.is_empty() && name != "identity");
        let known = |name: &str| Self::KNOWN.into_iter().find(|known| *known == name);
        match all.as_slice() {
            [] => Ok(None),
            [one] if one == "x-gzip" => Ok(Some(Self("gzip"))),
            [one] if known(one).is_some() => Ok(known(one).map(Self)),
            _ => {
                let names = all.join(", ").chars().take(80).collect::<String>();
                let what = "unknown content encoding of the request body";
                let error = Error::new(ErrorKind::InvalidInput, what)
                    .with("content-encoding", names)
                    .hint("send it without encoding, or encoded once with gzip, deflate or zstd");
                Err(BodyError { status: 415, error })
            }
        }
    }
}

/// Reads the body of a request, and takes a permit for the request. Counts a rejected request under
/// `name`.
pub(super) async fn admit(
    proxy: &Proxy,
    name: &'static str,
    headers: &HeaderMap,
    body: Body,
    encoding: Result<Option<ContentEncoding>, BodyError>,
) -> Result<(RequestBody, OwnedSemaphorePermit), BodyError> {
    let admitted = async {
        let body = read(proxy, headers, body, encoding?).await?;
        // A client that sends its body slowly takes no permit.
        let permit = proxy.open_requests.clone().try_acquire_owned().map_err(|_| BodyError {
            status: 503,
            error: Error::new(ErrorKind::Upstream, "too many open requests")
                .with("most", proxy.settings.config.max_requests)
                .retryable()
                .hint("try again, or raise server.maxRequests"),
        })?;
        Ok((body, permit))
    };
    admitted.await.inspect_err(|_| proxy.metrics.request(name, "rejected"))
}

/// Reads a body of at most `most` bytes, encoded or decoded.
async fn read(
    proxy: &Proxy,
    headers: &HeaderMap,
    body: Body,
    encoding: Option<ContentEncoding>,
) -> Result<RequestBody, BodyError> {
    let most = usize::try_from(proxy.settings.config.max_body_bytes).unwrap_or(usize::MAX);
    let length = headers.get(CONTENT_LENGTH).and_then(|text| text.to_str().ok()?.parse().ok());
    let length = length.map(|length: u64| usize::try_from(length).unwrap_or(usize::MAX));
    if length.is_some_and(|length| length > most) {
        // A client that sent `Expect` waits for the answer before it sends the body.
        if !headers.contains_key(EXPECT) {
            drain(body).await;
        }
        return Err(too_large(most));
    }
    let mut body = match encoding {
        Some(encoding) => decoded(encoding, body).await?,
        None => body,
    };
    match timeout(SLOWEST, collected(&mut body, most, &proxy.space)).await {
        Ok(Err(unread)) if unread.status == 413 && encoding.is_none() => {
            drain(body).await;
            Err(unread)
        }
        Ok(read) => read,
        Err(_) => Err(late("timeout while reading the request body", SLOWEST)),
    }
}

/// Reads and discards the rest of a body: a client that is still sending does not read the
/// response, and loses it if the connection is closed. Ends when the client pauses.
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
    // After this timeout, the rest is not read.
    let _ = timeout(SLOWEST, all).await;
}

/// Decodes a body.
async fn decoded(encoding: ContentEncoding, body: Body) -> Result<Body, BodyError> {
    let mut request = Request::new(body);
    request.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.0));
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let sender = std::sync::Mutex::new(Some(sender));
    let service = tower::service_fn(move |request: Request<_>| {
        let body = Body::new(request.into_body());
        if let Ok(mut sender) = sender.lock()
            && let Some(sender) = sender.take()
        {
            let _ = sender.send(body);
        }
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let _ = RequestDecompressionLayer::new().layer(service).oneshot(request).await;
    receiver.await.map_err(|_| {
        let what = "unknown content encoding of the request body";
        broken(Error::new(ErrorKind::InvalidInput, what))
    })
}

/// Reads a whole body; fails if it has more than `most` bytes.
async fn collected(
    body: &mut Body,
    most: usize,
    space: &BodyMemory,
) -> Result<RequestBody, BodyError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let (mut all, mut taken) = (BytesMut::new(), Vec::new());
    loop {
        let Ok(frame) = timeout(IDLE, body.frame()).await else {
            return Err(late("the request body stalled", IDLE));
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| {
            let what = "cannot read the request body";
            broken(Error::new(ErrorKind::InvalidInput, what).with("cause", error))
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        if piece.len() > most - all.len() {
            return Err(too_large(most));
        }
        space.reach(&mut taken, all.len() + piece.len()).await?;
        if all.is_empty() {
            // The rest may never come.
            all.reserve(announced.min(FIRST_KIB << 10));
        }
        all.extend_from_slice(&piece);
    }
    Ok(RequestBody { bytes: all.freeze(), space: Arc::new(taken) })
}

fn late(what: &'static str, waited: Duration) -> BodyError {
    let error = Error::new(ErrorKind::Timeout, what).with("waited", format!("{waited:?}"));
    BodyError { status: 408, error: error.hint("send the whole body without a pause") }
}

fn too_large(most: usize) -> BodyError {
    let error = Error::new(ErrorKind::InvalidInput, "the request body is too large")
        .with("most", most)
        .hint("send less, or give `ctx serve` a larger --max-body");
    BodyError { status: 413, error }
}

fn broken(error: Error) -> BodyError {
    BodyError {
        status: 400,
        error: error.hint("send the whole body, encoded as stated in content-encoding"),
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
    async fn a_stalled_body_times_out_and_releases_its_memory() {
        let space = BodyMemory::new();
        let beginning = stream::iter([piece(2 << 20)]).chain(stream::pending());
        let mut body = Body::from_stream(beginning);
        let began = tokio::time::Instant::now();
        let mut reading = std::pin::pin!(collected(&mut body, 1 << 30, &space));
        tokio::select! {
            biased;
            read = &mut reading => panic!("it did not wait: {read:?}"),
            () = tokio::task::yield_now() => {}
        }
        let half = |half: &Semaphore| BodyMemory::KIB - half.available_permits();
        assert_eq!((half(&space.first), half(&space.rest)), (1_024, 1_024));
        let unread = reading.await.unwrap_err();
        assert_eq!((unread.status, began.elapsed() < 2 * IDLE), (408, true));
        assert_eq!(space.rest.available_permits(), BodyMemory::KIB);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_body_memory_times_out() {
        let space = BodyMemory::new();
        let held = space.rest.clone().acquire_many_owned(BodyMemory::KIB as u32).await.unwrap();
        let body = || Body::from_stream(stream::iter([piece(1 << 20), piece(1)]));
        let unread = collected(&mut body(), 1 << 30, &space).await.unwrap_err();
        assert_eq!(unread.status, 503);
        drop(held);
        let read = collected(&mut body(), 1 << 30, &space).await.unwrap();
        assert_eq!(read.bytes.len(), (1 << 20) + 1);
    }
}
