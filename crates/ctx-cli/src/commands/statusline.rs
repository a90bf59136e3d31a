//! `ctx statusline`: the status line of Claude Code.

use std::io::Read;
use std::process::ExitCode;

use ctx_core::{Error, ErrorKind, Timestamp};
use ctx_server::running::running;
use ctx_server::stats::{GroupBy, Stats};
use ctx_server::trace::StoredRecords;
use ctx_session::{Home, clock};
use serde::Deserialize;

use super::hook::MOST_BYTES;
use crate::format::usd;
use crate::out::Out;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

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
    let mut text = String::new();
    std::io::stdin().lock().take(MOST_BYTES).read_to_string(&mut text)?;
    let session: Session = serde_json::from_str(&text).map_err(|cause| {
        Error::new(ErrorKind::InvalidInput, "standard input does not describe a session")
            .with("cause", &cause)
            .hint("`ctx statusline` is started by Claude Code: see integrations/claude-code")
            .source(cause)
    })?;
    let window = session.context_window.as_ref();
    let usage = window.and_then(|window| Some((window, window.current_usage.as_ref()?)));
    let parts = [
        usage.map(|(window, usage)| {
            format!("{} of {}", size(usage.prompt()), size(window.context_window_size))
        }),
        saved(&session.workspace.project_dir)?,
        usage.and_then(|(_, usage)| usage.cached()).map(|share| format!("cache {share:.0} %")),
    ];
    out.line(parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))?;
    Ok(ExitCode::SUCCESS)
}

impl Usage {
    fn prompt(&self) -> u64 {
        let cached = self.cache_creation_input_tokens.saturating_add(self.cache_read_input_tokens);
        self.input_tokens.saturating_add(cached)
    }

    /// Returns the share that was read from the cache, in percent.
    fn cached(&self) -> Option<f64> {
        let prompt = self.prompt();
        (prompt > 0).then(|| 100.0 * self.cache_read_input_tokens as f64 / prompt as f64)
    }
}

/// Returns what the running `ctx serve` saved in a folder within the last day.
fn saved(folder: &str) -> anyhow::Result<Option<String>> {
    let home = Home::from_env()?;
    if running(&home)?.is_none() {
        return Ok(None);
    }
    let since = Some(Timestamp(clock::now().0 - DAY_MS));
    let mut stats = Stats::new(GroupBy::Project, since);
    let records = StoredRecords::read(&home.root.join("proxy").join("traces"), since)?;
    records.sessions.iter().for_each(|session| stats.add_trace(session));
    let report = stats.report();
    let row = report.rows.iter().find(|row| row.key.as_deref() == Some(folder));
    let saved = row.and_then(|row| row.figures.saved_usd);
    Ok(saved.map(|saved| format!("saved {} in 24 h", usd(saved))))
}

/// Formats a number of tokens: `950`, `41k`, `1.2M`.
fn size(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..999_500 => format!("{:.0}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}
