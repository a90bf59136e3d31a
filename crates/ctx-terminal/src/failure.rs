//! Errors of a run: rejected arguments, failed output, and the exit codes.

use std::fmt;
use std::io;
use std::process::ExitCode;

use ctx_core::{Error, ErrorKind};

/// An error occurred.
const FAILED: u8 = 1;

/// Invalid command or arguments: the same code as clap's.
const MISUSED: u8 = 2;

/// Arguments that the program itself rejects, not clap.
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

/// The user answered a question with no.
#[derive(Debug)]
pub struct Declined;

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing was changed")
    }
}

impl std::error::Error for Declined {}

/// Marks an error as an argument error, which has its own exit code.
pub fn misuse(error: Error) -> anyhow::Error {
    Misuse(error).into()
}

/// Returns the exit code for `error`.
pub fn code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(if error.is::<Misuse>() { MISUSED } else { FAILED })
}

/// Names standard output in a write error that names no file. Returns `None` if the reader closed
/// the pipe, which is not an error.
pub fn reportable(error: anyhow::Error) -> Option<anyhow::Error> {
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

/// Ignores output errors of a closed pipe, for commands that still return an exit code.
pub fn ignore_closed_pipe(printed: anyhow::Result<()>) -> anyhow::Result<()> {
    printed.or_else(|error| reportable(error).map_or(Ok(()), Err))
}

fn unwritten(kind: io::ErrorKind) -> Error {
    let hint = match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some disk space, or send the output elsewhere"
        }
        io::ErrorKind::FileTooLarge => "raise the limit of file sizes: see `ulimit -f`",
        _ => "check where the command's output is sent",
    };
    Error::new(ErrorKind::Io, "cannot write to standard output").hint(hint)
}

/// Returns the error for an async runtime that cannot be created.
pub fn runtime_error(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, "cannot start the async runtime")
        .hint("check the limit of open files: `ulimit -n`")
        .source(error)
}

/// Turns a file size limit (`ulimit -f`) into a write error, which is reported and leaves stored
/// data intact. Without a handler the signal ends the process.
#[cfg(unix)]
pub fn survive_size_limits() {
    // If this fails, the signal ends the process.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Default::default());
}

/// This system has no such signal.
#[cfg(not(unix))]
pub fn survive_size_limits() {}
