//! `ctx expand`.

use std::process::ExitCode;
use std::sync::Arc;

use ctx_core::{Entry, Error, ErrorKind, Message};
use ctx_runtime::lookup::cited::{expand, message_text};
use ctx_server::proxy::SavedCompactions;
use ctx_session::Home;
use ctx_terminal::format::{escaped, escaped_lines, shortened};
use ctx_terminal::out::{BOLD, DIM, Out};
use serde_json::value::RawValue;

use crate::args::Expand;
use crate::entry_ids::{ID_CHARS, lists_entries};
use crate::setup;

pub(crate) fn run(args: &Expand, out: &Out) -> anyhow::Result<ExitCode> {
    let found = match &args.session {
        Some(session) => {
            expand(&setup::open(session, out)?, &args.entries).map_err(lists_entries)?
        }
        None => compacted(&args.proxy, out)?,
    };
    let mut json = Vec::new();
    for (at, entry) in found.iter().enumerate() {
        let message = entry.message()?;
        if args.json {
            json.extend(ctx_dialect::pi::write(&message));
        } else {
            if at > 0 {
                out.line("")?;
            }
            print(entry, &message, out)?;
        }
    }
    if args.json {
        out.json(&RawValue::from_string(format!("[{}]", json.join(",")))?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the messages of the proxy's compactions with these ids.
fn compacted(ids: &[String], out: &Out) -> anyhow::Result<Vec<Arc<Entry>>> {
    let saved = SavedCompactions::of(&Home::from_env()?);
    let mut found = Vec::new();
    for id in ids {
        let history = saved.restore(&saved.find(id)?)?;
        let entries = history.entries();
        let id = shortened(id, ID_CHARS);
        if let Some(missing) = &history.missing {
            let next = format!("try `ctx expand --proxy {}`", shortened(missing, ID_CHARS));
            out.warn(format!("compaction '{id}' also covers earlier messages: {next}"));
        } else if entries.is_empty() {
            let error = format!("no message is saved for compaction '{id}'");
            let hint = "if two conversations get the same compaction, ctx keeps nothing of either";
            return Err(Error::new(ErrorKind::NotFound, error).hint(hint).into());
        }
        found.extend(entries);
    }
    Ok(found)
}

fn print(entry: &Entry, message: &Message, out: &Out) -> anyhow::Result<()> {
    let time = entry.timestamp().and_then(|at| jiff::Timestamp::from_millisecond(at.0).ok());
    let time = time.map(|time| format!(" {DIM}{time:.0}{DIM:#}")).unwrap_or_default();
    let id = shortened(entry.id(), ID_CHARS);
    out.line(format!("{BOLD}{}{BOLD:#} {id}{time}", escaped(message.role.name())))?;
    out.line(escaped_lines(&message_text(message)))?;
    Ok(())
}
