//! `search_sessions`: searches the text of sessions.

use ctx_core::Result;
use ctx_core::text::word_end;
use ctx_runtime::lookup::{self, ArchiveProgress, SearchQuery};
use ctx_session::clock;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;

use super::{
    MOST_BYTES, ToolEntry, archive_schema, described, minute, of_archive, reads, with_notes,
};
use crate::Setup;
use crate::output::{ToolOutput, arguments, at_most};

pub(super) const TOOL: ToolEntry = reads("search_sessions", describe, call);

const LIMIT: usize = 10;
const MOST: usize = 50;

/// Maximum characters of a hit; `expand` returns the rest.
const TEXT_CHARS: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The words to search for
    query: String,
    /// Only this session, by its key, its id or a prefix of the id; default: the session that the
    /// server was started with, else all sessions
    session: Option<String>,
    /// Maximum number of hits (default 10, at most 50)
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchReport {
    #[serde(flatten)]
    searched: lookup::SearchReport,
    memory_enabled: bool,
    archive: Option<ArchiveProgress>,
    warnings: Vec<String>,
}

fn describe() -> Tool {
    let title = "Search earlier conversations";
    let description = "Searches the archive of this agent's sessions for words. The best hits come \
        first, each with its session, its entry (for `expand`), speaker, time and score.";
    let output = json!({
        "type": "object",
        "properties": {
            "session": { "type": ["string", "null"], "description": "null if all were searched" },
            "hits": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "session": { "type": "string" }, "entry": { "type": ["string", "null"] },
                    "role": { "type": "string" }, "score": { "type": "number" },
                    "text": { "type": "string" },
                    "timestamp": { "type": "integer", "description": "milliseconds since 1970" }
                },
                "required": ["session", "role", "score", "text"]
            } },
            "memoryEnabled": { "type": "boolean" }, "archive": archive_schema(),
            "warnings": { "type": "array", "items": { "type": "string" } }
        },
        "required": ["hits", "memoryEnabled", "warnings"]
    });
    described::<Params>("search_sessions", title, description, output)
}

fn call(setup: &Setup, given: JsonObject) -> Result<ToolOutput> {
    let Params { query, session, limit } = arguments(given)?;
    at_most("query", &query, MOST_BYTES)?;
    let lookup = setup.lookup()?;
    let explicit = session.is_some();
    let session = setup.memory_name(&lookup, session.as_deref())?;
    // With `crossSession`, the default session does not limit the search.
    let is_one = session.is_named && (explicit || !lookup.config.cross_session);
    let only = is_one.then_some(session.name.as_str());
    let search = SearchQuery {
        query: &query,
        session: only,
        limit: limit.unwrap_or(LIMIT).clamp(1, MOST),
        explain: false,
        now: clock::now(),
    };
    let mut searched = Handle::current().block_on(lookup.search(&search))?;
    for hit in &mut searched.hits {
        if let Some((at, _)) = hit.text.char_indices().nth(TEXT_CHARS) {
            hit.text.truncate(word_end(&hit.text, at));
            hit.text.push('…');
        }
    }
    let mut warnings = lookup.warnings.clone();
    warnings.append(&mut searched.warnings);
    let (archive, note) = of_archive(setup, &lookup.config);
    let text = with_notes(text(&searched), &warnings, note.as_deref());
    let memory_enabled = lookup.config.enabled;
    ToolOutput::new(text, &SearchReport { searched, memory_enabled, archive, warnings })
}

fn text(searched: &lookup::SearchReport) -> String {
    if searched.hits.is_empty() {
        return "No matches in the archive.".to_owned();
    }
    let hits = searched.hits.iter().map(|hit| {
        let entry = hit.entry.as_deref().map(|id| format!(" [e:{id}]")).unwrap_or_default();
        let (score, at, role) = (hit.score, minute(hit.timestamp), hit.role.name());
        format!("{score:.3} {at} {role}, session {}{entry}\n{}", hit.session, hit.text)
    });
    hits.collect::<Vec<_>>().join("\n\n")
}
