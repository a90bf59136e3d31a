//! How a run fails: which arguments are refused, what it means that nothing can be written, and the
//! exit codes.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use ctx_core::{Error, ErrorKind};

/// Something went wrong.
const FAILED: u8 = 1;

/// The command was not understood, or its arguments make no sense: clap's code for the same.
const MISUSED: u8 = 2;

/// Arguments that the program refuses, as clap refuses those that it knows to be wrong.
#[derive(Debug)]
struct Misuse(Error);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Misuse {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// An error of the arguments themselves, whatever files they name.
pub(crate) fn misuse(error: Error) -> anyhow::Error {
    Misuse(error).into()
}

/// The code to exit with after `error`.
pub(crate) fn code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(if error.is::<Misuse>() { MISUSED } else { FAILED })
}

/// Names what failed where it is the output: an error of writing that came with no file is one of
/// standard output. `None` if its reader went away, which is not an error of ours.
pub(crate) fn told(error: anyhow::Error) -> Option<anyhow::Error> {
    let kind = error.chain().find_map(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        io.or_else(|| cause.downcast_ref::<serde_json::Error>()?.io_error_kind())
    });
    match kind {
        Some(io::ErrorKind::BrokenPipe) => None,
        Some(kind) if !error.chain().any(|cause| cause.is::<Error>()) => {
            Some(unwritten(kind).source(error).into())
        }
        _ => Some(error),
    }
}

/// Of output whose reader went away: for who has an exit code to give all the same.
pub(crate) fn unless_unread(told: anyhow::Result<()>) -> anyhow::Result<()> {
    told.or_else(|error| self::told(error).map_or(Ok(()), Err))
}

fn unwritten(kind: io::ErrorKind) -> Error {
    let hint = match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some disk space, or send the output elsewhere"
        }
        io::ErrorKind::FileTooLarge => "raise the limit of file sizes: see `ulimit -f`",
        _ => "see where the output of the command goes",
    };
    Error::new(ErrorKind::Io, "standard output cannot be written").hint(hint)
}

/// Prints what clap has to say: help, the version, or what is wrong with the arguments.
pub(crate) fn said_by_clap(said: &clap::Error) -> anyhow::Result<ExitCode> {
    said.print()?;
    io::stdout().flush()?;
    Ok(ExitCode::from(u8::try_from(said.exit_code()).unwrap_or(FAILED)))
}

/// A file at its size limit (`ulimit -f`) becomes an error of the write, which is told and leaves
/// what is stored whole. Without a handler the signal ends the process.
#[cfg(unix)]
pub(crate) fn survive_size_limits() {
    // Where the handler cannot be had, the system does what it did before.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Default::default());
}

#[cfg(not(unix))]
pub(crate) fn survive_size_limits() {}
