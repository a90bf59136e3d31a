//! `remember`: stores a fact.

use ctx_core::{Chars, Error, ErrorKind, Result};
use ctx_memory::facts::CONTENT_MAX;
use ctx_session::clock;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{MOST_BYTES, ToolEntry, described};
use crate::Setup;
use crate::output::{ToolOutput, arguments, at_most};

pub(super) const TOOL: ToolEntry = ToolEntry { name: "remember", describe, call, writes: true };

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The fact, as one sentence of at most 240 characters
    text: String,
    /// The session of the fact, by its key or its id; default: the session that the server was
    /// started with
    session: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RememberReport {
    session: String,
    /// The stored fact, with secrets redacted.
    text: String,
    /// Whether anything was redacted.
    redacted: bool,
    /// Whether the fact is new.
    remembered: bool,
    /// The number of facts it supersedes.
    superseded: usize,
}

fn describe() -> Tool {
    let title = "Remember a fact";
    let description = "Stores one fact in the long-term memory of this agent, where `recall` finds \
        it in later conversations: a decision, a preference, how something is set up. One sentence \
        of at most 240 characters; secrets are redacted.";
    let output = json!({
        "type": "object",
        "properties": {
            "session": { "type": "string" },
            "text": { "type": "string", "description": "the fact as stored" },
            "redacted": { "type": "boolean" },
            "remembered": { "type": "boolean", "description": "false if it was already known" },
            "superseded": { "type": "integer", "description": "number of facts it supersedes" }
        },
        "required": ["session", "text", "redacted", "remembered", "superseded"]
    });
    let hints = ToolAnnotations::with_title(title).read_only(false).destructive(false);
    let hints = hints.idempotent(true).open_world(false);
    described::<Params>("remember", title, description, output).annotate(hints)
}

fn call(setup: &Setup, given: JsonObject) -> Result<ToolOutput> {
    let Params { text, session } = arguments(given)?;
    at_most("text", &text, MOST_BYTES)?;
    if Chars::of(&text) > CONTENT_MAX {
        return Err(Error::new(ErrorKind::InvalidInput, "the text is too long for one fact")
            .with("most", CONTENT_MAX.0)
            .hint("store it as several facts, one sentence each"));
    }
    let lookup = setup.lookup()?;
    let session = setup.memory_name(&lookup, session.as_deref())?.name;
    let (stored, learned) = lookup.remember(&session, &text, clock::now())?;
    if learned.empty > 0 {
        return Err(Error::new(ErrorKind::InvalidInput, "the text contains no fact to store")
            .hint("state the fact in words"));
    }
    let report = RememberReport {
        redacted: stored != text,
        text: stored,
        session,
        remembered: !learned.is_nothing(),
        superseded: learned.superseded.len(),
    };
    let answer = match (report.remembered, report.redacted) {
        (false, _) => "Already known.".to_owned(),
        (true, false) => "Remembered.".to_owned(),
        (true, true) => format!("Remembered, with secrets redacted: {}", report.text),
    };
    ToolOutput::new(answer, &report)
}
