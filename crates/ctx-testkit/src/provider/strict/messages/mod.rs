//! Anthropic messages.

mod blocks;

use std::collections::HashSet;

use serde_json::Value;

use super::house::House;
use super::seals::{Seals, Validity};
use super::{Fault, StrictRequest, Verdict, list, text};

const MAX_MARKS: usize = 4;

/// A turn: consecutive messages of one role.
struct Turn<'a> {
    role: &'a str,
    blocks: Vec<BlockRef<'a>>,
}

struct BlockRef<'a> {
    /// Its path in errors.
    at: String,
    /// `None` if the content is a string.
    block: Option<&'a Value>,
    text: Option<&'a str>,
}

impl BlockRef<'_> {
    fn kind(&self) -> &str {
        self.block.map_or("text", |block| text(block, "type"))
    }

    fn get(&self, key: &str) -> &str {
        self.block.map_or("", |block| text(block, key))
    }

    fn is_thought(&self) -> bool {
        matches!(self.kind(), "thinking" | "redacted_thinking")
    }
}

pub(super) fn check(request: StrictRequest<'_>, house: &House, seals: &Seals) -> Verdict {
    let body = request.body;
    if body["max_tokens"].as_u64().is_none() {
        refuse!("max_tokens: Field required");
    }
    // The error for an organisation whose settings disable threads; the real wording is unknown.
    if !body["thread"].is_null() {
        let fault = Fault::new("thread: message threads are not available for this request");
        return Err(fault.code("thread_unsupported_request"));
    }
    let messages = list(&body["messages"]);
    if messages.is_empty() {
        refuse!("messages: at least one message is required");
    }
    marks(body)?;
    let turns = turns(request, messages, house)?;
    if house.user_first && turns.first().is_some_and(|turn| turn.role != "user") {
        refuse!("messages: first message must use the \"user\" role");
    }
    let mut ever = HashSet::new();
    for (n, turn) in turns.iter().enumerate() {
        for part in &turn.blocks {
            blocks::check(part, turn.role)?;
            if part.kind() == "tool_use" && !ever.insert(part.get("id")) {
                refuse!("messages: `tool_use` ids must be unique");
            }
        }
        let before = n.checked_sub(1).and_then(|n| turns.get(n));
        pairs(turn, before, turns.get(n + 1))?;
        thoughts(turn, seals)?;
    }
    in_progress(body, &turns)
}

fn marks(body: &Value) -> Verdict {
    fn count(value: &Value) -> usize {
        match value {
            Value::Array(all) => all.iter().map(count).sum(),
            Value::Object(fields) => {
                let own = usize::from(fields.get("cache_control").is_some_and(|v| !v.is_null()));
                let inner = fields.get("content").map_or(0, count);
                own + inner
            }
            _ => 0,
        }
    }
    let found: usize = ["system", "tools", "messages"].iter().map(|key| count(&body[*key])).sum();
    if found > MAX_MARKS {
        refuse!("A maximum of 4 blocks with cache_control may be provided. Found {found}.");
    }
    Ok(())
}

fn turns<'a>(
    request: StrictRequest<'_>,
    messages: &'a [Value],
    house: &House,
) -> Result<Vec<Turn<'a>>, Fault> {
    let mut turns: Vec<Turn<'a>> = Vec::with_capacity(messages.len());
    for (n, message) in messages.iter().enumerate() {
        let role = text(message, "role");
        if role == "system" {
            if request.is_beta {
                continue;
            }
            refuse!(
                "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` \
                 parameter, not \"system\" as an input message role."
            );
        }
        if !["user", "assistant"].contains(&role) {
            refuse!("messages.{n}.role: Input should be 'user' or 'assistant'");
        }
        let keys = message.as_object().into_iter().flat_map(|fields| fields.keys());
        if let Some(key) = keys.into_iter().find(|key| !["role", "content"].contains(&key.as_str()))
        {
            refuse!("messages.{n}.{key}: Extra inputs are not permitted");
        }
        let is_last = n + 1 == messages.len();
        let blocks = parts(n, &message["content"], is_last && role == "assistant")?;
        match turns.last_mut().filter(|turn| turn.role == role) {
            Some(_) if house.alternates => {
                refuse!(
                    "messages: roles must alternate between \"user\" and \"assistant\", but found \
                     multiple \"{role}\" roles in a row"
                );
            }
            Some(turn) => turn.blocks.extend(blocks),
            None => turns.push(Turn { role, blocks }),
        }
    }
    Ok(turns)
}

fn parts(n: usize, content: &Value, may_be_empty: bool) -> Result<Vec<BlockRef<'_>>, Fault> {
    let at = format!("messages.{n}.content");
    let empty = || {
        Fault::new(format!(
            "messages.{n}: all messages must have non-empty content except for the optional final \
             assistant message"
        ))
    };
    match content {
        Value::String(text) if text.is_empty() && !may_be_empty => Err(empty()),
        Value::String(text) => Ok(vec![BlockRef { at, block: None, text: Some(text) }]),
        Value::Array(blocks) if blocks.is_empty() && !may_be_empty => Err(empty()),
        Value::Array(blocks) => {
            let part = |(k, block): (usize, _)| BlockRef {
                at: format!("{at}.{k}"),
                block: Some(block),
                text: None,
            };
            Ok(blocks.iter().enumerate().map(part).collect())
        }
        Value::Null => Err(Fault::new(format!("{at}: Field required"))),
        _ => Err(Fault::new(format!("{at}: Input should be a valid list"))),
    }
}

