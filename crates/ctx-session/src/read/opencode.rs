//! What `opencode export` writes, or older versions keep in many files, as a session of pi.

use std::path::{Path, PathBuf};

use ctx_core::Usage;
use ctx_dialect::json::{Fresh, Object, array};
use serde_json::value::RawValue;

use super::PiLines;

/// The document that an export would be, of the file of a session: messages have a file each in
/// `message/SESSION` of the storage, and their parts in `part/MESSAGE`.
pub(super) fn collected(session: &str, file: &Path) -> Option<String> {
    let messages = files(&file.ancestors().nth(3)?.join("message").join(file.file_stem()?));
    let messages = messages.iter().filter_map(|message| {
        let part = file.ancestors().nth(3)?.join("part").join(message.file_stem()?);
        let parts = array(files(&part).iter().filter_map(|part| json(part)));
        Some(Fresh::new().raw("info", json(message)?).raw("parts", parts).end())
    });
    Some(Fresh::new().raw("info", session.trim()).raw("messages", array(messages)).end())
}

/// What the provider reported of the last answer of a session in many files, and its model.
pub(crate) fn opencode_usage(file: &Path) -> Option<(Usage, Option<String>)> {
    let messages = files(&file.ancestors().nth(3)?.join("message").join(file.file_stem()?));
    messages.iter().rev().find_map(|message| opencode_usage_in(&json(message)?))
}

/// What an answer reports, unless it is a summary: what was sent for that one is not the context.
pub(crate) fn opencode_usage_in(message: &str) -> Option<(Usage, Option<String>)> {
    let info = Object::parse(message).ok().filter(|info| !info.is_true("summary"))?;
    let usage = usage(&info.object("tokens")?);
    (usage.prompt() > 0).then(|| (usage, info.owned("modelID")))
}

/// The files of a folder by their names, which are ids that count up. Links are not followed.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// A file that is JSON, and not half of it.
fn json(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    serde_json::from_str::<&RawValue>(&text).is_ok().then_some(text)
}

/// The document as lines of a pi session.
pub(super) fn to_pi(document: &Object<'_>) -> Vec<u8> {
    let info = document.object("info").unwrap_or_default();
    let id = info.text("id").unwrap_or_default();
    let mut lines = PiLines::new(&id, None, info.text("directory").as_deref());
    let mut kept = None;
    for message in document.array("messages").unwrap_or_default() {
        let message = Object::of(message).unwrap_or_default();
        let info = message.object("info").unwrap_or_default();
        let id = info.text("id").unwrap_or_default();
        let time = info.object("time").and_then(|time| time.get("created"));
        let parts = message.array("parts").unwrap_or_default();
        let parts: Vec<_> = parts.into_iter().filter_map(Object::of).collect();
        let time = time.map_or("null", RawValue::get);
        // What asks for a summary says which messages stay; a model is sent nothing else of it.
        if let Some(asks) = parts.iter().find(|part| is(part, "compaction")) {
            kept = asks.owned("tail_start_id");
            continue;
        }
        let blocks = array(parts.iter().filter_map(block));
        let role = info.text("role").unwrap_or_default();
        let mut fresh = Fresh::new().text("role", &role).raw("content", blocks);
        if role == "assistant" {
            let tokens = usage(&info.object("tokens").unwrap_or_default());
            fresh = fresh
                .text_if("provider", info.text("providerID").as_deref())
                .text_if("model", info.text("modelID").as_deref())
                .raw("usage", serde_json::to_string(&tokens).unwrap_or_default());
        }
        let results = parts.iter().filter_map(result);
        let parent = lines.parent.clone();
        lines.messages(&id, time, std::iter::once(fresh.end()).chain(results));
        if info.is_true("summary") {
            // The request for it was none of the conversation: it stands on a branch of its own.
            lines.parent = parent;
            if info.has("error") {
                continue;
            }
            let texts: Vec<_> = parts.iter().filter_map(|part| part.text("text")).collect();
            let id = format!("{id}.summary");
            // One that keeps nothing says so by naming itself.
            let first = kept.take().unwrap_or_else(|| id.clone());
            let summary = Fresh::new().text("summary", &texts.join("\n\n"));
            lines.entry("compaction", &id, time, &summary.text("firstKeptEntryId", &first));
        }
    }
    lines.end()
}

fn is(part: &Object<'_>, kind: &str) -> bool {
    part.text("type").is_some_and(|found| found == kind)
}

fn usage(tokens: &Object<'_>) -> Usage {
    let cache = tokens.object("cache").unwrap_or_default();
    let count = |of: &Object<'_>, key| of.count(key).unwrap_or_default();
    Usage {
        input: count(tokens, "input"),
        output: count(tokens, "output").saturating_add(count(tokens, "reasoning")),
        cache_read: count(&cache, "read"),
        cache_write: count(&cache, "write"),
        ..Usage::default()
    }
}

/// A part of a message that a model is sent.
fn block(part: &Object<'_>) -> Option<String> {
    let text = |kind: &str, key: &str, text: &str| {
        Some(Fresh::new().text("type", kind).text(key, text).end())
    };
    match part.text("type").as_deref()? {
        "text" if part.is_true("ignored") => None,
        "text" => text("text", "text", &part.text("text")?),
        "reasoning" => text("thinking", "thinking", &part.text("text")?),
        "file" if part.text("mime")?.starts_with("image/") => {
            text("image", "url", &part.text("url")?)
        }
        "tool" => {
            let state = part.object("state").unwrap_or_default();
            let call = Fresh::new().text("type", "toolCall").text("id", &part.text("callID")?);
            let arguments = state.get("input").map_or("{}", RawValue::get);
            Some(call.text("name", &part.text("tool")?).raw("arguments", arguments).end())
        }
        _ => None,
    }
}

/// The result of a call, where there is one.
fn result(part: &Object<'_>) -> Option<String> {
    let (id, state) = (part.text("callID")?, part.object("state")?);
    let error = state.text("error");
    let said = state.text("output").or_else(|| error.clone())?;
    let content = Fresh::new().text("type", "text").text("text", &said).end();
    let result = Fresh::new().text("role", "toolResult").text("toolCallId", &id);
    let result = result.text("toolName", &part.text("tool")?).raw("content", array([content]));
    Some(result.plain("isError", error.is_some()).end())
}
