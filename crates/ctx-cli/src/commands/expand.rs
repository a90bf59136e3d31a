//! `ctx expand`.

use std::process::ExitCode;

use ctx_core::{Entry, Message};
use ctx_runtime::cited::{Piece, expand, pieces};
use serde_json::value::RawValue;

use crate::args::Expand;
use crate::named::{ID_CHARS, lists_entries};
use crate::out::{BOLD, DIM, Out};
use crate::setup;
use crate::words::{harmless, harmless_lines, shortened};

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
    out.line(format!("{BOLD}{}{BOLD:#} {id}{time}", harmless(message.role.name())))?;
    for Piece { label, text, is_thought } in pieces(message) {
        let is_below = label.is_some_and(|label| label.ends_with(':'));
        let text = harmless_lines(&text);
        match label {
            Some(label) if is_below => out.line(format!("{DIM}{label}{DIM:#}\n{text}"))?,
            Some(label) => out.line(format!("{DIM}{label}{DIM:#} {text}"))?,
            None if is_thought => out.line(format!("{DIM}{text}{DIM:#}"))?,
            None => out.line(text)?,
        }
    }
    Ok(())
}
