//! Gemini CLI's chat files, as a session of pi: what was set, repeated or taken back is settled first.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ctx_core::{Block, CallId, Timestamp, Usage};
use ctx_dialect::json::{Fresh, Object, array, elements};
use ctx_dialect::{gemini, pi};
use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::{PiLines, timestamp};

/// The folder in which a chat was started: Gemini CLI notes it beside the folder of the chats.
pub(crate) fn gemini_project(chat: &Path) -> Option<PathBuf> {
    let noted = std::fs::read_to_string(chat.parent()?.parent()?.join(".project_root")).ok()?;
    Some(PathBuf::from(noted.trim())).filter(|project| project.is_absolute())
}

/// What the last answer in a text reports, and its model.
pub(crate) fn gemini_usage(text: &str) -> Option<(Usage, Option<String>)> {
    let (_, last) = text.rsplit_once("\"tokens\":")?;
    let model = last.split_once("\"model\":").and_then(|(_, rest)| rest.split('"').nth(1));
    Some((usage(&Object::parse_prefix(last).0), model.map(str::to_owned)))
}

/// Gemini counts what came from the cache as part of the input.
fn usage(tokens: &Object<'_>) -> Usage {
    let count = |key| tokens.count(key).unwrap_or_default();
    Usage {
        input: count("input").saturating_sub(count("cached")),
        output: count("output").saturating_add(count("thoughts")),
        cache_read: count("cached"),
        cache_write: 0,
        cache_write_hour: 0,
        total_tokens: tokens.count("total"),
    }
}

/// The file as lines of a pi session. Lines that cannot be read stay as they are.
pub(super) fn to_pi(text: &str, path: Option<&Path>) -> Vec<u8> {
    let mut messages: IndexMap<String, &RawValue> = IndexMap::new();
    let (mut bad, mut id, mut started) = (Vec::new(), None, None);
    let document = serde_json::from_str::<&RawValue>(text).ok();
    let lines = text.lines().map(|line| serde_json::from_str(line).map_err(|_| line));
    let records = document.map(Ok).into_iter().chain(lines.filter(|_| document.is_none()));
    for record in records {
        let raw: &RawValue = match record {
            Ok(raw) => raw,
            Err(line) => {
                bad.extend((!line.trim().is_empty()).then_some(line));
                continue;
            }
        };
        let object = Object::of(raw).unwrap_or_default();
        let set = object.object("$set").unwrap_or_default();
        if let Some(from) = object.text("$rewindTo") {
            messages.truncate(messages.get_index_of(&*from).unwrap_or(0));
        } else if let Some(list) = set.array("messages").or_else(|| object.array("messages")) {
            messages = list.into_iter().filter_map(with_id).collect();
        } else if let Some((id, raw)) = with_id(raw) {
            messages.insert(id, raw);
        }
        id = id.or_else(|| object.id("sessionId").map(Cow::into_owned));
        started = started.or_else(|| object.owned("startTime"));
    }
    let project = path.and_then(gemini_project);
    let project = project.as_deref().and_then(Path::to_str);
    let mut lines = PiLines::new(&id.unwrap_or_default(), started.as_deref(), project);
    let answered: HashSet<CallId> = messages
        .values()
        .flat_map(|raw| gemini::parse_raw(raw).blocks)
        .filter_map(|block| match block {
            Block::ToolResult(result) => Some(result.call_id),
            _ => None,
        })
        .collect();
    for (id, raw) in &messages {
        let message = Object::of(raw).unwrap_or_default();
        let time = message.get("timestamp").map_or("null", RawValue::get);
        lines.messages(id, time, parts(&message, raw, &answered));
    }
    lines.lines.extend(bad.into_iter().map(str::to_owned));
    lines.end()
}

fn with_id(raw: &RawValue) -> Option<(String, &RawValue)> {
    let object = Object::of(raw).filter(|object| object.has("type"))?;
    Some((object.id("id")?.into_owned(), raw))
}

/// A message as messages of pi: an answer is followed by the results that no other message holds.
fn parts(message: &Object<'_>, raw: &RawValue, answered: &HashSet<CallId>) -> Vec<String> {
    match message.text("type").as_deref() {
        Some("user") => return pi::write(&gemini::parse_raw(raw)),
        Some("gemini") => {}
        // What the client tells its user.
        _ => return Vec::new(),
    }
    // Thoughts are told to people: they are not sent again.
    let content = message.get("content");
    let list = content.and_then(elements).or_else(|| Some(vec![content?]));
    let mut blocks: Vec<String> =
        list.unwrap_or_default().into_iter().map(|raw| raw.get().to_owned()).collect();
    let said = gemini::parse_raw(raw);
    let mut results = Vec::new();
    for raw in message.array("toolCalls").unwrap_or_default() {
        let Some(call) = Object::of(raw) else { continue };
        let id = call.text("id").unwrap_or_default();
        if said.tool_calls().all(|call| *call.id != *id) {
            blocks.push(format!("{{\"functionCall\":{}}}", raw.get()));
        }
        if !answered.contains(&*id)
            && let Some(result) = call.get("result")
        {
            let content = Fresh::new().text("role", "user").raw("parts", result.get()).end();
            results.extend(gemini::parse(&content).iter().flat_map(pi::write));
        }
    }
    let usage = message.object("tokens").map(|tokens| usage(&tokens)).unwrap_or_default();
    let usage = serde_json::to_string(&usage).unwrap_or_default();
    let answer = Fresh::new()
        .text("role", "assistant")
        .raw("content", array(blocks))
        .text("provider", "google")
        .text_if("model", message.text("model").as_deref())
        .raw("usage", usage)
        .plain_if("timestamp", timestamp(message).map(|Timestamp(at)| at));
    std::iter::once(answer.end()).chain(results).collect()
}
