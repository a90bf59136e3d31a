//! `ctx assemble`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ctx_compaction::Details;
use ctx_core::{
    AssembleRequest, Compacted, EntryId, Error, ErrorKind, IdSource, Manifest, Projection, RawJson,
    SequentialIds, Timestamp, Tokens, TurnContext,
};
use ctx_runtime::Stores;
use ctx_session::{FileBlobs, Home, RandomIds, Transcript, clock, store_compaction};
use ctx_terminal::failure::misuse;
use ctx_terminal::format::{counted, shortened, thousands};
use ctx_terminal::out::{BOLD, Cell, DIM, Out, Table};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::args::{Assemble, Global, Shape};
use crate::engine_health::EngineHealthReport;
use crate::entry_ids::{ID_CHARS, ShortIds, find_entry};
use crate::stores::{self, Left, archive};
use crate::{receipt, setup};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Assembled {
    #[serde(flatten)]
    health: EngineHealthReport,
    /// Text to append to the system prompt. The manifest counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt_addition: Option<String>,
    messages: Box<RawValue>,
    manifest: Manifest,
}

pub(crate) fn run(global: &Global, args: &Assemble, out: &Out) -> anyhow::Result<ExitCode> {
    let is_stdin = setup::is_stdin(&args.session);
    if is_stdin && args.record {
        let error =
            Error::new(ErrorKind::InvalidInput, "--record does not work with standard input");
        return Err(misuse(error.hint("write the transcript to a file, or omit --record")));
    }
    let transcript = setup::open(&args.session, out)?;
    let home = Home::from_env()?;
    let (stores, ids) = stores(args, &transcript, &home);
    let fit = (&args.fit, &args.summaries);
    let fitted = setup::fit(global, fit, &args.session, &transcript, stores, out)?;
    let at = args.at.as_deref().map(|id| find_entry(&transcript, id)).transpose()?;
    let entries = match args.ignore_compactions {
        true => transcript.messages_to(at.as_ref())?.into_iter().map(|item| item.entry).collect(),
        false => transcript.context(at.as_ref())?.entries,
    };
    let leaf = at.or_else(|| transcript.leaf().cloned());
    let sent = transcript.projections(leaf.as_ref())?;
    let mut view = ctx_core::ContextView::new(fitted.ledger).with_projections(sent);
    let last = entries.iter().rev().find_map(|e| e.timestamp());
    for entry in entries {
        view.append(entry)?;
    }
    let now = clock::now();
    let turn = TurnContext { last_request: last, ids, ..TurnContext::at(now) };
    let session_id = transcript.header.id.clone().unwrap_or_default();
    let request = AssembleRequest { session_id, view, turn };
    let assembled = setup::block_on(fitted.engine.assemble(request));
    let health = EngineHealthReport::of(&*fitted.engine, out);
    let mut view = assembled?.into_view();
    view.finish()?;
    let compactions = view.take_compactions();
    for details in compactions.iter().filter_map(|c| Details::from_json(c.details.as_ref()?)) {
        if let Some(warning) = receipt::fell_back(&details.receipt, fitted.writer.as_deref()) {
            out.warn(warning);
        }
    }
    let projections = view.take_projections();
    if args.record {
        let left = view.dropped().iter().filter(|node| node.source_tokens > Tokens::ZERO);
        let left: Vec<_> = left.map(|node| node.entry().clone()).collect();
        let why = if compactions.is_empty() { Left::Request } else { Left::Compaction };
        archive(fitted.memory.as_deref(), &left, why, out);
        let position = (leaf.as_ref(), now);
        record(&home, &args.session, position, &compactions, &projections, out)?;
    }
    let manifest = view.manifest();
    if args.json {
        let system_prompt_addition = view.system_addition().map(str::to_owned);
        let messages = messages(&view, args.to)?;
        out.json(&Assembled { health, system_prompt_addition, messages, manifest })?;
    } else {
        print(&manifest, &ShortIds::of(&transcript), out)?;
        if view.system_addition().is_some() {
            out.note("text is appended to the system prompt, and counted; --json prints it");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Stores compactions after a message, and how other messages were sent.
fn record(
    home: &Home,
    session: &Path,
    (leaf, now): (Option<&EntryId>, Timestamp),
    compactions: &[Compacted],
    projections: &[Projection],
    out: &Out,
) -> ctx_core::Result<()> {
    for compacted in compactions {
        let id = store_compaction(home, session, leaf, compacted, now)?;
        out.note(format!("compaction stored as {}", shortened(&id, ID_CHARS)));
    }
    if !projections.is_empty() {
        let file = ctx_session::save_projections(home, session, projections)?;
        let stored = counted(projections.len(), "projection");
        out.note(format!("{stored} stored in {}", file.display()));
    }
    Ok(())
}

/// Returns where dropped texts are stored, and the source of their names. Only `--record` stores
/// these texts in files, to which the messages refer; a workspace index is always written.
fn stores(args: &Assemble, transcript: &Transcript, home: &Home) -> (Stores, Arc<dyn IdSource>) {
    let agent = stores::agent_of(&args.fit, &args.session);
    let mut stores = stores::of_session(&args.fit, &args.session, transcript, args.record);
    stores.workspaces = Some(home.workspaces_dir(&agent));
    if !args.record {
        return (stores, Arc::new(SequentialIds::default()));
    }
    stores.blobs = Arc::new(FileBlobs::at(home.tool_results_dir(&agent)));
    (stores, Arc::new(RandomIds))
}

/// Returns the messages in the requested format, as one JSON array.
fn messages(view: &ctx_core::ContextView, shape: Shape) -> anyhow::Result<Box<RawValue>> {
    let messages = view.messages()?;
    let messages = messages.iter().map(|m| &**m);
    let written: Vec<String> = match shape {
        Shape::Pi => messages.flat_map(ctx_dialect::pi::write).collect(),
        Shape::Openai => texts(&ctx_dialect::openai_chat::write(messages)),
        Shape::Anthropic => texts(&ctx_dialect::anthropic::write(messages).messages),
    };
    Ok(RawValue::from_string(format!("[{}]", written.join(",")))?)
}

fn texts(written: &[RawJson]) -> Vec<String> {
    written.iter().map(|json| json.as_str().to_owned()).collect()
}

fn print(manifest: &Manifest, ids: &ShortIds<'_>, out: &Out) -> anyhow::Result<()> {
    out.line(format!(
        "{BOLD}{}{BOLD:#} of {} tokens (window {}, {} reserved for the answer)",
        thousands(manifest.tokens.get()),
        thousands(manifest.limit.get()),
        thousands(manifest.window.get()),
        thousands(manifest.reserve.get()),
    ))?;
    let parts: Vec<_> = manifest
        .components
        .iter()
        .filter(|c| c.tokens.0 > 0)
        .map(|c| format!("{} {}", c.name, thousands(c.tokens.get())))
        .collect();
    out.line(format!("{DIM}{}{DIM:#}\n", parts.join(", ")))?;
    let rows = manifest.entries.iter().map(|entry| {
        let state = entry.state.in_words();
        let why = match (&entry.layer, &entry.reason) {
            (Some(layer), Some(reason)) => format!("{layer}: {reason}"),
            _ => String::new(),
        };
        let id = ids.show(&entry.entry);
        let (before, sent) = (thousands(entry.before.get()), thousands(entry.tokens.get()));
        let row: [Cell; 6] = [
            id.into(),
            before.into(),
            sent.into(),
            entry.role.as_str().into(),
            state.into(),
            why.into(),
        ];
        Vec::from(row)
    });
    if manifest.entries.is_empty() {
        out.note("the branch has no messages");
        return Ok(());
    }
    let header = ["entry", "tokens", "sent", "role", "form", "why"];
    let spared = &["tokens", "role", "form"];
    out.line(Table::new(&header, rows.collect(), 3).without(spared).fitted())?;
    Ok(())
}
