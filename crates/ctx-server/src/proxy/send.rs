//! Sends a request to the provider.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use ctx_core::Result;
use ctx_dialect::json::Object;
use ctx_dialect::wire::{ChatRequest, Intercept, Protocol};
use ctx_model::{Method, Request, Response, Url};
use ctx_session::clock;

use super::Proxy;
use super::client_compaction::asks_for_compaction;
use super::client_request::ClientRequest;
use super::held_answer::{Conversion, HeldAnswer, hold_answer};

/// The end of the paths of the Responses API, and that of chat completions.
const RESPONSES: &str = "/responses";
const CHAT: &str = "/chat/completions";

/// Sends a body, and holds the beginning of its answer. If the provider has no Responses API, the
/// request is sent as one for chat completions, and its answer converted. `edits` writes the edits
/// that ctx made in the request into its answer.
///
/// # Errors
///
/// The provider cannot be reached, or its answer broke off before any content.
pub(super) async fn send(
    proxy: &Proxy,
    client_request: &ClientRequest,
    body: Bytes,
    window: u64,
    edits: Option<Intercept>,
) -> Result<HeldAnswer> {
    let protocol = client_request.protocol();
    let plain = async |body, edits: Option<Intercept>| {
        let response = post(proxy, client_request, client_request.url.clone(), body).await?;
        hold_answer(protocol, response, window, edits.map(Conversion::Edits)).await
    };
    if protocol != Protocol::Responses {
        return plain(body, edits).await;
    }
    let mut refused = None;
    if !proxy.speaks_chat.load(Ordering::Relaxed) {
        let answer = plain(body.clone(), None).await?;
        if answer.response.status.is_success() {
            proxy.speaks_responses.store(true, Ordering::Relaxed);
        }
        if proxy.speaks_responses.load(Ordering::Relaxed)
            || !lacks_the_path(&answer)
            || asks_for_compaction(&client_request.route, &body)
        {
            return Ok(answer);
        }
        refused = Some(answer);
    }
    let text = std::str::from_utf8(&body).unwrap_or_default();
    let id = uuid::Uuid::new_v4().simple().to_string();
    let chat = ChatRequest::of(text, &id, clock::now().0 / 1_000);
    let Some((url, chat)) = chat_url(&client_request.url).zip(chat) else {
        return match refused {
            Some(answer) => Ok(answer),
            None => plain(body, None).await,
        };
    };
    let response = post(proxy, client_request, url, Bytes::from(chat.body)).await?;
    if let Some(refused) = refused {
        if !matches!(response.status.as_u16(), 200..=299 | 400 | 413 | 422 | 429) {
            return Ok(refused);
        }
        proxy.speaks_chat.store(true, Ordering::Relaxed);
        let url = proxy.settings.upstreams.base(client_request.family);
        proxy.warn(&format!("{url} has no Responses API: requests are sent as chat completions"));
    }
    hold_answer(protocol, response, window, Some(Conversion::Chat(chat.answer))).await
}

async fn post(
    proxy: &Proxy,
    client_request: &ClientRequest,
    url: Url,
    body: Bytes,
) -> Result<Response> {
    let headers = client_request.headers.clone();
    // Failures are not retried: an answer may have begun, and is billed.
    proxy.client.send(Request { method: Method::POST, url, headers, body }).await
}

/// Whether an answer says that the server has no such path, rather than no such model or response.
fn lacks_the_path(answer: &HeldAnswer) -> bool {
    let text = answer.text();
    let error = Object::parse(&text).ok().and_then(|object| object.object("error"));
    // Errors of what a request names have a code or a parameter.
    let is_named = ["code", "param"]
        .iter()
        .any(|key| error.as_ref().is_some_and(|error| error.text(key).is_some()));
    let text = text.to_lowercase();
    !is_named
        && matches!(answer.response.status.as_u16(), 404 | 405 | 501)
        && !["model", "previous", "response with id", "item with id"]
            .iter()
            .any(|of| text.contains(of))
}

/// Returns the URL of chat completions beside that of the Responses API.
fn chat_url(url: &Url) -> Option<Url> {
    let before = url.path().strip_suffix(RESPONSES)?;
    let mut chat = url.clone();
    chat.set_path(&format!("{before}{CHAT}"));
    Some(chat)
}
