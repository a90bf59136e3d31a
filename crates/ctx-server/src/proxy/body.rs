//! The body of a request, whole.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, Request, Response};
use ctx_core::{Error, ErrorKind};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;
use tower::Layer;
use tower::ServiceExt;
use tower_http::decompression::RequestDecompressionLayer;

/// So long a client may take to send a body.
const SLOWEST: Duration = Duration::from_secs(300);

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

/// Reads a body as it came, of at most so many bytes.
pub(super) async fn read(headers: &HeaderMap, body: Body, most: usize) -> Result<Bytes, Unread> {
    let length = headers.get(CONTENT_LENGTH).and_then(|text| text.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > most as u64) {
        return Err(too_large(most));
    }
    collected(body, most).await
}

/// Reads a body and unpacks it; what is unpacked is at most so many bytes.
pub(super) async fn unpacked(
    headers: &HeaderMap,
    body: Body,
    most: usize,
) -> Result<Bytes, Unread> {
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
    match given.await {
        Ok(body) => collected(body, most).await,
        Err(_) => Err(broken(Error::new(
            ErrorKind::InvalidInput,
            "the body of the request is packed in a way that is not known",
        ))),
    }
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
