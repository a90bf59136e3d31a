//! The tools, one per file: parameters, description and implementation.

mod context_status;
mod expand;
mod recall;
mod remember;
mod search_sessions;

use std::sync::Arc;

use ctx_core::{Result, Timestamp};
use ctx_memory::Config;
use ctx_runtime::lookup::ArchiveProgress;
use rmcp::handler::server::common::schema_for_type;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::output::ToolOutput;
use super::{Setup, Writes};

/// Maximum length of an argument in bytes. Questions and citations are shorter.
const MOST_BYTES: usize = 10_000;

/// A tool.
#[derive(Clone, Copy)]
pub(super) struct ToolEntry {
    pub(super) name: &'static str,
    describe: fn() -> Tool,
    /// Runs the tool. It blocks on files.
    pub(super) call: fn(&Setup, JsonObject) -> Result<ToolOutput>,
    writes: bool,
}

const ALL: [ToolEntry; 5] =
    [recall::TOOL, expand::TOOL, remember::TOOL, context_status::TOOL, search_sessions::TOOL];

/// Returns the available tools, with or without those that write.
pub(super) fn all(writes: bool) -> impl Iterator<Item = ToolEntry> {
    ALL.into_iter().filter(move |tool| writes || !tool.writes)
}

impl ToolEntry {
    pub(super) fn tool(self) -> Tool {
        (self.describe)()
    }
}

/// Returns a read-only tool.
const fn reads(
    name: &'static str,
    describe: fn() -> Tool,
    call: fn(&Setup, JsonObject) -> Result<ToolOutput>,
) -> ToolEntry {
    ToolEntry { name, describe, call, writes: false }
}

/// Returns the description of a tool, which only reads.
fn described<Params: JsonSchema + 'static>(
    name: &'static str,
    title: &str,
    description: &'static str,
    output: Value,
) -> Tool {
    let reads = ToolAnnotations::with_title(title).read_only(true).open_world(false);
    let tool = Tool::new(name, description, schema_for_type::<Params>());
    let tool = tool.with_title(title).annotate(reads);
    match output {
        Value::Object(schema) => tool.with_raw_output_schema(Arc::new(schema)),
        _ => tool,
    }
}

/// Formats a time in UTC, to the minute.
fn minute(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).ok();
    at.map_or_else(|| "-".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// Returns the archiving progress of other agents' sessions, and a note on sessions that are not
/// archived.
fn of_archive(setup: &Setup, config: &Config) -> (Option<ArchiveProgress>, Option<String>) {
    let Some(archiver) = setup.archiver() else {
        let file = setup.host.home.config_file();
        let why = match (setup.writes, config.archive_sessions) {
            (Writes::Nobody, _) => "this server is read-only".to_owned(),
            (_, false) => format!(
                "agents.defaults.memoryContext.archiveSessions is false in {}",
                file.display()
            ),
            (_, true) => return (None, None),
        };
        return (None, Some(format!("no sessions are archived: {why}")));
    };
    let progress = archiver.progress();
    let note = progress.map_or_else(
        || Some("the search for sessions is running; this server has archived none yet".to_owned()),
        |ArchiveProgress { sessions, pending, unreadable }| {
            let of = |n: usize, what| (n > 0).then(|| format!("{n} of {sessions} sessions {what}"));
            let notes = [of(pending, "are not archived yet"), of(unreadable, "cannot be read")];
            let notes: Vec<_> = notes.into_iter().flatten().collect();
            Some(notes.join("; ")).filter(|notes| !notes.is_empty())
        },
    );
    (progress, note)
}

/// Returns the schema of the archiving progress.
fn archive_schema() -> Value {
    let integer = json!({ "type": "integer" });
    json!({
        "type": ["object", "null"],
        "description": "the sessions of other agents that were found, and how many of them are not \
            archived yet or cannot be read; null if none are archived",
        "properties": { "sessions": integer, "pending": integer, "unreadable": integer },
        "required": ["sessions", "pending", "unreadable"]
    })
}

/// Appends warnings and a note to a text.
fn with_notes(mut text: String, warnings: &[String], note: Option<&str>) -> String {
    for warning in warnings {
        text.push_str(&format!("\nwarning: {warning}"));
    }
    if let Some(note) = note {
        text.push_str(&format!("\nnote: {note}"));
    }
    text
}
