//! `ctx convert`.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use ctx_session::Format;

use crate::args::Convert;
use crate::out::{self, Existing, Out};
use crate::setup;

pub(crate) fn run(args: &Convert, out: &Out) -> anyhow::Result<ExitCode> {
    let format: Format = args.to.parse()?;
    let transcript = setup::open(&args.session, out)?;
    match &args.output {
        Some(path) => {
            let existing = Existing::replaced_if(args.force);
            let written = out::write_beside(&args.session, path, existing, |writer| {
                Ok(transcript.convert(format, writer)?)
            })?;
            out.note(format!("{written} messages written to {}", path.display()));
        }
        None => {
            let mut writer = BufWriter::new(std::io::stdout().lock());
            transcript.convert(format, &mut writer)?;
            writer.flush()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
