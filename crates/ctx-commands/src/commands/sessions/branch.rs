//! `ctx sessions branch`.

use std::process::ExitCode;

use ctx_core::{Error, ErrorKind};
use ctx_runtime::{BranchMove, branch_ends};
use ctx_session::{LogOptions, SessionLog, clock};
use ctx_terminal::format::{counted, escaped};
use ctx_terminal::out::Out;
use serde_json::json;

use crate::args::{BranchArgs, Global};
use crate::{models, session_args, setup};

pub(super) fn run(global: &Global, args: &BranchArgs, out: &Out) -> anyhow::Result<ExitCode> {
    let session = session_args::one(&args.session)?;
    let transcript = setup::open(&session, out)?;
    let Some(named) = &args.entry else {
        let ends = branch_ends(&transcript)?;
        let end = |(id, begins): &(_, String)| json!({ "id": id, "begins": begins });
        return out.report(args.json, &ends.iter().map(end).collect::<Vec<_>>(), |_, out| {
            let mut ends = ends.iter();
            Ok(ends.try_for_each(|(id, begins)| out.line(format!("{id}  {}", escaped(begins))))?)
        });
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
    let (target, left) = (&to.target, to.left.len());
    // The named entry, and the new one after it.
    let moved = json!({ "target": target, "entryId": entry_id, "messagesLeft": left });
    out.report(args.json, &moved, |_, out| {
        let left = counted(left, "message");
        let words =
            format!("the session continues after {target}; {left} left on the other branch");
        Ok(out.line(words)?)
    })
}
