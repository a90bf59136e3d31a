//! `ctx compact --undo`.

use std::process::ExitCode;

use ctx_core::{EntryId, Error, ErrorKind};
use ctx_session::{CompactionAuthor, Home, Transcript, clock, undo_compaction};
use ctx_terminal::format::{escaped, shortened};
use ctx_terminal::out::Out;
use serde::Serialize;

use crate::args::Compact;
use crate::entry_ids::{ID_CHARS, ShortIds, find_compaction, lists_compactions};
use crate::setup;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UndoReport {
    ok: bool,
    undone: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The entry that was undone: a compaction, or an earlier undo.
    #[serde(skip_serializing_if = "Option::is_none")]
    compaction_id: Option<EntryId>,
    /// The entry that records the undo.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_id: Option<EntryId>,
}

pub(super) fn run(args: &Compact, out: &Out) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let transcript = setup::open(&args.session, out)?;
    let named = args.compaction.as_ref();
    let which = named.map(|id| find_compaction(&transcript, &args.session, id)).transpose()?;
    let now = clock::now();
    let undone =
        undo_compaction(&home, &args.session, which.as_ref(), now).map_err(|error| match error
            .kind()
        {
            ErrorKind::NotFound => error.hint(lists_compactions(&args.session)),
            ErrorKind::InvalidInput if !names_archive(&error) => {
                error.hint(lists_compactions(&args.session))
            }
            _ => error,
        })?;
    let redone = undone.as_ref().is_some_and(|undone| undone.redone);
    let reason = match &undone {
        Some(_) => None,
        None => Some(nothing_to_undo(&transcript, which.as_ref())?),
    };
    let report = UndoReport {
        ok: true,
        undone: undone.is_some(),
        reason,
        compaction_id: undone.as_ref().map(|undone| undone.target.clone()),
        entry_id: undone.map(|undone| undone.id),
    };
    if args.json {
        out.json(&report)?;
    } else if let Some(id) = &report.compaction_id {
        let id = shortened(id, ID_CHARS);
        match redone {
            true => out.line(format!("undo {id} reverted: the compaction is in force again"))?,
            false => {
                out.line(format!("compaction {id} undone: the previous context is restored"))?;
            }
        }
        if let Some(entry) = &report.entry_id {
            let session = escaped(&args.session.to_string_lossy());
            let entry = shortened(entry, ID_CHARS);
            let what = if redone { "undoes it again" } else { "reverts this undo" };
            out.note(format!("`ctx compact {session} --undo --compaction {entry}` {what}"));
        }
    } else {
        let reason = report.reason.as_deref().unwrap_or_default();
        out.line(format!("nothing to undo: {}", escaped(reason)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether an error already says where the missing messages are archived.
fn names_archive(error: &Error) -> bool {
    error.context().iter().any(|(key, _)| *key == "archived in")
}

/// Returns why there is nothing to undo.
fn nothing_to_undo(transcript: &Transcript, which: Option<&EntryId>) -> ctx_core::Result<String> {
    let ids = ShortIds::of(transcript);
    if let Some(which) = which {
        return Ok(format!("{} is undone already", ids.show(which)));
    }
    let list = transcript.compaction_list(None)?;
    let in_force = list.iter().rfind(|compaction| !compaction.undone);
    Ok(match in_force {
        Some(compaction) => {
            let id = ids.show(&compaction.id);
            let whose = match compaction.by {
                CompactionAuthor::Agent => "the agent's",
                CompactionAuthor::Extension => "an extension's",
                CompactionAuthor::Ctx => "ctx's",
            };
            format!(
                "no compaction made by ctx is in force; {id} is {whose}: name it with \
                 --compaction to undo it"
            )
        }
        None if list.is_empty() => "the session has no compaction".to_owned(),
        None => "the session has no compaction in force".to_owned(),
    })
}
