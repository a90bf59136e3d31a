//! Gemini contents.

use std::cell::OnceCell;
use std::collections::HashMap;

use ctx_core::{Block, CallId, Message, Role};

use super::super::{Request, Unit};
use super::{list, patched, patched_within};
use crate::gemini::{part, response};
use crate::json::{Object, ObjectWriter, arguments_object, array, quote};
use crate::shape::as_user_text;

/// Writes a message as an element of the list; `None` if nothing of it can be represented.
pub(super) fn write(
    request: &Request<'_>,
    names: &Names,
    message: &Message,
    of: Option<&Unit<'_>>,
) -> Option<String> {
    let nameless = message.tool_results().any(|result| result.name.is_none());
    let none = HashMap::new();
    let names = if nameless { names.get_or_init(|| called(request)) } else { &none };
    if let Some(unit) = of
        && let Some(object) = unit.object()
        && let Some(raws) = object.array("parts")
        && let before = unit.read()
        && before.role == message.role
    {
        let fresh = |block: &Block| part(block, names);
        let parts = list(&raws, &before.blocks, &message.blocks, changed, fresh);
        let edits = [("parts", Some(array(&parts)))];
        return (!parts.is_empty()).then(|| patched(&object, &edits));
    }
    let message = as_user_text(message)?;
    let role = if message.role == Role::Assistant { "model" } else { "user" };
    let parts: Vec<_> = message.blocks.iter().filter_map(|block| part(block, names)).collect();
    let json = || ObjectWriter::new().text("role", role).raw("parts", array(&parts)).end();
    (!parts.is_empty()).then(json)
}

/// Function names by call id, for responses without a name. Computed once per request, on demand.
pub(in super::super) type Names = OnceCell<HashMap<CallId, String>>;

fn called(request: &Request<'_>) -> HashMap<CallId, String> {
    let mut names = HashMap::new();
    for unit in &request.units {
        let message = unit.read();
        names.extend(message.tool_calls().map(|call| (call.id.clone(), call.name.clone())));
    }
    names
}

/// Returns the spelling of a key that the object uses: the API accepts both.
fn spelling<'k>(object: &Object<'_>, [camel, snake]: [&'k str; 2]) -> &'k str {
    if object.has(snake) { snake } else { camel }
}

/// Rewrites a part with new content.
fn changed(object: &Object<'_>, _: &Block, new: &Block) -> Option<String> {
    match new {
        Block::Text { text } if text.is_empty() => None,
        Block::Text { text } => Some(patched(object, &[("text", Some(quote(text)))])),
        Block::ToolCall(call) => {
            let arguments = arguments_object(&call.arguments);
            let key = spelling(object, ["functionCall", "function_call"]);
            Some(patched_within(object, key, &[("args", Some(arguments))]))
        }
        Block::ToolResult(result) => {
            let response = response(result);
            let key = spelling(object, ["functionResponse", "function_response"]);
            Some(patched_within(object, key, &[("response", Some(response))]))
        }
        _ => None,
    }
}
