//! `ctx convert`.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use ctx_session::Format;

use crate::args::Convert;
use crate::files::{Existing, write_beside};
use crate::out::Out;
use crate::setup;
use crate::words::counted;

pub(crate) fn run(args: &Convert, out: &Out) -> anyhow::Result<ExitCode> {
    let format: Format = args.to.parse()?;
    let transcript = setup::open(&args.session, out)?;
    let converted = match &args.output {
        Some(path) => {
            let existing = Existing::replaced_if(args.force);
            let converted = write_beside(&args.session, path, existing, |writer| {
                Ok(transcript.convert(format, writer)?)
            })?;
            let messages = counted(converted.messages, "message");
            out.note(format!("{messages} written to {}", path.display()));
            converted
        }
        None => {
            let mut writer = BufWriter::new(std::io::stdout().lock());
            let converted = transcript.convert(format, &mut writer)?;
            writer.flush()?;
            converted
        }
    };
    for sentence in &converted.left_out {
        out.note(format!("left out: {sentence}"));
    }
    Ok(ExitCode::SUCCESS)
}
