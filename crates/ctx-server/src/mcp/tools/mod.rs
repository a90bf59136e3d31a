//! The tools, each in its file: what it takes, what it says of itself, what it does.

mod context_status;
mod expand;
mod recall;
mod remember;
mod search_sessions;

use std::sync::Arc;

use ctx_core::{Result, Timestamp};
use ctx_memory::Config;
use ctx_runtime::ArchiveProgress;
use rmcp::handler::server::common::schema_for_type;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::answer::Answer;
use super::{Setup, Writes};

/// Longer arguments than this are no question and no citation.
const MOST_BYTES: usize = 10_000;

/// A tool.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    describe: fn() -> Tool,
    /// Does it. It reads files and waits for them: not for a thread that others wait for.
    pub(super) call: fn(&Setup, JsonObject) -> Result<Answer>,
    writes: bool,
}

const ALL: [Entry; 5] =
    [recall::TOOL, expand::TOOL, remember::TOOL, context_status::TOOL, search_sessions::TOOL];

/// The tools there are, for who may write or may not.
pub(super) fn all(writes: bool) -> impl Iterator<Item = Entry> {
    ALL.into_iter().filter(move |tool| writes || !tool.writes)
}

impl Entry {
    pub(super) fn tool(self) -> Tool {
        (self.describe)()
    }
}

/// A tool that reads.
const fn reads(
    name: &'static str,
    describe: fn() -> Tool,
    call: fn(&Setup, JsonObject) -> Result<Answer>,
) -> Entry {
    Entry { name, describe, call, writes: false }
}

/// What a tool says of itself.
fn described<Params: JsonSchema + 'static>(
    name: &'static str,
    title: &str,
    description: &'static str,
    output: Value,
) -> Tool {
    let tool = Tool::new(name, description, schema_for_type::<Params>()).with_title(title);
    match output {
        Value::Object(schema) => tool.with_raw_output_schema(Arc::new(schema)),
        _ => tool,
    }
}

/// The annotations of a tool that changes nothing.
fn reading(title: &str) -> ToolAnnotations {
    let open_world = false;
    ToolAnnotations::with_title(title).read_only(true).open_world(open_world)
}

/// A time for people, in UTC.
fn minute(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).ok();
    at.map_or_else(|| "-".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// How much is archived of the sessions of other agents, and what there is to say of what is not.
fn of_archive(setup: &Setup, config: &Config) -> (Option<ArchiveProgress>, Option<String>) {
    let Some(archiver) = setup.archiver() else {
        let file = setup.host.home.config_file();
        let why = match (setup.writes, config.archive_sessions) {
            (Writes::Nobody, _) => "this server only reads".to_owned(),
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
        || Some("sessions are being looked for; none is archived yet by this server".to_owned()),
        |ArchiveProgress { sessions, pending, unreadable }| {
            let of = |n: usize, what| (n > 0).then(|| format!("{n} of {sessions} sessions {what}"));
            let notes = [of(pending, "are not archived yet"), of(unreadable, "cannot be read")];
            let notes: Vec<_> = notes.into_iter().flatten().collect();
            Some(notes.join("; ")).filter(|notes| !notes.is_empty())
        },
    );
    (progress, note)
}

/// The schema of that.
fn archive_schema() -> Value {
    let integer = json!({ "type": "integer" });
    json!({
        "type": ["object", "null"],
        "description": "the sessions of other agents that were found, and how many of them are not \
            archived yet or cannot be read; null where none are archived",
        "properties": { "sessions": integer, "pending": integer, "unreadable": integer },
        "required": ["sessions", "pending", "unreadable"]
    })
}

/// A text with what else is to be said below it.
fn with_notes(mut text: String, warnings: &[String], note: Option<&str>) -> String {
    for warning in warnings {
        text.push_str(&format!("\nwarning: {warning}"));
    }
    if let Some(note) = note {
        text.push_str(&format!("\nnote: {note}"));
    }
    text
}
