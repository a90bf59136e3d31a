//! Gemini CLI's chat files, translated to a pi session. Settings, repeated records and rewinds are
//! applied first.

mod compressed;

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ctx_core::{Block, CallId, Result, Timestamp, Usage};
use ctx_dialect::json::{Object, ObjectWriter, array, elements};
use ctx_dialect::{gemini, pi as pi_dialect};
use serde_json::value::RawValue;

use super::{Agent, AgentSpec, Beginning, Evidence, Format, FormatSpec, LastUsage, PiLines, pi};
use crate::read::timestamp;
use compressed::{Messages, remove_snapshot, replace};

impl Format {
    /// Gemini CLI's chat file: one record per line, or one document.
    pub const GEMINI_CLI: Self = Self(&FormatSpec {
        name: "gemini-cli",
        begins,
        judge_line: |kind, line, _| (kind.is_none() && begins(line)).then_some(Evidence::Certain),
        read: Some(|source| pi::read_translated(source, to_pi)),
        agents: &[Agent::GEMINI_CLI],
        note_beginning,
        project: Some(project),
        last_usage,
        ..FormatSpec::NONE
    });
}

impl Agent {
    /// Gemini CLI.
    pub const GEMINI_CLI: Self = Self(&AgentSpec {
        name: "gemini-cli",
        folders: |environment| vec![environment.below("GEMINI_CLI_HOME", "", ".gemini/tmp")],
        layouts: &[&["*", "chats", "session-*"]],
        ..AgentSpec::NONE
    });
}

fn begins(first: &Object<'_>) -> bool {
    first.has("sessionId") && first.has("projectHash")
}

fn note_beginning(_: &str, line: &Object<'_>, known: &mut Beginning) {
    known.take(line, "sessionId");
    known.is_subagent |= line.text("kind").is_some_and(|kind| kind == "subagent");
    known.has_message = true;
}

/// Returns the usage of the last answer. Searches the text, because an older file is one document
/// over many lines.
fn last_usage(session: &Path) -> Option<LastUsage> {
    LastUsage::in_end(session, |end| {
        let (_, last) = std::str::from_utf8(end).ok()?.rsplit_once("\"tokens\":")?;
        let model = last.split_once("\"model\":").and_then(|(_, rest)| rest.split('"').nth(1));
        LastUsage::of(usage(&Object::parse_prefix(last).0), model.map(str::to_owned), None)
    })
}

/// Returns the folder in which a chat was started, from the file `.project_root` beside the folder
/// of the chats.
fn project(chat: &Path) -> Option<PathBuf> {
    let noted = crate::disk::read_to_string(chat.parent()?.parent()?.join(".project_root")).ok()?;
    Some(PathBuf::from(noted.trim())).filter(|project| project.is_absolute())
}

/// Parses usage. Gemini counts cached tokens as part of the input.
fn usage(tokens: &Object<'_>) -> Usage {
    let count = |key| tokens.count(key).unwrap_or_default();
    Usage {
        input: count("input").saturating_sub(count("cached")),
        output: count("output").saturating_add(count("thoughts")),
        cache_read: count("cached"),
        total_tokens: tokens.count("total"),
        ..Usage::default()
    }
}

/// Converts the file to lines of a pi session. Unreadable lines stay unchanged.
fn to_pi(text: &str, path: Option<&Path>) -> Result<Vec<u8>> {
    let (mut messages, mut compressed) = (Messages::new(), Vec::new());
    let (mut bad, mut id, mut started, mut is_resumed) = (Vec::new(), None, None, false);
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
            let list: Messages<'_> = list.into_iter().filter_map(with_id).collect();
            // A client that resumes the chat writes its beginning, then the whole history.
            if list.len() > 1 || messages.is_empty() {
                compressed.extend(replace(&mut messages, list).filter(|_| !is_resumed));
                is_resumed = false;
            }
        } else if let Some((id, raw)) = with_id(raw) {
            messages.insert(id, raw);
        }
        is_resumed |= id.is_some() && begins(&object);
        id = id.or_else(|| object.id("sessionId").map(Cow::into_owned));
        started = started.or_else(|| object.owned("startTime"));
    }
    let folder = path.and_then(project);
    let folder = folder.as_deref().and_then(Path::to_str);
    let mut lines = PiLines::in_memory(&id.unwrap_or_default(), started.as_deref(), folder)?;
    for earlier in &compressed {
        write(&mut lines, earlier.messages.iter())?;
        earlier.write_summary(&mut lines)?;
    }
    if !compressed.is_empty() {
        remove_snapshot(&mut messages);
    }
    write(&mut lines, messages.iter())?;
    for line in bad {
        lines.out.extend(line.bytes().chain([b'\n']));
    }
    Ok(lines.out)
}

/// Writes messages to lines of a pi session.
fn write<'a>(
    lines: &mut PiLines<Vec<u8>>,
    messages: impl Iterator<Item = (&'a String, &'a &'a RawValue)> + Clone,
) -> Result<()> {
    let answered: HashSet<CallId> = messages
        .clone()
        .flat_map(|(_, raw)| gemini::parse_raw(raw).blocks)
        .filter_map(|block| match block {
            Block::ToolResult(result) => Some(result.call_id),
            _ => None,
        })
        .collect();
    for (id, raw) in messages {
        let message = Object::of(raw).unwrap_or_default();
        let time = message.get("timestamp").map_or("null", RawValue::get);
        lines.messages(id, time, parts(&message, raw, &answered))?;
    }
    Ok(())
}

fn with_id(raw: &RawValue) -> Option<(String, &RawValue)> {
    let object = Object::of(raw).filter(|object| object.has("type"))?;
    Some((object.id("id")?.into_owned(), raw))
}

/// Converts a message to pi messages. An answer is followed by the results of its calls that no
/// other message contains.
fn parts(message: &Object<'_>, raw: &RawValue, answered: &HashSet<CallId>) -> Vec<String> {
    match message.text("type").as_deref() {
        Some("user") => return pi_dialect::write(&gemini::parse_raw(raw)),
        Some("gemini") => {}
        // Notices that the client shows to its user.
        _ => return Vec::new(),
    }
    // Thoughts are omitted: they are shown to the user and not sent again.
    let content = message.get("content");
    let list = content.and_then(elements).or_else(|| Some(vec![content?]));
    let mut blocks: Vec<String> =
        list.unwrap_or_default().into_iter().map(|raw| raw.get().to_owned()).collect();
    let parsed = gemini::parse_raw(raw);
    let mut results = Vec::new();
    for raw in message.array("toolCalls").unwrap_or_default() {
        let Some(call) = Object::of(raw) else { continue };
        let id = call.text("id").unwrap_or_default();
        if parsed.tool_calls().all(|call| *call.id != *id) {
            blocks.push(format!("{{\"functionCall\":{}}}", raw.get()));
        }
        if !answered.contains(&*id)
            && let Some(result) = call.get("result")
        {
            let content = ObjectWriter::new().text("role", "user").raw("parts", result.get()).end();
            results.extend(gemini::parse(&content).iter().flat_map(pi_dialect::write));
        }
    }
    let usage = message.object("tokens").map(|tokens| usage(&tokens)).unwrap_or_default();
    let usage = serde_json::to_string(&usage).unwrap_or_default();
    let answer = ObjectWriter::new()
        .text("role", "assistant")
        .raw("content", array(blocks))
        .text("provider", "google")
        .text_if("model", message.text("model").as_deref())
        .raw("usage", usage)
        .plain_if("timestamp", timestamp(message).map(|Timestamp(at)| at));
    std::iter::once(answer.end()).chain(results).collect()
}
