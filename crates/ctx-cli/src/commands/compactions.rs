//! `ctx compactions`.

use std::process::ExitCode;

use ctx_compaction::{Details, Receipt};
use ctx_session::compactions::{CompactedBy, StoredCompaction};
use jiff::Timestamp;

use crate::args::Compactions;
use crate::named::ShortIds;
use crate::out::{Cell, DIM, GREEN, Out, table};
use crate::receipt;
use crate::setup;
use crate::words::thousands;

pub(crate) fn run(args: &Compactions, out: &Out) -> anyhow::Result<ExitCode> {
    let transcript = setup::open(&args.session, out)?;
    let list = transcript.compaction_list(None)?;
    if args.json {
        out.json(&list)?;
    } else if list.is_empty() {
        out.note("the session was never compacted; `ctx compact` does");
    } else {
        out.line(rows(&list, &ShortIds::of(&transcript)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn rows(list: &[StoredCompaction], ids: &ShortIds<'_>) -> String {
    let in_force = list.iter().rposition(|compaction| !compaction.undone);
    let rows = list.iter().enumerate().map(|(at, compaction)| {
        let receipt = receipt_of(compaction);
        let state = match in_force {
            _ if compaction.undone => Cell::styled("undone", DIM),
            Some(newest) if newest == at => Cell::styled("in force", GREEN),
            _ => "replaced".into(),
        };
        let tokens = |tokens: Option<ctx_core::Tokens>| {
            tokens.map_or_else(|| "-".to_owned(), |tokens| thousands(tokens.get()))
        };
        let writer = match (&receipt, compaction.by) {
            (Some(receipt), _) => receipt::writer(receipt),
            (None, CompactedBy::Agent) => "the agent".to_owned(),
            (None, CompactedBy::Extension) => "an extension".to_owned(),
            (None, CompactedBy::Ctx) => "ctx".to_owned(),
        };
        let when = compaction.timestamp.and_then(|at| Timestamp::from_millisecond(at.0).ok());
        let mut row: Vec<Cell> = vec![
            ids.show(&compaction.id).into(),
            thousands(compaction.covered.messages as u64).into(),
            tokens(compaction.tokens_before).into(),
            tokens(compaction.tokens_after).into(),
            receipt.as_ref().map_or_else(|| "-".into(), receipt::coverage),
            writer.into(),
            state,
        ];
        row.push(
            when.map_or_else(String::new, |when| when.strftime("%m-%d %R").to_string()).into(),
        );
        row
    });
    // A row with ids and times in full would not fit into 80 columns; --json has them.
    let header = ["id", "messages", "tokens", "after", "kept", "by", "state", "when"];
    table(&header, rows.collect(), 5)
}

/// The receipt of a compaction that ctx made.
pub(crate) fn receipt_of(compaction: &StoredCompaction) -> Option<Receipt> {
    let details = serde_json::from_str(compaction.details.as_ref()?.as_str()).ok()?;
    Some(Details::from_json(&details)?.receipt)
}
