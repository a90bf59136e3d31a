//! Gemini contents.

use std::collections::HashMap;

use ctx_core::{Block, CallId, Message, Role};

use super::super::{Request, Unit};
use super::{list, patched, patched_within};
use crate::block;
use crate::gemini::{part, response};
use crate::json::{Fresh, Object, arguments_object, array, quote};
use crate::shape::as_user_text;

/// A message as an element of the list; `None` where nothing can be said of it.
pub(super) fn write(
    request: &Request<'_>,
    message: &Message,
    of: Option<&Unit<'_>>,
) -> Option<String> {
    let names = names(request, message);
    if let Some(unit) = of
        && let Ok(object) = Object::parse(unit.raw)
        && unit.read().role == message.role
        && let Some(raws) = object.array("parts")
    {
        let old = block::content(object.get("parts"));
        let parts = list(&raws, &old, &message.blocks, changed, |block| part(block, &names));
        let edits = [("parts", Some(array(&parts)))];
        return (!parts.is_empty()).then(|| patched(&object, &edits));
    }
    let message = as_user_text(message)?;
    let role = if message.role == Role::Assistant { "model" } else { "user" };
    let parts: Vec<_> = message.blocks.iter().filter_map(|block| part(block, &names)).collect();
    let json = || Fresh::new().text("role", role).raw("parts", array(&parts)).end();
    (!parts.is_empty()).then(json)
}

/// The names of the functions that were called, for answers that do not say whose they are.
fn names(request: &Request<'_>, message: &Message) -> HashMap<CallId, String> {
    if message.tool_results().all(|result| result.name.is_some()) {
        return HashMap::new();
    }
    let calls = request.units.iter().flat_map(|unit| unit.read().blocks);
    calls
        .filter_map(|block| match block {
            Block::ToolCall(call) => Some((call.id, call.name)),
            _ => None,
        })
        .collect()
}

/// A part into the place of another.
fn changed(object: &Object<'_>, _: &Block, new: &Block) -> Option<String> {
    match new {
        Block::Text { text } if text.is_empty() => None,
        Block::Text { text } => Some(patched(object, &[("text", Some(quote(text)))])),
        Block::ToolCall(call) => {
            let arguments = arguments_object(&call.arguments);
            Some(patched_within(object, "functionCall", &[("args", Some(arguments))]))
        }
        Block::ToolResult(result) => {
            let response = response(result);
            Some(patched_within(object, "functionResponse", &[("response", Some(response))]))
        }
        _ => None,
    }
}
