//! Passes requests other than conversations unchanged.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use ctx_dialect::json::Object;
use ctx_trace::RequestOutcome;
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;

use super::stored_responses::ConversationChange;
use super::{Family, Proxy, body, failure, headers};

/// Maximum size of the answer to a request that changes a conversation: at most 20 items.
const LONGEST_ANSWER: usize = 64 << 20;

/// Paths that only count the tokens of a history, or store it.
const COUNTING: [&str; 5] =
    ["count_tokens", "countTokens", "computeTokens", "/threads", "/batches"];

pub(super) async fn pass(proxy: Arc<Proxy>, request: Request) -> Response {
    const OTHER: &str = "other";
    let (parts, content) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let family = Family::of_request(path, &parts.headers);
    let route = family.route(path);
    let admitted = body::admit(&proxy, OTHER, &parts.headers, content, Ok(None)).await;
    let (content, permit) = match admitted {
        Ok(admitted) => admitted,
        Err(refused) => return failure::answer(&route, refused.status, &refused.error),
    };
    let change = ConversationChange::of(&parts.method, path);
    let query = parts.uri.query();
    let outgoing = ctx_model::Request {
        method: parts.method,
        url: proxy.settings.upstreams.url(family, path),
        headers: headers::to_upstream(parts.headers, false),
        body: content.bytes.clone(),
    };
    if carries_history(path, &content.bytes) {
        let path = path.split('?').next().unwrap_or_default();
        proxy.warn(&format!("histories sent to {path} pass unchanged: ctx does not know this API"));
    }
    let owner = headers::secrets(&outgoing.headers, query, None);
    match proxy.client.send(outgoing).await {
        Ok(mut answer) => {
            let outcome = if answer.status.is_success() {
                RequestOutcome::Ok
            } else {
                RequestOutcome::Refused
            };
            proxy.metrics.request(OTHER, outcome.name());
            let change = change.filter(|_| outcome == RequestOutcome::Ok);
            let body = match change {
                Some(change) => match answer.body.read_up_to(LONGEST_ANSWER).await {
                    Ok(bytes) => {
                        let [sent, got] = [&content.bytes[..], &bytes].map(String::from_utf8_lossy);
                        if let Err(error) = proxy.responses.change(change, &owner, &sent, &got) {
                            proxy.warn(&format!("a restart will forget a conversation: {error}"));
                        }
                        Body::from(bytes)
                    }
                    Err(error) => return failure::answer(&route, failure::status(&error), &error),
                },
                None => streamed(answer.body, permit),
            };
            let mut response = Response::new(body);
            *response.status_mut() = answer.status;
            *response.headers_mut() = headers::to_client(answer.headers);
            response
        }
        Err(error) => {
            proxy.metrics.request(OTHER, "failed");
            failure::answer(&route, failure::status(&error), &error)
        }
    }
}

/// Whether a body has a list of messages, and its path asks for an answer to them.
fn carries_history(path: &str, body: &[u8]) -> bool {
    let counts = |name: &str| path.contains(name);
    let text = std::str::from_utf8(body).unwrap_or_default();
    if !text.trim_start().starts_with('{') || COUNTING.into_iter().any(counts) {
        return false;
    }
    let (object, _) = Object::parse_prefix(text);
    let list = object.array("messages").or_else(|| object.array("contents")).unwrap_or_default();
    list.first().and_then(|first| Object::of(first)).is_some_and(|first| first.has("role"))
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
