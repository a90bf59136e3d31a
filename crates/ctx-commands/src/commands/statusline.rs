//! `ctx statusline`: the status line of Claude Code.

use std::process::ExitCode;

use ctx_core::Tokens;
use ctx_session::Format;
use ctx_terminal::out::Out;
use ctx_trace::stats::Status;
use serde::Deserialize;

use super::hook::{from_client, proxy_of};
use crate::ask::status;

/// What Claude Code says of its session. Older versions, and those without an answer yet, say less.
#[derive(Deserialize)]
struct Session {
    #[serde(default)]
    workspace: Workspace,
    #[serde(default)]
    context_window: Option<Window>,
}

#[derive(Default, Deserialize)]
struct Workspace {
    /// Where the session was started.
    project_dir: String,
}

#[derive(Deserialize)]
struct Window {
    context_window_size: u64,
    /// That of the last request.
    current_usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: u64,
    #[serde(default)]
    cache_creation_input_tokens: u64,
    #[serde(default)]
    cache_read_input_tokens: u64,
}

pub(crate) fn run(out: &Out) -> anyhow::Result<ExitCode> {
    let session: Session = from_client(
        "standard input does not describe a session",
        "`ctx statusline` is started by Claude Code: see integrations/claude-code",
    )?;
    let project = &session.workspace.project_dir;
    let served = proxy_of(Format::CLAUDE_CODE)?.and_then(|url| status(&url, 0, project));
    let reported = session.context_window.and_then(|window| window.status());
    let status = match (reported, served) {
        (Some(reported), Some(served)) => Some(Status { saved_usd: served.saved_usd, ..reported }),
        (reported, served) => reported.or(served),
    };
    out.line(status.map(|status| status.to_string()).unwrap_or_default())?;
    Ok(ExitCode::SUCCESS)
}

impl Window {
    /// Returns what is known before ctx is asked; `None` before the first answer.
    fn status(self) -> Option<Status> {
        let usage = self.current_usage?;
        let cached =
            usage.cache_creation_input_tokens.saturating_add(usage.cache_read_input_tokens);
        let tokens = usage.input_tokens.saturating_add(cached);
        Some(Status {
            tokens,
            window: Tokens::saturating_from(self.context_window_size),
            cache_hit_rate: (tokens > 0)
                .then(|| usage.cache_read_input_tokens as f64 / tokens as f64),
            saved_usd: None,
        })
    }
}