/// Calls and their results must be in adjacent turns, and results must come first in their turn.
fn pairs(turn: &Turn<'_>, before: Option<&Turn<'_>>, after: Option<&Turn<'_>>) -> Verdict {
    let calls = |turn: &Turn<'_>| -> HashSet<String> {
        let calls = turn.blocks.iter().filter(|part| part.kind() == "tool_use");
        calls.map(|part| part.get("id").to_owned()).collect()
    };
    if turn.role == "user" {
        let called = before.map(calls).unwrap_or_default();
        let results = turn.blocks.iter().filter(|part| part.kind() == "tool_result");
        let mut seen = HashSet::new();
        for part in results {
            let id = part.get("tool_use_id");
            if !called.contains(id) {
                refuse!(
                    "{}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                     `tool_result` block must have a corresponding `tool_use` block in the previous \
                     message.",
                    part.at
                );
            }
            if !seen.insert(id) {
                refuse!(
                    "{}: each tool_use must have a single result. Found multiple `tool_result` \
                     blocks with id: {id}",
                    part.at
                );
            }
        }
        return Ok(());
    }
    let blocks = after.map_or(&[][..], |turn| &turn.blocks);
    let first = blocks.iter().take_while(|part| part.kind() == "tool_result");
    let answered: HashSet<_> = first.map(|part| part.get("tool_use_id")).collect();
    let open = turn.blocks.iter().filter(|part| part.kind() == "tool_use");
    let open: Vec<_> = open.filter(|part| !answered.contains(part.get("id"))).collect();
    if let Some(first) = open.first() {
        let ids: Vec<_> = open.iter().map(|part| part.get("id")).collect();
        let at = first.at.split(".content").next().unwrap_or_default();
        refuse!(
            "{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. \
             Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            ids.join(", ")
        );
    }
    Ok(())
}

/// Thinking is signed: it is refused if its text was changed, or if it was moved to another answer.
fn thoughts(turn: &Turn<'_>, seals: &Seals) -> Verdict {
    let mut answer = None;
    for part in &turn.blocks {
        match part.kind() {
            "thinking" => match seals.validity(part.get("signature"), part.get("thinking")) {
                Validity::Proves(of) => answer = Some(of),
                Validity::Trusted => answer = None,
                Validity::Stale | Validity::Unknown => return Err(invalid(part)),
            },
            "tool_use" => {
                let own = seals.answer_of(part.get("id"));
                if let (Some(thought), Some(own)) = (answer, own)
                    && thought != own
                {
                    refuse!(
                        "{}: `thinking` or `redacted_thinking` blocks in the latest assistant \
                         message cannot be modified. These blocks must remain as they were in the \
                         original response.",
                        part.at
                    );
                }
            }
            _ => {}
        }
    }
    match turn.blocks.last().filter(|part| turn.role == "assistant" && part.is_thought()) {
        Some(part) => {
            let at = part.at.split(".content").next().unwrap_or_default();
            let message =
                format!("{at}: The final block in an assistant message cannot be `thinking`.");
            Err(Fault::new(message))
        }
        None => Ok(()),
    }
}

fn invalid(part: &BlockRef<'_>) -> Fault {
    Fault::new(format!("{}: Invalid `signature` in `thinking` block", part.at))
}

/// The end of a conversation: a running turn keeps its thinking, and prefill is refused if thinking
/// or tools are enabled.
fn in_progress(body: &Value, turns: &[Turn<'_>]) -> Verdict {
    let thinking = text(&body["thinking"], "type");
    let Some(last) = turns.last() else { return Ok(()) };
    if last.role == "assistant" {
        let has_tools = !list(&body["tools"]).is_empty();
        if has_tools || matches!(thinking, "enabled" | "adaptive") {
            refuse!(
                "This model does not support assistant message prefill. The conversation must end \
                 with a user message."
            );
        }
        let said = last.blocks.last().map(|part| part.text.unwrap_or_else(|| part.get("text")));
        if said.is_some_and(|text| text.ends_with(char::is_whitespace)) {
            refuse!("messages: final assistant content cannot end with trailing whitespace");
        }
        return Ok(());
    }
    let in_tools = last.blocks.first().is_some_and(|part| part.kind() == "tool_result");
    let model = turns.iter().rev().nth(1).filter(|_| in_tools && thinking == "enabled");
    let first = model.and_then(|turn| turn.blocks.first());
    match first.filter(|part| !part.is_thought()) {
        None => Ok(()),
        Some(part) => Err(Fault::new(format!(
            "{}.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is \
             enabled, a final `assistant` message must start with a thinking block (preceeding the \
             lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking \
             blocks from previous turns. To avoid this requirement, disable `thinking`.",
            part.at,
            part.kind()
        ))),
    }
}
