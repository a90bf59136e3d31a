//! `ctx convert`.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use ctx_session::{ConvertOptions, Format};

use crate::args::Convert;
use crate::files::{Existing, Readers, write_for};
use crate::out::Out;
use crate::setup;
use crate::words::counted;

pub(crate) fn run(args: &Convert, out: &Out) -> anyhow::Result<ExitCode> {
    let format: Format = args.to.parse()?;
    let options = ConvertOptions { compacted: args.compacted };
    let transcript = setup::open(&args.session, out)?;
    let converted = match &args.output {
        Some(path) => {
            let existing = Existing::replaced_if(args.force);
            // Sessions of ctx are for their owner alone, as those are that it creates itself.
            let readers = if format == Format::Ctx { Readers::Owner } else { Readers::Usual };
            let converted = write_for(readers, &args.session, path, existing, |writer| {
                Ok(transcript.convert_with(format, options, writer)?)
            })?;
            let messages = counted(converted.messages, "message");
            out.note(format!("{messages} written to {}", path.display()));
            converted
        }
        None => {
            let mut writer = BufWriter::new(std::io::stdout().lock());
            let converted = transcript.convert_with(format, options, &mut writer)?;
            writer.flush()?;
            converted
        }
    };
    for sentence in &converted.left_out {
        out.note(format!("left out: {sentence}"));
    }
    Ok(ExitCode::SUCCESS)
}
