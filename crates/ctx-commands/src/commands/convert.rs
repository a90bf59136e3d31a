//! `ctx convert`.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use ctx_core::{Error, ErrorKind};
use ctx_session::Format;
use ctx_terminal::failure::misuse;
use ctx_terminal::files::{Existing, Readers};
use ctx_terminal::format::{counted, shortened};
use ctx_terminal::out::Out;

use crate::args::Convert;
use crate::files::write_for;
use crate::setup;

/// Maximum length of a format name.
const NAME_CHARS: usize = 40;

pub(crate) fn run(args: &Convert, out: &Out) -> anyhow::Result<ExitCode> {
    let format = written_format(&args.to).map_err(misuse)?;
    let refused = |error: Error| match args.compacted && !format.holds_compacted_history() {
        true => misuse(error),
        false => error.into(),
    };
    let transcript = setup::open(&args.session, out)?;
    let converted = match &args.output {
        Some(path) => {
            let existing = Existing::replaced_if(args.force);
            // Sessions of ctx are readable by their owner only, like those that ctx creates itself.
            let readers = if format.takes_entries() { Readers::Owner } else { Readers::Usual };
            let converted = write_for(readers, &args.session, path, existing, |writer| {
                transcript.convert_with(format, args.compacted, writer).map_err(refused)
            })?;
            let messages = counted(converted.messages, "message");
            out.note(format!("{messages} written to {}", path.display()));
            converted
        }
        None => {
            let mut writer = BufWriter::new(std::io::stdout().lock());
            let converted =
                transcript.convert_with(format, args.compacted, &mut writer).map_err(refused)?;
            writer.flush()?;
            converted
        }
    };
    for sentence in &converted.left_out {
        out.note(format!("omitted: {sentence}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the format of that name, if it can be written.
fn written_format(name: &str) -> Result<Format, Error> {
    name.parse().map_err(|_| {
        let name = shortened(name, NAME_CHARS);
        let error = Error::new(ErrorKind::InvalidInput, format!("unknown format '{name}'"));
        let targets = Format::targets().collect::<Vec<_>>().join(", ");
        let targets = targets.rsplit_once(", ").map(|(all, last)| format!("{all} or {last}"));
        error.hint(format!("use {}", targets.unwrap_or_default()))
    })
}
