//! `ctx hook`: the hooks of Claude Code, Codex and Gemini CLI, and the plugin of opencode, for sessions
//! whose requests do not pass a proxy.

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ctx_clients::{Client, Environment, Proxy};
use ctx_core::{Counter, Entry, EntryId, Error, ErrorKind, Role, TokenLedger, Tokens};
use ctx_layers::compaction::ClientSummary;
use ctx_runtime::lookup::RecallQuery;
use ctx_server::running::running;
use ctx_session::key::FileId;
use ctx_session::{Format, Home, Transcript, clock, is_transcript};
use ctx_terminal::format::counted;
use ctx_terminal::out::Out;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::memory;
use super::run::PROXY_URL;
use crate::args::Global;
use crate::session_args::homes;
use crate::setup;

/// Maximum size of what a client writes to standard input.
const MOST_BYTES: u64 = 16 << 20;

/// The window of the view that is audited: nothing is dropped from it.
const NO_LIMIT: Tokens = Tokens(u32::MAX);

/// An event. A client may send more fields.
#[derive(Deserialize)]
struct Event {
    hook_event_name: String,
    session_id: FileId,
    /// Missing if the client has no file for the session: it is then searched by its id.
    #[serde(default)]
    transcript_path: Option<PathBuf>,
    /// Of `UserPromptSubmit` and `BeforeAgent`.
    #[serde(default)]
    prompt: Option<String>,
    /// Of `SessionStart`.
    #[serde(default)]
    source: Option<String>,
}

