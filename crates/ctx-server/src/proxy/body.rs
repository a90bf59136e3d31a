//! The body of a request, whole.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, Request, Response};
use ctx_core::{Error, ErrorKind};
use http_body_util::{BodyExt, LengthLimitError, Limited};
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

/// Whether a body says that it is packed in a way that can be unpacked here.
pub(super) fn is_packed(headers: &HeaderMap) -> bool {
    let Some(how) = headers.get(CONTENT_ENCODING).and_then(|how| how.to_str().ok()) else {
        return false;
    };
    ["gzip", "deflate", "br", "zstd"].iter().any(|known| how.trim().eq_ignore_ascii_case(known))
}

/// Reads a body of at most so many bytes: as it came, or unpacked.
pub(super) async fn read(
    proxy: &Proxy,
    headers: &HeaderMap,
    body: Body,
    unpacks: bool,
) -> Result<Held, Unread> {
    let most = usize::try_from(proxy.settings.config.max_body_bytes).unwrap_or(usize::MAX);
    let length = headers.get(CONTENT_LENGTH).and_then(|text| text.to_str().ok()?.parse().ok());
    let length = length.map(|length: u64| usize::try_from(length).unwrap_or(usize::MAX));
    if length.is_some_and(|length| length > most) {
        return Err(too_large(most));
    }
    // How large what is packed or comes in pieces will be is known when it is there.
    let announced = http_body::Body::size_hint(&body).exact().filter(|_| !unpacks);
    let announced = announced.map_or(most, |bytes| usize::try_from(bytes).unwrap_or(most));
    let mut room = room(&proxy.room, announced).await?;
    let bytes = match unpacks {
        true => collected(unpacked(headers, body).await?, most).await?,
        false => collected(body, most).await?,
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

/// A body as it was before it was packed.
async fn unpacked(headers: &HeaderMap, body: Body) -> Result<Body, Unread> {
    let mut request = Request::new(body);
    if let Some(how) = headers.get(CONTENT_ENCODING) {
        request.headers_mut().insert(CONTENT_ENCODING, how.clone());
    }
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

async fn collected(body: Body, most: usize) -> Result<Bytes, Unread> {
    match timeout(SLOWEST, Limited::new(body, most).collect()).await {
        Ok(Ok(all)) => Ok(all.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => {
            Err(too_large(most))
        }
        Ok(Err(error)) => {
            let what = "the body of the request cannot be read";
            Err(broken(Error::new(ErrorKind::InvalidInput, what).with("cause", error)))
        }
        Err(_) => {
            let what = "the body of the request took too long";
            let error = Error::new(ErrorKind::Timeout, what).with("waited", format!("{SLOWEST:?}"));
            Err(Unread { status: 408, error })
        }
    }
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
