//! `ctx convert`.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use ctx_core::{Error, ErrorKind};
use ctx_session::{ConvertOptions, Format};

use crate::args::Convert;
use crate::files::{Existing, write_beside};
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
            let converted = write_beside(&args.session, path, existing, |writer| {
                Ok(transcript.convert_with(format, options, writer)?)
            })?;
            if format == Format::Ctx {
                make_private(path)?;
            }
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

/// Sessions of ctx are for their owner alone, as those are that it creates itself.
fn make_private(path: &Path) -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(path, private).map_err(|e| {
            Error::new(ErrorKind::Io, "the session was written, but others may read it")
                .with("path", path.display())
                .source(e)
                .hint("take the rights of others away: chmod 600 FILE")
        })?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
