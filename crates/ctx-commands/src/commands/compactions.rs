//! `ctx compactions`.

use std::collections::HashMap;
use std::process::ExitCode;

use ctx_core::EntryId;
use ctx_runtime::lookup::provenance::receipt_of;
use ctx_server::proxy::{SavedCompaction, SavedCompactions};
use ctx_session::{CompactionAuthor, Home, StoredCompaction, Transcript};
use ctx_terminal::format::{escaped, minute, shortened, thousands};
use ctx_terminal::out::{Cell, DIM, GREEN, Out, Table};
use serde_json::Value;

use crate::args::Compactions;
use crate::entry_ids::{ID_CHARS, ShortIds};
use crate::{receipt, setup};

pub(crate) fn run(args: &Compactions, out: &Out) -> anyhow::Result<ExitCode> {
    let Some(session) = &args.session else { return of_proxy(args.json, out) };
    let transcript = setup::open(session, out)?;
    let mut list = transcript.compaction_list(None)?;
    subtract_unsent(&transcript, &mut list)?;
    if args.json {
        out.json(&list)?;
    } else if list.is_empty() {
        out.note("the session was never compacted; `ctx compact` compacts it");
    } else {
        out.line(rows(&list, &ShortIds::of(&transcript)))?;
        if let Some(undo) = list.iter().rev().find_map(|compaction| compaction.undone_by.as_ref()) {
            let session = escaped(&session.to_string_lossy());
            let undo = ShortIds::of(&transcript).show(undo);
            out.note(format!(
                "`ctx compact {session} --undo --compaction {undo}` reverts the undo {undo}"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists the compactions of the proxy's clients. A damaged one is reported, and the others listed.
fn of_proxy(json: bool, out: &Out) -> anyhow::Result<ExitCode> {
    let saved = SavedCompactions::of(&Home::from_env()?);
    let ids = saved.ids();
    let mut list = Vec::with_capacity(ids.len());
    for id in &ids {
        match saved.get(id) {
            Ok(compaction) => list.push(compaction),
            Err(error) => out.warn(error.to_string()),
        }
    }
    if json {
        out.json(&list)?;
    } else if ids.is_empty() {
        out.note("no client of `ctx serve` has asked for a compaction whose messages are saved");
    } else {
        let short = ShortIds::among(ids.iter().map(String::as_str));
        out.line(saved_rows(&list, &short))?;
        out.note("`ctx expand --proxy ID` prints the messages that a compaction covers");
    }
    Ok(if list.len() == ids.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn saved_rows(list: &[SavedCompaction], ids: &ShortIds<'_>) -> String {
    let rows = list.iter().map(|compaction| {
        let after = compaction.parent.as_ref().map(|id| ids.show(id));
        let session = compaction.session.as_ref().map(|id| shortened(id, ID_CHARS));
        let or_none = |cell: Option<String>| Cell::from(cell.unwrap_or_else(|| "-".to_owned()));
        vec![
            Cell::from(ids.show(&compaction.id)),
            thousands(compaction.messages as u64).into(),
            or_none(after),
            or_none(compaction.protocol.map(|protocol| protocol.name().to_owned())),
            or_none(session),
            or_none(compaction.timestamp.map(minute)),
        ]
    });
    let header = ["id", "messages", "follows", "api", "conversation", "when"];
    Table::new(&header, rows.collect(), 2).without(&["api", "when"]).fitted()
}

/// Subtracts the messages that are never sent to a model from the counts, as receipts do.
fn subtract_unsent(transcript: &Transcript, list: &mut [StoredCompaction]) -> anyhow::Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    let line = transcript.messages_to(None)?;
    let mut places: HashMap<&EntryId, usize> = HashMap::with_capacity(line.len());
    // Running count of the messages that are never sent.
    let mut unseen = vec![0];
    let mut so_far = 0;
    for (place, item) in line.iter().enumerate() {
        places.insert(item.entry.id(), place);
        so_far += usize::from(!item.entry.message()?.in_model_context());
        unseen.push(so_far);
    }
    for covered in list.iter_mut().map(|compaction| &mut compaction.covered) {
        let ends = [&covered.first, &covered.last].map(|id| places.get(id.as_ref()?).copied());
        if let [Some(first), Some(last)] = ends
            && let Some((before, after)) = unseen.get(first).zip(unseen.get(last + 1))
        {
            covered.messages = covered.messages.saturating_sub(after.saturating_sub(*before));
        }
    }
    Ok(())
}

fn rows(list: &[StoredCompaction], ids: &ShortIds<'_>) -> String {
    let in_force = list.iter().rposition(|compaction| !compaction.undone);
    let rows = list.iter().enumerate().map(|(at, compaction)| {
        let receipt = receipt_of(compaction);
        let state = match in_force {
            _ if compaction.undone => {
                let by = compaction.undone_by.as_ref().map(|by| format!(" by {}", ids.show(by)));
                Cell::styled(format!("undone{}", by.unwrap_or_default()), DIM)
            }
            Some(newest) if newest == at => Cell::styled("in force", GREEN),
            _ => "replaced".into(),
        };
        let tokens = |tokens: Option<ctx_core::Tokens>| {
            tokens.map_or_else(|| "-".to_owned(), |tokens| thousands(tokens.get()))
        };
        let writer = match (&receipt, compaction.by) {
            (Some(receipt), _) => receipt::writer(receipt),
            (None, CompactionAuthor::Agent) => "the agent".to_owned(),
            (None, CompactionAuthor::Extension) => "an extension".to_owned(),
            (None, CompactionAuthor::Ctx) => {
                engine_of(compaction).unwrap_or_else(|| "ctx".to_owned())
            }
        };
        vec![
            Cell::from(ids.show(&compaction.id)),
            thousands(compaction.covered.messages as u64).into(),
            tokens(compaction.tokens_before).into(),
            tokens(compaction.tokens_after).into(),
            receipt.as_ref().map_or_else(|| "-".into(), receipt::coverage),
            writer.into(),
            state,
            compaction.timestamp.map(minute).unwrap_or_default().into(),
        ]
    });
    // Rows with full ids would exceed 80 columns; --json has them.
    let header = ["id", "messages", "tokens", "after", "kept", "by", "state", "when"];
    let spared = &["when", "messages", "by", "kept"];
    Table::new(&header, rows.collect(), 5).without(spared).fitted()
}

/// Returns the engine of a compaction that ctx's own summarisers did not make.
fn engine_of(compaction: &StoredCompaction) -> Option<String> {
    let details: Value = serde_json::from_str(compaction.details.as_ref()?.as_str()).ok()?;
    details.get("engine")?.as_str().map(escaped)
}