/// Reads an event, and prints the text that the client adds to the context. Another event is ignored.
pub(crate) fn run(global: &Global, out: &Out) -> anyhow::Result<ExitCode> {
    let event: Event = from_client(
        "the event on standard input is not of a hook",
        "`ctx hook` is started by a client: see integrations/claude-code/README.md",
    )?;
    let name = event.hook_event_name.as_str();
    let mut said = json!({});
    let added = match name {
        "PreCompact" => {
            mark_due(&event)?;
            archive(global, &event)?;
            None
        }
        "SessionEnd" | "session.compacting" => {
            archive(global, &event)?;
            None
        }
        // Codex sends it after a compaction too, before its next request.
        "SessionStart" => {
            let is_new = event.source.as_deref() != Some("compact");
            if is_new && let Some(text) = memory_size(global)? {
                said["systemMessage"] = text.into();
            }
            put_back(&event)?
        }
        "PostToolUse" if was_compacted(&event)? => put_back(&event)?,
        "UserPromptSubmit" | "BeforeAgent" => {
            let added = [put_back(&event)?, recalled(global, event.prompt.as_deref())?];
            let added: Vec<_> = added.into_iter().flatten().collect();
            (!added.is_empty()).then(|| added.join("\n\n"))
        }
        "chat.message" => recalled(global, event.prompt.as_deref())?,
        // The plugin of opencode adds this to each request.
        "session.compacted" => match Summary::newest(&event)? {
            Some(summary) => summary.lost()?,
            None => None,
        },
        _ => None,
    };
    if let Some(text) = added {
        said["hookSpecificOutput"] = json!({ "hookEventName": name, "additionalContext": text });
    }
    if said != json!({}) {
        out.line(said.to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads what a client writes to standard input as JSON. The error has this message and hint.
pub(super) fn from_client<T: DeserializeOwned>(
    message: &'static str,
    hint: &'static str,
) -> anyhow::Result<T> {
    let mut text = String::new();
    std::io::stdin().lock().take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text).map_err(|cause| {
        let error = Error::new(ErrorKind::InvalidInput, message).with("cause", &cause);
        error.hint(hint).source(cause)
    })?)
}

impl Event {
    fn transcript(&self) -> anyhow::Result<Option<PathBuf>> {
        let named = || Ok(homes()?.named(self.session_id.as_str()).ok().map(|found| found.path));
        let path =
            self.transcript_path.clone().map_or_else(named, |path| anyhow::Ok(Some(path)))?;
        Ok(path.filter(|path| is_transcript(path)))
    }

    /// Returns the file with the id of the summary whose losses were put back last.
    fn done(&self) -> anyhow::Result<PathBuf> {
        Ok(Home::from_env()?.root.join("hooks").join(self.session_id.as_str()))
    }

    /// Returns the file that exists from a compaction to the next tool call.
    fn due(&self) -> anyhow::Result<PathBuf> {
        Ok(self.done()?.with_extension("due"))
    }
}

/// Notes that a session is about to be compacted.
fn mark_due(event: &Event) -> anyhow::Result<()> {
    let due = event.due()?;
    ctx_disk::create_private_dir(ctx_disk::parent(&due))?;
    Ok(ctx_disk::write_atomic(&due, b"")?)
}

/// Archives a session in memory, if memory is enabled.
fn archive(global: &Global, event: &Event) -> anyhow::Result<()> {
    match event.transcript()? {
        Some(path) if has_memory(global)? => memory::archive(global, &path),
        _ => Ok(()),
    }
}

/// Says to the user how much memory has, if it is enabled and not empty.
fn memory_size(global: &Global) -> anyhow::Result<Option<String>> {
    if !has_memory(global)? {
        return Ok(None);
    }
    let size = memory::open(global, "main", &Out::silent())?.memory.stats()?.segments;
    let text = format!("ctx: {} of earlier sessions in memory", counted(size, "passage"));
    Ok((size > 0).then_some(text))
}

/// Whether this is the first tool call after a compaction. Of calls at once, only one is the first.
fn was_compacted(event: &Event) -> anyhow::Result<bool> {
    Ok(std::fs::remove_file(event.due()?).is_ok())
}

/// Returns the proxy of this home that the client's requests go through. It puts back itself what a
/// summary lost.
pub(super) fn proxy_of(format: Format) -> anyhow::Result<Option<String>> {
    let (client, variable) = if format == Format::CODEX {
        (Client::Codex, None)
    } else if format == Format::OPENCODE {
        (Client::Opencode, None)
    } else if format == Format::GEMINI_CLI {
        (Client::Gemini, Some("GOOGLE_GEMINI_BASE_URL"))
    } else {
        (Client::Claude, Some("ANTHROPIC_BASE_URL"))
    };
    let environment = Environment::from_process();
    let of_run = environment.variable(PROXY_URL).map(str::to_owned);
    if of_run.is_some() && variable.is_none() {
        return Ok(of_run);
    }
    // A file that the client cannot read either sets no address.
    let addresses = client.addresses(&environment).unwrap_or_default();
    let mut urls: Vec<_> = addresses.into_iter().map(|address| address.url).collect();
    urls.extend(variable.and_then(|name| environment.variable(name)).map(str::to_owned));
    let server = running(&Home::from_env()?)?.map(|server| server.url);
    let is_used = |proxy: &String| urls.iter().any(|url| Proxy::at(proxy).is_at(url));
    Ok(of_run.into_iter().chain(server).find(is_used))
}

fn has_memory(global: &Global) -> anyhow::Result<bool> {
    Ok(setup::config(global)?.section::<ctx_memory::Config>()?.enabled)
}

/// Returns what the newest summary of a session lost, once for each summary.
fn put_back(event: &Event) -> anyhow::Result<Option<String>> {
    let done = event.done()?;
    let Some(summary) = Summary::newest(event)? else { return Ok(None) };
    if ctx_disk::read_to_string(&done).is_ok_and(|known| known == *summary.id) {
        return Ok(None);
    }
    ctx_disk::create_private_dir(ctx_disk::parent(&done))?;
    ctx_disk::write_atomic(&done, summary.id.as_bytes())?;
    summary.lost()
}

/// The newest summary of a session, which the client's model wrote.
struct Summary {
    id: EntryId,
    transcript: Transcript,
    /// The messages that are sent: the summary and what follows it.
    context: Vec<Arc<Entry>>,
}

impl Summary {
    /// Returns `None` as well if the requests of the session pass a proxy, or the summary is
    /// encrypted.
    fn newest(event: &Event) -> anyhow::Result<Option<Self>> {
        let Some(path) = event.transcript()? else { return Ok(None) };
        let transcript = Transcript::open(&path)?;
        let context = transcript.context(None)?;
        let Some(id) = context.compaction else { return Ok(None) };
        let list = transcript.compaction_list(None)?;
        let is_readable = list.iter().any(|one| one.id == id && !one.summary.is_empty());
        if !is_readable || proxy_of(transcript.format)?.is_some() {
            return Ok(None);
        }
        Ok(Some(Self { id, transcript, context: context.entries }))
    }

    /// Returns what the context lost of the messages that are not in it.
    fn lost(&self) -> anyhow::Result<Option<String>> {
        let is_summary = |entry: &Entry| {
            entry.outline().is_ok_and(|outline| outline.role == Role::CompactionSummary)
        };
        let line = self.transcript.main_line()?.into_iter().map(|item| item.entry);
        let line: Vec<_> = line.filter(|entry| !is_summary(entry)).collect();
        let recorded: HashSet<&EntryId> = line.iter().map(|entry| entry.id()).collect();
        // The summary; Codex adds copies of the user's messages.
        let replacing = self.context.iter().filter(|entry| !recorded.contains(entry.id()));
        let texts = replacing.map(|entry| Ok(entry.message()?.plain_text()));
        let summary = texts.collect::<anyhow::Result<Vec<_>>>()?.join("\n\n");
        let kept: HashSet<&EntryId> = self.context.iter().map(|entry| entry.id()).collect();
        let gone = line.iter().filter(|entry| !kept.contains(entry.id())).cloned();
        let ledger = TokenLedger::new(Counter::default(), NO_LIMIT, Tokens(0));
        let gone = ClientSummary::history(ledger, gone)?;
        let audited =
            ClientSummary::audit(gone, &summary, ClientSummary::LOST_TOKENS, clock::now());
        let lost = audited.map(|audited| audited.lost).filter(|lost| !lost.is_empty());
        Ok(lost.map(|lost| format!("{}\n{lost}", ClientSummary::NOTE)))
    }
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
