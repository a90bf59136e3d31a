//! Compactions that a client of the Responses API asks for, made by ctx.
//!
//! ```text
//! history, compaction_trigger -> compacted by the engine -> items saved -> one `compaction` item
//! `compaction` item, new items -> the saved items in its place -> assembled like any request
//! ```
//!
//! The content of the item is a reference to the saved items. The client keeps it in its history
//! unread. The conversation itself goes on: it has all messages, and its compaction in force is
//! audited, shown and undone like any other.

mod originals;
mod restore;
mod saved;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use ctx_dialect::json::Object;
use ctx_dialect::wire::{CompactionAnswer, Items, Protocol, Route};
use ctx_session::clock;
use memchr::memmem;

use super::held_answer::HeldAnswer;

pub(super) use originals::OriginalItems;
pub(super) use restore::WholeBody;
pub(super) use saved::SavedItems;
pub use saved::{RestoredItems, SavedCompaction, SavedCompactions};

/// Whether a request asks for a compaction of its history.
pub(super) fn asks_for_compaction(route: &Route, body: &Bytes) -> bool {
    let ends_in_trigger = || {
        let text = std::str::from_utf8(body).ok()?;
        Some(Items::of(route.protocol, text)?.end_in_trigger())
    };
    route.is_compaction
        || route.protocol == Protocol::Responses
            && memmem::find(body, b"\"compaction_trigger\"").is_some()
            && ends_in_trigger().unwrap_or_default()
}

/// Whether a body may have a reference to saved items.
pub(super) fn has_reference(route: &Route, body: &[u8]) -> bool {
    route.protocol == Protocol::Responses
        && memmem::find(body, originals::PREFIX.as_bytes()).is_some()
}

/// How a provider answered a request for a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The client can use the answer, or has to see it: it lacks access.
    Pass,
    /// The provider failed this time.
    Failed,
    /// The provider does not compact.
    Cannot,
}

impl Verdict {
    pub(super) fn of(answer: &HeldAnswer) -> Self {
        let status = answer.response.status;
        match status.as_u16() {
            200..=299 if answer.watch.compactions().len() == 1 => Self::Pass,
            200..=299 if answer.is_whole && answer.watch.failure().is_none() => Self::Cannot,
            401 | 403 => Self::Pass,
            400 | 404 | 405 | 422 | 501 if answer.overflow.is_none() => Self::Cannot,
            _ => Self::Failed,
        }
    }
}

/// Returns the answer of ctx to a request for a compaction. `tokens` is the size of its history
/// after it.
pub(super) fn answer(route: &Route, body: &str, content: &str, tokens: u64) -> Response {
    let (request, _) = Object::parse_prefix(body);
    let streams = request.is_true("stream") && !route.is_compaction;
    let id = uuid::Uuid::new_v4().simple().to_string();
    let model = request.text("model").unwrap_or_default();
    let created_at = clock::now().0 / 1_000;
    let answer = CompactionAnswer { id: &id, content, model: &model, created_at, tokens };
    let kind = if streams { "text/event-stream" } else { "application/json" };
    ([(CONTENT_TYPE, kind)], answer.body(route, streams)).into_response()
}
