//! `ctx compact`.

mod undo;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ctx_compaction::Details;
use ctx_core::{
    CompactRequest, CompactResult, Compacted, CompactionTrigger, ContextView, Entry, EntryId,
    Error, ErrorKind, IdentifierPolicy, MemoryStore, SummaryInstructions, Timestamp, Tokens,
    TurnContext,
};
use ctx_eval::Baseline;
use ctx_session::{Home, Transcript, clock, rewrite_compacted, store_compaction};
use ctx_terminal::failure::misuse;
use ctx_terminal::format::{escaped, escaped_lines, shortened, thousands};
use ctx_terminal::out::{BOLD, Out, terminal_columns};
use serde::Serialize;

use crate::args::{Compact, Global};
use crate::engine_health::EngineHealthReport;
use crate::entry_ids::{ID_CHARS, ShortIds};
use crate::receipt;
use crate::setup::{self, Fitted};
use crate::stores::{self, Left, archive};

/// The result, and how it was stored.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CompactReport {
    #[serde(flatten)]
    result: CompactResult,
    #[serde(flatten)]
    health: EngineHealthReport,
    /// The entry it was stored as; null for a dry run, or if nothing was compacted.
    entry_id: Option<EntryId>,
    dry_run: bool,
    /// Whether the session fits into the target afterwards; null without a target.
    target_reached: Option<bool>,
    /// The path of the old session; null unless it was rewritten.
    archived: Option<PathBuf>,
}

/// Maximum number of attempts if another compaction was stored meanwhile.
const ATTEMPTS: usize = 3;

pub(crate) fn run(global: &Global, args: &Compact, out: &Out) -> anyhow::Result<ExitCode> {
    if setup::is_stdin(&args.session) && !args.dry_run {
        let error = Error::new(ErrorKind::InvalidInput, "standard input cannot be compacted");
        return Err(misuse(error.hint("write the transcript to a file, or try it with --dry-run")));
    }
    if args.undo {
        return undo::run(args, out);
    }
    let target = args.target.as_deref().map(setup::parse_tokens).transpose().map_err(misuse)?;
    let home = Home::from_env()?;
    // Report warnings about the session only once.
    let quiet = Out::silent();
    let mut attempt = 1;
    let (planned, entry_id) = loop {
        let out = if attempt == 1 { out } else { &quiet };
        let planned = Planned::of(global, args, target, out)?;
        match planned.store(&home, args) {
            Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS => attempt += 1,
            stored => break (planned, stored?),
        }
    };
    let Planned { transcript, result, health, before, writer, memory, removed, .. } = planned;
    if entry_id.is_some() {
        archive(memory.as_deref(), &removed, Left::Compaction, out);
    }
    let details = details(&result);
    let receipt = details.as_ref().map(|details| &details.receipt);
    let fell_back = receipt.and_then(|r| receipt::fell_back(r, writer.as_deref()));
    if let Some(warning) = &fell_back {
        out.warn(warning);
    }
    let after = result.result.as_ref().map_or(before, |done| done.tokens_after.unwrap_or(before));
    let target_reached = target.map(|target| after <= target);
    if let Some(target) = target.filter(|&target| after > target) {
        out.warn(format!(
            "the target of {} tokens was not reached: {} remain, because the newest messages, the \
             summary, the system prompt and the tools cannot be removed",
            thousands(target.get()),
            thousands(after.get()),
        ));
    }
    let archived = if args.rewrite { rewrite(&args.session)? } else { None };
    let dry_run = args.dry_run;
    let report = CompactReport { result, health, entry_id, dry_run, target_reached, archived };
    // The receipt does not repeat the warning.
    let warning = fell_back.unwrap_or_default();
    out.report(args.json, &report, |report, out| print(report, &transcript, args, &warning, out))
}

/// A compaction that is not stored yet.
struct Planned {
    transcript: Transcript,
    leaf: Option<EntryId>,
    now: Timestamp,
    before: Tokens,
    /// The requested summary model.
    writer: Option<String>,
    /// Where the removed messages are archived.
    memory: Option<Arc<dyn MemoryStore>>,
    removed: Vec<Arc<Entry>>,
    health: EngineHealthReport,
    result: CompactResult,
}

