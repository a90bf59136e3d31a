//! `ctx memory`.

mod facts;
mod forget;
mod ingest;
mod rebuild;
mod search;
mod stats;

use std::path::Path;
use std::process::ExitCode;

use ctx_core::ErrorKind;
use ctx_runtime::lookup::Lookup;
use ctx_runtime::memory_session;
use ctx_session::key::FileId;
use ctx_session::{Home, Transcript, is_transcript};
use ctx_terminal::failure::misuse;
use ctx_terminal::out::Out;

use crate::args::{Global, MemoryCommand};
use crate::setup;

pub(crate) fn run(global: &Global, args: &MemoryCommand, out: &Out) -> anyhow::Result<ExitCode> {
    match args {
        MemoryCommand::Ingest(args) => ingest::run(global, args, out),
        MemoryCommand::Stats(args) => stats::run(global, args, out),
        MemoryCommand::Search(args) => search::run(global, args, out),
        MemoryCommand::Facts(args) => facts::run(global, args, out),
        MemoryCommand::Forget(args) => forget::run(global, args, out),
        MemoryCommand::Rebuild(args) => rebuild::run(global, args, out),
    }
}

/// Archives a transcript in the memory of the agent `main`.
pub(crate) fn archive(global: &Global, path: &Path) -> anyhow::Result<()> {
    ingest::archive(global, path)
}

/// Opens the memory of an agent as configured, without creating one.
pub(crate) fn open(global: &Global, agent: &str, out: &Out) -> anyhow::Result<Lookup> {
    let agent: FileId = agent.parse().map_err(misuse)?;
    let home = Home::from_env()?;
    let of = Lookup::open(&setup::config(global)?, home, agent)?;
    of.warnings.iter().for_each(|warning| out.warn(warning));
    Ok(of)
}

/// Returns the name of a session in memory, for its key, its id or its path.
///
/// # Errors
///
/// If the sessions of the agent cannot be read, or if the name is unknown.
pub(crate) fn session(of: &Lookup, named: &str) -> anyhow::Result<String> {
    let path = Path::new(named);
    let opened = is_transcript(path).then(|| Transcript::open(path));
    if let Some(Ok(transcript)) = &opened {
        return Ok(name_of(transcript, path));
    }
    of.session(named).map_err(|unknown| match opened {
        _ if unknown.kind() != ErrorKind::NotFound => unknown.into(),
        // If a file has that name, its error is more useful.
        Some(Err(error)) => error.into(),
        _ => {
            let hint = unknown.hint_text().unwrap_or_default();
            let hint = format!("{hint}; the path of a transcript works as well");
            unknown.hint(hint).into()
        }
    })
}

/// Rebuilds the index if it is missing, because a search reads only the index.
pub(crate) fn index(of: &Lookup, out: &Out) -> anyhow::Result<()> {
    Ok(out.while_waiting("rebuilding the index", || of.index())?)
}

/// Computes missing vectors. If the model fails, warns; a later command retries.
fn embed(of: &Lookup, out: &Out) -> anyhow::Result<()> {
    let embed = async { Ok(of.memory.embed().await) };
    if let Err(error) = out.while_waiting("computing vectors", || setup::block_on(embed))? {
        out.warn(format!("recalling by words only, without vectors: {error}"));
    }
    Ok(())
}

/// Prints the warnings of the memory store.
fn warn(of: &Lookup, out: &Out) {
    of.memory.take_warnings().iter().for_each(|warning| out.warn(warning));
}

/// Returns the name under which memory stores a transcript's session.
pub(crate) fn name_of(transcript: &Transcript, path: &Path) -> String {
    memory_session(transcript.header.id.as_deref(), path)
}
