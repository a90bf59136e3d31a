//! `ctx hook`: the hooks of Claude Code, for sessions whose requests do not pass a proxy.

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ctx_clients::Proxy;
use ctx_core::{Counter, Entry, EntryId, Error, ErrorKind, Role, TokenLedger, Tokens};
use ctx_layers::compaction::ClientSummary;
use ctx_runtime::lookup::RecallQuery;
use ctx_server::running::running;
use ctx_session::key::FileId;
use ctx_session::{Home, Transcript, clock};
use serde::Deserialize;
use serde_json::json;

use super::memory;
use super::run::PROXY_URL;
use crate::args::Global;
use crate::out::Out;
use crate::setup;

/// Maximum size of an event.
const MOST_BYTES: u64 = 16 << 20;

/// The window of the view that is audited: nothing is dropped from it.
const NO_LIMIT: Tokens = Tokens(u32::MAX);

/// An event of Claude Code.
#[derive(Deserialize)]
struct Event {
    hook_event_name: String,
    session_id: FileId,
    #[serde(default)]
    transcript_path: Option<PathBuf>,
    /// Of `UserPromptSubmit`.
    #[serde(default)]
    prompt: Option<String>,
}

/// Reads an event, and prints the text that the client adds to the context. Another event is ignored.
pub(crate) fn run(global: &Global, out: &Out) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    std::io::stdin().lock().take(MOST_BYTES).read_to_string(&mut text)?;
    let event: Event = serde_json::from_str(&text).map_err(|cause| {
        Error::new(ErrorKind::InvalidInput, "the event on standard input is not of a hook")
            .with("cause", &cause)
            .hint("`ctx hook` is started by a client: see integrations/claude-code")
            .source(cause)
    })?;
    let name = event.hook_event_name.as_str();
    match (name, &event.transcript_path) {
        ("PreCompact", Some(path)) if has_memory(global)? => memory::archive(global, path)?,
        // While a session is compacted, its transcript has no summary yet.
        ("UserPromptSubmit", _) => {
            let added = [put_back(&event)?, recalled(global, event.prompt.as_deref())?];
            let added: Vec<_> = added.into_iter().flatten().collect();
            if !added.is_empty() {
                let text = added.join("\n\n");
                let said = json!({ "hookEventName": name, "additionalContext": text });
                out.line(json!({ "hookSpecificOutput": said }).to_string())?;
            }
        }
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the client's requests go through a proxy of this home, which puts back itself what a
/// summary lost.
fn passes_proxy() -> anyhow::Result<bool> {
    let url = std::env::var("ANTHROPIC_BASE_URL").unwrap_or_default();
    let of_run = std::env::var(PROXY_URL).ok();
    let server = running(&Home::from_env()?)?.map(|server| server.url);
    Ok(of_run.iter().chain(&server).any(|proxy| Proxy::at(proxy).is_at(&url)))
}

fn has_memory(global: &Global) -> anyhow::Result<bool> {
    Ok(setup::config(global)?.section::<ctx_memory::Config>()?.enabled)
}

/// Returns what the newest summary of a session lost, once for each summary.
fn put_back(event: &Event) -> anyhow::Result<Option<String>> {
    let Some(path) = event.transcript_path.as_ref().filter(|path| path.exists()) else {
        return Ok(None);
    };
    if passes_proxy()? {
        return Ok(None);
    }
    let transcript = Transcript::open(path)?;
    let context = transcript.context(None)?.entries;
    let Some(summary) = context.iter().rev().find(|entry| is_summary(entry)) else {
        return Ok(None);
    };
    let done = Home::from_env()?.root.join("hooks").join(event.session_id.as_str());
    if ctx_disk::read_to_string(&done).is_ok_and(|known| known == **summary.id()) {
        return Ok(None);
    }
    let lost = lost(&transcript, &context, &summary.message()?.plain_text())?;
    ctx_disk::create_private_dir(ctx_disk::parent(&done))?;
    ctx_disk::write_atomic(&done, summary.id().as_bytes())?;
    Ok(lost)
}

fn is_summary(entry: &Entry) -> bool {
    entry.outline().is_ok_and(|outline| outline.role == Role::CompactionSummary)
}

/// Returns what a summary lost of the messages that it stands for.
fn lost(
    transcript: &Transcript,
    context: &[Arc<Entry>],
    summary: &str,
) -> anyhow::Result<Option<String>> {
    let kept: HashSet<&EntryId> = context.iter().map(|entry| entry.id()).collect();
    let line = transcript.main_line()?.into_iter().map(|item| item.entry);
    let gone = line.filter(|entry| !kept.contains(entry.id()) && !is_summary(entry));
    let ledger = TokenLedger::new(Counter::default(), NO_LIMIT, Tokens(0));
    let gone = ClientSummary::history(ledger, gone)?;
    let audited = ClientSummary::audit(gone, summary, ClientSummary::LOST_TOKENS, clock::now());
    let lost = audited.map(|audited| audited.lost).filter(|lost| !lost.is_empty());
    Ok(lost.map(|lost| format!("{}\n{lost}", ClientSummary::NOTE)))
}

/// Returns the block of memory for a prompt, if memory is enabled.
fn recalled(global: &Global, prompt: Option<&str>) -> anyhow::Result<Option<String>> {
    let Some(query) = prompt.filter(|prompt| !prompt.is_empty()) else { return Ok(None) };
    if !has_memory(global)? {
        return Ok(None);
    }
    let of = memory::open(global, "main", &Out::silent())?;
    let asked =
        RecallQuery { query, session: None, everywhere: true, budget: None, now: clock::now() };
    Ok(setup::block_on(of.recall(&asked))?.block)
}
