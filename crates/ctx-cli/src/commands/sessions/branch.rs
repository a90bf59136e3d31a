//! `ctx sessions branch`.

use std::process::ExitCode;

use ctx_core::{EntryId, Error, ErrorKind};
use ctx_runtime::{BranchMove, branch_ends};
use ctx_session::{LogOptions, SessionLog, clock};
use serde::Serialize;

use crate::args::{BranchArgs, Global};
use crate::format::{counted, escaped};
use crate::models;
use crate::out::Out;
use crate::session_args;
use crate::setup;

/// Where the session continues.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Moved {
    /// The named entry.
    target: EntryId,
    /// The new entry after it.
    entry_id: EntryId,
    /// Number of messages on the abandoned branch only.
    messages_left: usize,
}

/// The end of a branch.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct End {
    id: EntryId,
    begins: String,
}

pub(super) fn run(global: &Global, args: &BranchArgs, out: &Out) -> anyhow::Result<ExitCode> {
    let session = session_args::one(&args.session)?;
    let transcript = setup::open(&session, out)?;
    let Some(named) = &args.entry else {
        let ends = branch_ends(&transcript)?;
        let ends = ends.into_iter().map(|(id, begins)| End { id, begins });
        if args.json {
            out.json(&ends.collect::<Vec<_>>())?;
        } else {
            for End { id, begins } in ends {
                out.line(format!("{id}  {}", escaped(&begins)))?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    };
    if !transcript.is_ctx_session() {
        let error = Error::new(ErrorKind::InvalidInput, "only a session of ctx can be changed");
        let hint = format!("`ctx convert {} --to ctx -o NEW` makes one", session.display());
        return Err(error.with("path", session.display()).hint(hint).into());
    }
    let to = BranchMove::to(&transcript, named)?;
    let resolved = setup::resolve(global, &args.fit, &session, &transcript)?;
    let models = models::summary_models(&resolved.config, &args.fit, &args.summaries, out)?;
    let entry = to.entry(&resolved, models.as_ref(), transcript.leaf().cloned());
    let entry = setup::block_on(async { Ok(entry.await) })?;
    let mut log = SessionLog::open(&session, LogOptions::default())?;
    if log.leaf() != transcript.leaf() {
        let error = Error::new(ErrorKind::Conflict, "the session was changed meanwhile");
        return Err(error.with("path", session.display()).hint("try again").into());
    }
    let entry_id = to.append(&mut log, &entry, clock::now())?;
    log.commit()?;
    let moved = Moved { target: to.target, entry_id, messages_left: to.left.len() };
    out.report(args.json, &moved, |moved, out| {
        let left = counted(moved.messages_left, "message");
        let target = &moved.target;
        let words =
            format!("the session continues after {target}; {left} left on the other branch");
        Ok(out.line(words)?)
    })
}
