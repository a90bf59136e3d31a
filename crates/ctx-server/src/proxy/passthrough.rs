//! Passes requests other than conversations unchanged.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;

use super::{Family, Proxy, body, failure, headers};
use crate::trace::RequestOutcome;

pub(super) async fn pass(proxy: Arc<Proxy>, request: Request) -> Response {
    const OTHER: &str = "other";
    let (parts, content) = request.into_parts();
    let admitted = body::admit(&proxy, OTHER, &parts.headers, content, Ok(None)).await;
    let (content, permit) = match admitted {
        Ok(admitted) => admitted,
        Err(refused) => return failure::answer(None, refused.status, &refused.error),
    };
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let family = Family::of_request(path, &parts.headers);
    let outgoing = ctx_model::Request {
        method: parts.method,
        url: proxy.settings.upstreams.url(family, path),
        headers: headers::to_upstream(parts.headers, false),
        body: content.bytes.clone(),
    };
    match proxy.client.send(outgoing).await {
        Ok(answer) => {
            let outcome = if answer.status.is_success() {
                RequestOutcome::Ok
            } else {
                RequestOutcome::Refused
            };
            proxy.metrics.request(OTHER, outcome.name());
            let mut response = Response::new(streamed(answer.body, permit));
            *response.status_mut() = answer.status;
            *response.headers_mut() = headers::to_client(answer.headers);
            response
        }
        Err(error) => {
            proxy.metrics.request(OTHER, "failed");
            failure::answer(None, failure::status(&error), &error)
        }
    }
}

/// Streams an answer. Its permit is held until the end.
fn streamed(body: ctx_model::Body, permit: OwnedSemaphorePermit) -> Body {
    let pieces = stream::unfold(Some((body, permit)), |state| async move {
        let (mut body, permit) = state?;
        match body.chunk().await {
            Ok(Some(piece)) => Some((Ok::<Bytes, ctx_core::Error>(piece), Some((body, permit)))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    });
    Body::from_stream(pieces)
}
