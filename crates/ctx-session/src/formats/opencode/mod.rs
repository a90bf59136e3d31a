//! opencode's sessions, translated to pi sessions: the output of `opencode export`, the database,
//! and the files of older versions.

mod database;

use std::path::{Path, PathBuf};

use ctx_core::{Result, Usage};
use ctx_dialect::json::{Object, ObjectWriter, array};
use serde_json::value::RawValue;

use super::{Agent, AgentSpec, Beginning, Database, Format, FormatSpec, LastUsage, PiLines, pi};

const DATABASES: &str = "opencode*.db";

impl Format {
    /// The output of `opencode export`.
    pub const OPENCODE: Self = Self(&FormatSpec {
        name: "opencode",
        begins: |first| {
            let info = first.object("info");
            let info = info.as_ref().unwrap_or(first);
            info.has("directory") && info.text("id").is_some_and(|id| id.starts_with("ses_"))
        },
        read: Some(|source| pi::read_translated(source, to_pi)),
        agents: &[Agent::OPENCODE],
        database: Some(&Database {
            agent: Agent::OPENCODE,
            files: DATABASES,
            parts: database::parts,
            sessions: database::sessions,
            export: database::export,
        }),
        note_beginning,
        last_usage,
        ..FormatSpec::NONE
    });
}

impl Agent {
    /// opencode: its database, and the files of older versions.
    pub const OPENCODE: Self = Self(&AgentSpec {
        name: "opencode",
        folders: |environment| vec![environment.below("XDG_DATA_HOME", ".local/share", "opencode")],
        layouts: &[&["storage", "session", "*", "ses_*.json"], &[DATABASES]],
        writes_in_steps: true,
        ..AgentSpec::NONE
    });
}

fn note_beginning(_: &str, line: &Object<'_>, known: &mut Beginning) {
    let info = line.object("info");
    let info = info.as_ref().unwrap_or(line);
    known.take(info, "id");
    known.cwd = info.owned("directory");
    known.is_subagent = info.get("parentID").is_some();
    known.has_message = true;
}

fn last_usage(session: &Path) -> Option<LastUsage> {
    if let Some((database, id)) = database::parts(session) {
        return usage_in(&database::last_answer(database, id).ok()??);
    }
    let messages = messages(session)?;
    messages.iter().rev().find_map(|message| usage_in(&json(message)?))
}

/// Builds the document that an export would write, from a session's file and the storage around it:
/// `message/SESSION` contains a file for each message, `part/MESSAGE` a file for each of its parts.
fn collected(session: &str, file: &Path) -> Option<String> {
    let messages = messages(file)?;
    let messages = messages.iter().filter_map(|message| {
        let part = file.ancestors().nth(3)?.join("part").join(message.file_stem()?);
        let parts = array(files(&part).iter().filter_map(|part| json(part)));
        Some(ObjectWriter::new().raw("info", json(message)?).raw("parts", parts).end())
    });
    Some(ObjectWriter::new().raw("info", session.trim()).raw("messages", array(messages)).end())
}

/// Returns the files of a session's messages.
fn messages(session: &Path) -> Option<Vec<PathBuf>> {
    Some(files(&session.ancestors().nth(3)?.join("message").join(session.file_stem()?)))
}

fn usage_in(message: &str) -> Option<LastUsage> {
    let info = Object::parse(message).ok()?;
    LastUsage::of(usage(&info.object("tokens")?), info.owned("modelID"), None)
}

/// Returns the files of a folder sorted by name; names are ascending ids. Links are not followed.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Reads a file; `None` if it is not complete JSON.
fn json(file: &Path) -> Option<String> {
    let text = crate::disk::read_to_string(file).ok()?;
    serde_json::from_str::<&RawValue>(&text).is_ok().then_some(text)
}

/// Converts an export, or the file of a session, to lines of a pi session.
fn to_pi(text: &str, path: Option<&Path>) -> Result<Vec<u8>> {
    let document = Object::parse_prefix(text.trim_start()).0;
    if document.has("messages") {
        return convert(&document);
    }
    let collected = path.and_then(|path| collected(text, path)).unwrap_or_default();
    convert(&Object::parse(&collected)?)
}

/// Converts an exported document to lines of a pi session.
fn convert(document: &Object<'_>) -> Result<Vec<u8>> {
    let info = document.object("info").unwrap_or_default();
    let id = info.text("id").unwrap_or_default();
    let mut lines = PiLines::in_memory(&id, None, info.text("directory").as_deref())?;
    let mut kept = None;
    for message in document.array("messages").unwrap_or_default() {
        let message = Object::of(message).unwrap_or_default();
        let info = message.object("info").unwrap_or_default();
        let id = info.text("id").unwrap_or_default();
        let time = info.object("time").and_then(|time| time.get("created"));
        let parts = message.array("parts").unwrap_or_default();
        let parts: Vec<_> = parts.into_iter().filter_map(Object::of).collect();
        let time = time.map_or("null", RawValue::get);
        // The request for a summary names the first kept message; it is not a message itself.
        if let Some(request) = parts.iter().find(|part| is(part, "compaction")) {
            kept = request.owned("tail_start_id");
            continue;
        }
        let blocks = array(parts.iter().filter_map(block));
        let role = info.text("role").unwrap_or_default();
        let mut fresh = ObjectWriter::new().text("role", &role).raw("content", blocks);
        if role == "assistant" {
            let tokens = usage(&info.object("tokens").unwrap_or_default());
            fresh = fresh
                .text_if("provider", info.text("providerID").as_deref())
                .text_if("model", info.text("modelID").as_deref())
                .raw("usage", serde_json::to_string(&tokens).unwrap_or_default());
        }
        let results = parts.iter().filter_map(result);
        let parent = lines.parent.clone();
        lines.messages(&id, time, std::iter::once(fresh.end()).chain(results))?;
        if info.is_true("summary") {
            // The answer to that request is not part of the conversation: it ends a branch.
            lines.parent = parent;
            if info.has("error") {
                continue;
            }
            let texts: Vec<_> = parts.iter().filter_map(|part| part.text("text")).collect();
            let id = format!("{id}.summary");
            // A compaction that keeps nothing names itself.
            let first = kept.take().unwrap_or_else(|| id.clone());
            let summary = ObjectWriter::new().text("summary", &texts.join("\n\n"));
            lines.entry("compaction", &id, time, &summary.text("firstKeptEntryId", &first))?;
        }
    }
    Ok(lines.out)
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

/// Converts a part to a block; `None` if it is not sent to a model.
fn block(part: &Object<'_>) -> Option<String> {
    let text = |kind: &str, key: &str, text: &str| {
        Some(ObjectWriter::new().text("type", kind).text(key, text).end())
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
            let call =
                ObjectWriter::new().text("type", "toolCall").text("id", &part.text("callID")?);
            let arguments = state.get("input").map_or("{}", RawValue::get);
            Some(call.text("name", &part.text("tool")?).raw("arguments", arguments).end())
        }
        _ => None,
    }
}

/// Converts the result of a call to a message, if there is one.
fn result(part: &Object<'_>) -> Option<String> {
    let (id, state) = (part.text("callID")?, part.object("state")?);
    let error = state.text("error");
    let output = state.text("output").or_else(|| error.clone())?;
    let content = ObjectWriter::new().text("type", "text").text("text", &output).end();
    let result = ObjectWriter::new().text("role", "toolResult").text("toolCallId", &id);
    let result = result.text("toolName", &part.text("tool")?).raw("content", array([content]));
    Some(result.plain("isError", error.is_some()).end())
}
