//! OpenAI Responses.

use super::{AnswerFindings, AnswerState, failure, says};
use crate::json::Object;
use crate::wire::Protocol;

/// Reads an event of a stream.
pub(super) fn event(found: &mut AnswerFindings, event: &Object<'_>, json: &str) {
    let kind = event.text("type").unwrap_or_default();
    match &*kind {
        "response.created" | "response.in_progress" | "response.queued" => {}
        "response.completed" | "response.incomplete" | "response.done" | "response.failed" => {
            if let Some(raw) = event.get("response")
                && let Some(answer) = Object::of(raw)
            {
                whole(found, &answer, json);
                found.response = Some(raw.get().to_owned());
            }
            found.finished = true;
            found.finish_as(&kind);
        }
        // The start of an item counts as content, even if the model then thinks for long.
        "response.output_item.added" | "response.output_item.done" => {
            found.content();
            if let Some(item) = event.get("item").filter(|_| kind.ends_with(".done")) {
                found.take_compaction(Protocol::Responses, item.get());
            }
        }
        kind if kind.ends_with(".delta") => found.content_if(says(event, "delta")),
        _ => {}
    }
}

/// Reads a response: an answer that was not streamed, or the one in an event.
pub(super) fn whole(found: &mut AnswerFindings, answer: &Object<'_>, json: &str) {
    for item in answer.array("output").unwrap_or_default() {
        found.content_if(Object::of(item).is_some_and(|item| is_filled(&item)));
    }
    found.report(answer);
    let status = answer.owned("status");
    let reason = answer.object("incomplete_details").and_then(|details| details.owned("reason"));
    match status.as_deref() {
        Some("failed") => found.fail(failure(answer, json)),
        Some("completed" | "incomplete" | "cancelled") => found.finished = true,
        _ => {}
    }
    found.finish(reason.or(status).filter(|status| status != "in_progress" && status != "queued"));
}

/// Whether an item counts as content: a call, or text.
fn is_filled(item: &Object<'_>) -> bool {
    match item.text("type").as_deref() {
        Some("message") => item.array("content").is_some_and(|parts| {
            let parts = parts.into_iter().filter_map(Object::of);
            parts.into_iter().any(|part| says(&part, "text") || says(&part, "refusal"))
        }),
        Some("reasoning") => {
            let is_list = |key: &str| item.array(key).is_some_and(|parts| !parts.is_empty());
            is_list("summary") || is_list("content") || says(item, "encrypted_content")
        }
        Some(_) => true,
        None => false,
    }
}

impl AnswerFindings {
    /// Uses the type of the last event if the response in it lacks its status.
    fn finish_as(&mut self, kind: &str) {
        if kind == "response.failed" && self.failure.is_none() && self.state == AnswerState::Pending
        {
            self.fail(super::Failure::default());
        }
        if self.finish.is_none() {
            self.finish = kind.strip_prefix("response.").map(str::to_owned);
        }
    }
}
