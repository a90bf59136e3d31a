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

use super::{IN_FLIGHT_KIB, Proxy};

/// So long a client may take to send a body.
const SLOWEST: Duration = Duration::from_secs(120);

/// A body, and the room that it takes as long as this is there.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) bytes: Bytes,
    room: Arc<OwnedSemaphorePermit>,
}

impl Held {
    /// Its room, for work that goes on when the client hung up.
    pub(super) fn room(&self) -> Arc<OwnedSemaphorePermit> {
        self.room.clone()
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
    // How large what is packed or comes in pieces will be is known when it is there.
    let announced = http_body::Body::size_hint(&body).exact().filter(|_| packing.is_none());
    let announced = announced.map_or(most, |bytes| usize::try_from(bytes).unwrap_or(most));
    let mut room = room(&proxy.room, announced).await?;
    let bytes = match packing {
        Some(packing) => {
            let mut unpacked = unpacked(packing, body).await?;
            collected(&mut unpacked, most).await?
        }
        None => {
            let mut body = body;
            match collected(&mut body, most).await {
                Err(unread) if unread.status == 413 => {
                    drop(room);
                    drain(body).await;
                    return Err(unread);
                }
                other => other?,
            }
        }
    };
    let spare = room.num_permits().saturating_sub(kib(bytes.len()));
    drop(room.split(spare));
    Ok(Held { bytes, room: Arc::new(room) })
}

fn kib(bytes: usize) -> usize {
    bytes / 1_024 + 1
}

/// Waits for room for a body and what is made of it.
async fn room(room: &Arc<Semaphore>, bytes: usize) -> Result<OwnedSemaphorePermit, Unread> {
    let wanted = u32::try_from(kib(bytes).min(IN_FLIGHT_KIB)).unwrap_or(u32::MAX);
    let waited = timeout(SLOWEST, room.clone().acquire_many_owned(wanted)).await;
    waited.ok().and_then(Result::ok).ok_or_else(|| {
        let error = Error::new(ErrorKind::Upstream, "too many large requests are open").retryable();
        Unread { status: 503, error: error.hint("try again") }
    })
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
async fn collected(body: &mut Body, most: usize) -> Result<Bytes, Unread> {
    let all = async {
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                let what = "the body of the request cannot be read";
                broken(Error::new(ErrorKind::InvalidInput, what).with("cause", error))
            })?;
            let Ok(piece) = frame.into_data() else { continue };
            if piece.len() > most - all.len() {
                return Err(too_large(most));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    };
    timeout(SLOWEST, all).await.unwrap_or_else(|_| {
        let what = "the body of the request took too long";
        let error = Error::new(ErrorKind::Timeout, what).with("waited", format!("{SLOWEST:?}"));
        Err(Unread { status: 408, error })
    })
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