impl Planned {
    fn of(
        global: &Global,
        args: &Compact,
        target: Option<Tokens>,
        out: &Out,
    ) -> anyhow::Result<Self> {
        let transcript = setup::open(&args.session, out)?;
        if args.rewrite && !transcript.is_ctx_session() {
            let error =
                Error::new(ErrorKind::InvalidInput, "only a session of ctx can be rewritten");
            let path = args.session.display();
            let hint = format!("`ctx convert {path} --to ctx -o NEW` makes one");
            return Err(error.with("path", path).hint(hint).into());
        }
        let stores = stores::of_session(&args.fit, &args.session, &transcript, !args.dry_run);
        let fit = (&args.fit, &args.summaries);
        let fitted = setup::fit(global, fit, &args.session, &transcript, stores, out)?;
        let context = transcript.context(None)?;
        let leaf = transcript.leaf().cloned();
        let sent = transcript.projections(None)?;
        let ledger = Baseline::of(&transcript, &fitted.ledger)?.corrected(fitted.ledger);
        let mut view = ContextView::new(ledger).with_projections(sent);
        for entry in &context.entries {
            view.append(entry.clone())?;
        }
        let now = clock::now();
        let turn = TurnContext {
            last_request: context.entries.iter().rev().find_map(|e| e.timestamp()),
            ..TurnContext::at(now)
        };
        let session_id = transcript.header.id.clone().unwrap_or_default();
        let mut request = CompactRequest::new(session_id, view, turn, CompactionTrigger::Manual);
        request.force = args.force;
        request.token_budget = target;
        request.custom_instructions = args.instructions.clone();
        request.summary_instructions = SummaryInstructions {
            identifier_policy: args.identifiers.map(IdentifierPolicy::from),
            identifier_instructions: None,
        };
        let before = request.view.total() + request.view.ledger().fixed();
        let compacted = fitted.engine.compact(request);
        let result = out.while_waiting("compacting", || setup::block_on(compacted));
        let health = EngineHealthReport::of(&*fitted.engine, out);
        let result = result?;
        let removed = removed_entries(&context.entries, &result);
        let Fitted { writer, memory, .. } = fitted;
        Ok(Self { transcript, leaf, now, before, writer, memory, removed, health, result })
    }

    /// Stores the compaction, unless nothing was compacted or this is a dry run.
    fn store(&self, home: &Home, args: &Compact) -> ctx_core::Result<Option<EntryId>> {
        let Some(compacted) = self.result.result.as_ref().filter(|_| !args.dry_run) else {
            return Ok(None);
        };
        store_compaction(home, &args.session, self.leaf.as_ref(), compacted, self.now).map(Some)
    }
}

/// Returns the entries that a compaction removes from the context.
fn removed_entries(entries: &[Arc<Entry>], result: &CompactResult) -> Vec<Arc<Entry>> {
    let Some(compacted) = &result.result else { return Vec::new() };
    let before = |entry: &&Arc<Entry>| *entry.id() != compacted.first_kept_entry_id;
    entries.iter().take_while(before).cloned().collect()
}

/// Rewrites the session from its newest compaction, and returns the path of the old file; `None` if
/// there is nothing to rewrite.
fn rewrite(session: &Path) -> anyhow::Result<Option<PathBuf>> {
    match rewrite_compacted(session) {
        Ok(rewritten) => Ok(Some(rewritten.archived)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the details of a compaction by ctx's own summarisers.
fn details(result: &CompactResult) -> Option<Details> {
    Details::from_json(result.result.as_ref()?.details.as_ref()?)
}

fn print(
    report: &CompactReport,
    transcript: &Transcript,
    args: &Compact,
    warning: &str,
    out: &Out,
) -> anyhow::Result<()> {
    let Some(compacted) = &report.result.result else {
        let reason = report.result.reason.as_deref().unwrap_or("no reason given");
        out.line(format!("{BOLD}nothing compacted{BOLD:#}: {}", escaped(reason)))?;
        if !args.force {
            out.note("--force compacts anyway");
        }
        return Ok(());
    };
    let details = details(&report.result);
    block(compacted, details.as_ref(), args.dry_run, out)?;
    if let Some(details) = &details {
        out.line("")?;
        receipt::print(&details.receipt, &ShortIds::of(transcript), warning, out)?;
    }
    let session = escaped(&args.session.to_string_lossy());
    if let Some(archived) = &report.archived {
        let archived = escaped(&archived.to_string_lossy());
        out.note(format!("the session was rewritten; the old file is {archived}"));
        return Ok(());
    }
    match &report.entry_id {
        Some(id) => out.note(format!(
            "stored as {}; `ctx diff {session}` shows what was removed from the context, \
             `ctx compact {session} --undo` undoes it",
            shortened(id, ID_CHARS),
        )),
        None => out.note("a dry run: nothing was stored"),
    }
    Ok(())
}

/// Prints the result in CoPaw's format: the number of messages, and the summary. Markdown asterisks
/// are omitted on a terminal; a dry run has another title.
fn block(
    compacted: &Compacted,
    details: Option<&Details>,
    dry_run: bool,
    out: &Out,
) -> anyhow::Result<()> {
    let marks = if terminal_columns().is_some() { "" } else { "**" };
    let title = match dry_run {
        true => "Dry run: nothing is stored".to_owned(),
        false => format!("{marks}Compact Complete!{marks}"),
    };
    out.line(format!("{BOLD}{title}{BOLD:#}\n"))?;
    if let Some(details) = details {
        out.line(format!("- Messages compacted: {}", details.receipt.messages))?;
    }
    out.line(format!("{marks}Compressed Summary:{marks}"))?;
    out.line(escaped_lines(&compacted.summary))?;
    Ok(())
}
