//! `context_status`: what a session contains, and how full its context is.

use ctx_core::{Result, Tokens};
use ctx_eval::StatusReport;
use ctx_runtime::{SessionSpec, engine_trouble};
use ctx_session::EngineHealthFile;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{ToolEntry, described, reads};
use crate::Setup;
use crate::output::{ToolOutput, arguments};
use crate::status::status;

pub(super) const TOOL: ToolEntry = reads("context_status", describe, call);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The session, by its key, its id or a prefix of the id; default: the session that the server
    /// was started with, else the newest of its folder
    session: Option<String>,
    /// The model's window in tokens; default: from the configuration and the transcript
    #[schemars(range(min = 1))]
    window: Option<u32>,
}

fn describe() -> Tool {
    let title = "Show how full a context is";
    let description = "What a session contains and how full its context is: messages by role, \
        tokens of the next request against the window, compactions, the engine and whether it \
        works.";
    let output = json!({
        "type": "object",
        "properties": {
            "context": { "type": "object", "properties": {
                "messages": { "type": "integer" },
                "tokens": { "type": "integer", "description": "of the last request" },
                "source": { "enum": ["provider", "calibrated", "estimated"] },
                "pendingTokens": { "type": "integer", "description": "added since" },
                "limit": { "type": "integer" } } },
            "window": { "type": "integer" },
            "reserve": { "type": "integer" },
            "limit": { "type": "integer", "description": "window minus reserve" },
            "usedShare": {
                "type": "number", "description": "the next request divided by the limit"
            },
            "shouldCompact": { "type": "boolean" },
            "compactions": { "type": "integer" },
            "engine": { "type": "string" },
            "engineState": { "type": "string" },
            "session": { "type": "object" }
        },
        "required": [
            "context", "window", "limit", "usedShare", "shouldCompact", "compactions", "engine"
        ]
    });
    described::<Params>("context_status", title, description, output)
}

fn call(setup: &Setup, given: JsonObject) -> Result<ToolOutput> {
    let Params { session, window } = arguments(given)?;
    let opened = setup.open(session.as_deref())?;
    let spec = SessionSpec {
        agent: Some(setup.agent.to_string()),
        window: window.map(Tokens),
        ..SessionSpec::of(&opened.transcript)?
    };
    let spec = spec.in_home(&setup.host.home, &opened.path);
    let resolved = spec.resolve(&setup.host.config)?;
    resolved.check_engine()?;
    let troubles = EngineHealthFile::of(&setup.host.home).read().unwrap_or_default();
    let trouble = engine_trouble(troubles, &resolved.engine.id)?;
    let report = status(&opened.path, &opened.transcript, &resolved, trouble)?;
    ToolOutput::new(text(&opened.name, &report), &report)
}

fn text(session: &str, report: &StatusReport) -> String {
    let used = report.context.next_request();
    let share = 100.0 * report.used_share;
    let next = if report.should_block {
        "refused: the window is under the guard's minimum"
    } else if report.should_compact {
        "history will be cut"
    } else {
        "fits as it is"
    };
    let roles = report.context.roles.iter().map(|(role, n)| format!("{n} {role}"));
    format!(
        "session {session}\n\
         request: {used} of {} tokens ({share:.1} %, {})\n\
         window: {} (from {}), {} reserved for the answer\n\
         messages: {} ({})\n\
         compactions: {}\n\
         engine: {} ({})\n\
         next request: {next}",
        report.limit,
        report.context.source,
        report.window,
        report.source,
        report.reserve,
        report.context.messages,
        roles.collect::<Vec<_>>().join(", "),
        report.compactions,
        report.engine,
        if report.engine_trouble.is_some() { "degraded" } else { "ok" },
    )
}
