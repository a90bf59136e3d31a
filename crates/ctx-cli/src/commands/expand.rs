//! `ctx expand`.

use std::process::ExitCode;

use ctx_core::{Entry, Message};
use ctx_runtime::lookup::cited::{expand, message_text};
use ctx_terminal::format::{escaped, escaped_lines, shortened};
use ctx_terminal::out::{BOLD, DIM, Out};
use serde_json::value::RawValue;

use crate::args::Expand;
use crate::entry_ids::{ID_CHARS, lists_entries};
use crate::setup;

pub(crate) fn run(args: &Expand, out: &Out) -> anyhow::Result<ExitCode> {
    let transcript = setup::open(&args.session, out)?;
    let found = expand(&transcript, &args.entries).map_err(lists_entries)?;
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

fn print(entry: &Entry, message: &Message, out: &Out) -> anyhow::Result<()> {
    let time = entry.timestamp().and_then(|at| jiff::Timestamp::from_millisecond(at.0).ok());
    let time = time.map(|time| format!(" {DIM}{time:.0}{DIM:#}")).unwrap_or_default();
    let id = shortened(entry.id(), ID_CHARS);
    out.line(format!("{BOLD}{}{BOLD:#} {id}{time}", escaped(message.role.name())))?;
    out.line(escaped_lines(&message_text(message)))?;
    Ok(())
}
