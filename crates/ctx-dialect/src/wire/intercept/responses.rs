//! OpenAI Responses.

use ctx_core::ToolCall;

use super::super::rewrite::patched;
use super::{Answer, OpenPart, call_of};
use crate::json::{Object, array, quote};

/// Reads an event of a stream.
pub(super) fn event(answer: &mut Answer, event: &Object<'_>, name: &str, data: &str) {
    let kind = event.text("type").unwrap_or_default();
    let Some(index) = event.count("output_index") else {
        return match &*kind {
            "response.completed" | "response.incomplete" | "response.done" => {
                answer.hold(name, data);
            }
            "response.created" | "response.in_progress" | "response.queued" if answer.round > 0 => {
            }
            _ => {
                let data = numbered(answer, data);
                answer.emit(name, &data);
            }
        };
    };
    let item = event.object("item");
    if kind == "response.output_item.added" {
        let name = item.as_ref().and_then(|item| item.owned("name")).unwrap_or_default();
        let is_own = answer.is_own(&name);
        let place = (!is_own).then_some(answer.count);
        answer.count += usize::from(!is_own);
        answer.is_changed |= is_own;
        answer.open.push(OpenPart { index, place, ..OpenPart::default() });
    }
    let place = answer.open_part(index).map_or(Some(index as usize), |part| part.place);
    if kind == "response.output_item.done"
        && let Some((item, raw)) = item.zip(event.get("item"))
    {
        answer.parts.push(raw.get().to_owned());
        if !call(&item).is_some_and(|call| answer.take(call)) {
            answer.passed.push(raw.get().to_owned());
        }
    }
    if let Some(place) = place {
        let data = match place as u64 == index {
            true => data.to_owned(),
            false => patched(event, &[("output_index", Some(place.to_string()))]),
        };
        let data = numbered(answer, &data);
        answer.emit(name, &data);
    }
}

/// Returns an event with the next sequence number. The last event gets the items of all rounds.
pub(super) fn numbered(answer: &mut Answer, data: &str) -> String {
    let Ok(event) = Object::parse(data) else { return data.to_owned() };
    let mut edits = Vec::new();
    if let Some(number) = event.count("sequence_number") {
        if number != answer.sequence {
            edits.push(("sequence_number", Some(answer.sequence.to_string())));
        }
        answer.sequence += 1;
    }
    if let Some(response) = event.object("response") {
        let id = answer.id.get_or_insert_with(|| response.owned("id").unwrap_or_default());
        // Clients refuse an answer whose id changes.
        let mut changes = vec![("id", Some(quote(id)))];
        if event.text("type").is_some_and(|kind| kind != "response.created") {
            changes.push(("output", Some(array(&answer.passed))));
        }
        if answer.is_changed && response.has("output") {
            edits.push(("response", Some(patched(&response, &changes))));
        }
    }
    if edits.is_empty() { data.to_owned() } else { patched(&event, &edits) }
}

/// Returns the call in an item that the client must answer.
pub(super) fn call(item: &Object<'_>) -> Option<ToolCall> {
    let kind = item.text("type")?;
    let id = item.text("call_id").filter(|_| kind.ends_with("_call"))?;
    let arguments = item.text("arguments").unwrap_or_default();
    Some(call_of(&id, &item.text("name").unwrap_or(kind), &arguments))
}
