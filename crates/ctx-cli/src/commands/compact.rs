//! `ctx compact`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ctx_compaction::Details;
use ctx_core::{
    CompactRequest, CompactResult, Compacted, CompactionTrigger, ContextView, EntryId, Error,
    ErrorKind, IdentifierPolicy, SequentialIds, SummaryInstructions, Timestamp, TurnContext,
};
use ctx_session::Transcript;
use ctx_session::blobs::MemoryBlobs;
use ctx_session::compactions::{rewrite_compacted, store_compaction, undo_compaction};
use ctx_session::paths::Home;
use serde::Serialize;

use crate::args::{Compact, Global};
use crate::named::{ID_CHARS, ShortIds, find_entry};
use crate::out::{BOLD, Out};
use crate::receipt;
use crate::setup;
use crate::words::{harmless, harmless_lines, shortened};

/// The result, and what became of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    #[serde(flatten)]
    result: CompactResult,
    /// The entry it was stored as; null for a dry run, or where nothing was compacted.
    entry_id: Option<EntryId>,
    dry_run: bool,
    /// Where the session is as it was; null unless it was written anew.
    archived: Option<PathBuf>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UndoReport {
    ok: bool,
    undone: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The compaction that was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    compaction_id: Option<EntryId>,
    /// The entry that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_id: Option<EntryId>,
}

pub(crate) fn run(global: &Global, args: &Compact, out: &Out) -> anyhow::Result<ExitCode> {
    if setup::is_stdin(&args.session) && !args.dry_run {
        let error = Error::new(ErrorKind::InvalidInput, "standard input cannot be compacted");
        return Err(error.hint("write the transcript to a file, or try it with --dry-run").into());
    }
    if args.undo {
        return undo(args, out);
    }
    let target = args.target.as_deref().map(setup::parse_tokens).transpose()?;
    let home = Home::from_env()?;
    let transcript = setup::open(&args.session, out)?;
    if args.rewrite && !transcript.is_ours() {
        let error = Error::new(ErrorKind::InvalidInput, "only a session of ctx is written anew");
        let path = args.session.display();
        let hint = format!("`ctx convert {path} --to ctx -o NEW` makes one");
        return Err(error.with("path", path).hint(hint).into());
    }
    let blobs = Arc::new(MemoryBlobs::default());
    let fitted = setup::fit(global, &args.fit, &transcript, blobs, out)?;
    let context = transcript.context(None)?;
    let leaf = transcript.leaf().cloned();
    let sent = transcript.sent_forms(None)?;
    let mut view = ContextView::new(fitted.ledger).with_projections(sent);
    for entry in &context.entries {
        view.append(entry.clone())?;
    }
    let now = Timestamp(jiff::Timestamp::now().as_millisecond());
    let turn = TurnContext {
        now,
        last_request: context.entries.iter().rev().find_map(|e| e.timestamp()),
        ids: Arc::new(SequentialIds::default()),
        profile: fitted.profile,
    };
    let session_id = transcript.header().id.clone().unwrap_or_default();
    let mut request = CompactRequest::new(session_id, view, turn, CompactionTrigger::Manual);
    request.force = args.force;
    request.token_budget = target;
    request.custom_instructions = args.instructions.clone();
    request.summary_instructions = SummaryInstructions {
        identifier_policy: args.identifiers.map(IdentifierPolicy::from),
        identifier_instructions: None,
    };
    let waiting = out.waiting("compacting");
    let result = setup::block_on(fitted.engine.compact(request))?;
    waiting.finish_and_clear();
    let mut entry_id = None;
    if let Some(compacted) = result.result.as_ref().filter(|_| !args.dry_run) {
        let id = store_compaction(&home, &args.session, leaf.as_ref(), compacted, now)?;
        entry_id = Some(id);
    }
    if let Some(details) = details(&result)
        && let Some(warning) = receipt::fell_back(&details.receipt, fitted.writer.as_deref())
    {
        out.warn(warning);
    }
    let archived = if args.rewrite { written_anew(&args.session)? } else { None };
    let report = Report { result, entry_id, dry_run: args.dry_run, archived };
    if args.json {
        out.json(&report)?;
    } else {
        print(&report, &transcript, args, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the session anew from its newest compaction, if it has one that was not yet.
fn written_anew(session: &Path) -> anyhow::Result<Option<PathBuf>> {
    match rewrite_compacted(session) {
        Ok(rewritten) => Ok(Some(rewritten.archived)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What the compactor says of its work.
fn details(result: &CompactResult) -> Option<Details> {
    Details::from_json(result.result.as_ref()?.details.as_ref()?)
}

fn print(
    report: &Report,
    transcript: &Transcript,
    args: &Compact,
    out: &Out,
) -> anyhow::Result<()> {
    let Some(compacted) = &report.result.result else {
        let reason = report.result.reason.as_deref().unwrap_or("no reason given");
        out.line(format!("{BOLD}nothing compacted{BOLD:#}: {}", harmless(reason)))?;
        return Ok(());
    };
    let details = details(&report.result);
    block(compacted, details.as_ref(), out)?;
    if let Some(details) = &details {
        out.line("")?;
        receipt::print(&details.receipt, &ShortIds::of(transcript), out)?;
    }
    let session = harmless(&args.session.to_string_lossy());
    if let Some(archived) = &report.archived {
        let archived = harmless(&archived.to_string_lossy());
        out.note(format!("the session was written anew; as it was, it is {archived}"));
        return Ok(());
    }
    match &report.entry_id {
        Some(id) => out.note(format!(
            "stored as {}; `ctx diff {session}` shows what left the context, `ctx compact \
             {session} --undo` takes it back",
            shortened(id, ID_CHARS),
        )),
        None => out.note("a dry run: nothing was stored"),
    }
    Ok(())
}

/// CoPaw's block: how many messages, and the summary.
fn block(compacted: &Compacted, details: Option<&Details>, out: &Out) -> anyhow::Result<()> {
    out.line(format!("{BOLD}**Compact Complete!**{BOLD:#}\n"))?;
    if let Some(details) = details {
        out.line(format!("- Messages compacted: {}", details.receipt.messages))?;
    }
    out.line("**Compressed Summary:**")?;
    out.line(harmless_lines(&compacted.summary))?;
    Ok(())
}

fn undo(args: &Compact, out: &Out) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let transcript = setup::open(&args.session, out)?;
    let which = match &args.compaction {
        Some(id) => Some(find_entry(&transcript, id)?),
        None => None,
    };
    let now = Timestamp(jiff::Timestamp::now().as_millisecond());
    let undone = undo_compaction(&home, &args.session, which.as_ref(), now)?;
    let redone = undone.as_ref().is_some_and(|undone| undone.redone);
    let report = UndoReport {
        ok: true,
        undone: undone.is_some(),
        reason: undone.is_none().then(|| "the session has no compaction to undo".to_owned()),
        compaction_id: undone.as_ref().map(|undone| undone.target.clone()),
        entry_id: undone.map(|undone| undone.id),
    };
    if args.json {
        out.json(&report)?;
    } else if let Some(id) = &report.compaction_id {
        let id = shortened(id, ID_CHARS);
        match redone {
            true => out.line(format!("{id} taken back: the compaction is in force again"))?,
            false => out.line(format!("compaction {id} undone: the context is what it was"))?,
        }
    } else {
        out.line("nothing to undo: the session has no compaction")?;
    }
    Ok(ExitCode::SUCCESS)
}
