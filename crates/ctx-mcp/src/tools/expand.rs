//! `expand`: the original messages behind a citation.

use std::sync::Arc;

use ctx_core::{Entry, EntryId, Error, ErrorKind, Result, Timestamp};
use ctx_runtime::lookup::cited::{expand, format_message};
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{MOST_BYTES, ToolEntry, described, reads};
use crate::Setup;
use crate::output::{ToolOutput, arguments, at_most};

pub(super) const TOOL: ToolEntry = reads("expand", describe, call);

/// The default and the maximum number of characters.
const CHARS: usize = 20_000;
const MOST_CHARS: usize = 200_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Params {
    /// An entry id as cited, with or without `[e:`, or several of them; or the id of a compaction,
    /// for all messages that it replaced
    entry: String,
    /// The session, as returned by `recall` and `search_sessions`: its key, its id or a prefix of
    /// the id; default: the session that the server was started with, else the newest of its folder
    session: Option<String>,
    /// The character to start from: `next` of the previous answer, for a text that was too long
    #[serde(default)]
    from: usize,
    /// Maximum number of characters (default 20000, at most 200000)
    #[schemars(range(min = 1, max = 200_000))]
    max_chars: Option<usize>,
}

#[derive(Serialize)]
struct ExpandReport {
    session: String,
    /// The messages of the text.
    messages: Vec<Cited>,
    from: usize,
    /// The character at which the text continues; null at the end.
    next: Option<usize>,
    text: String,
}

#[derive(Serialize)]
struct Cited {
    entry: EntryId,
    role: String,
    timestamp: Option<Timestamp>,
}

fn describe() -> Tool {
    let title = "Read the messages behind a citation";
    let description = "The original messages behind a citation such as [e:1a2b3c4d] in a summary, \
        or behind a whole compaction: word for word, including tool calls and results. A long text \
        comes in parts: call again with `from` set to `next`.";
    let output = json!({
        "type": "object",
        "properties": {
            "session": { "type": "string" },
            "messages": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "entry": { "type": "string" },
                    "role": { "type": "string" },
                    "timestamp": {
                        "type": ["integer", "null"], "description": "milliseconds since 1970"
                    }
                },
                "required": ["entry", "role"]
            } },
            "from": { "type": "integer" },
            "next": { "type": ["integer", "null"], "description": "where the text continues" },
            "text": { "type": "string" }
        },
        "required": ["session", "messages", "from", "next", "text"]
    });
    described::<Params>("expand", title, description, output)
}

fn call(setup: &Setup, given: JsonObject) -> Result<ToolOutput> {
    let Params { entry, session, from, max_chars } = arguments(given)?;
    at_most("entry", &entry, MOST_BYTES)?;
    let most = max_chars.unwrap_or(CHARS).clamp(1, MOST_CHARS);
    let (session, found) = match (setup.open(session.as_deref()), session.as_deref()) {
        (Ok(opened), _) => {
            let found = expand(&opened.transcript, &[&entry]);
            let found = found.map_err(|error| match error.hint_text() {
                None => error.with("session", &opened.name).hint(
                    "take an id from a citation of a summary in this session, from `recall` or \
                     `search_sessions`, or from the session's resource",
                ),
                Some(_) => error,
            })?;
            (opened.name, found)
        }
        (Err(error), Some(session)) => match setup.archived(session, &entry) {
            Ok(Some(found)) => (session.to_owned(), found),
            _ => return Err(error),
        },
        (Err(error), None) => return Err(error),
    };
    let mut report =
        ExpandReport { session, messages: Vec::new(), from, next: None, text: String::new() };
    let chars = report.fill(&found, most)?;
    if report.messages.is_empty() {
        return Err(Error::new(ErrorKind::InvalidInput, "the text ends before that character")
            .with("from", from)
            .with("chars", chars)
            .hint(format!(
                "set `from` to `next` of the previous answer; omit it to read {} again",
                ctx_core::text::clip(&entry, 40)
            )));
    }
    let text = match report.next {
        Some(next) => format!("{}\n[there is more: call again with from={next}]", report.text),
        None => report.text.trim_end().to_owned(),
    };
    ToolOutput::new(text, &report)
}

impl ExpandReport {
    /// Adds at most `most` characters of the messages. Returns the number of characters read.
    fn fill(&mut self, entries: &[Arc<Entry>], most: usize) -> Result<usize> {
        // Only the requested part of the text is built: a compaction may replace very many
        // messages.
        let (mut at, mut taken) = (0, 0);
        for entry in entries {
            let message = entry.message()?;
            let text = format!("{}\n", format_message(entry, &message));
            let chars = text.chars().count();
            let skipped = self.from.saturating_sub(at).min(chars);
            at += chars;
            if skipped == chars {
                continue;
            }
            if taken == most {
                self.next = Some(self.from + taken);
                break;
            }
            let part: String = text.chars().skip(skipped).take(most - taken).collect();
            let added = part.chars().count();
            taken += added;
            self.text.push_str(&part);
            let (id, role) = (entry.id().clone(), message.role.name().to_owned());
            self.messages.push(Cited { entry: id, role, timestamp: entry.timestamp() });
            if skipped + added < chars {
                self.next = Some(self.from + taken);
                break;
            }
        }
        Ok(at)
    }
}
