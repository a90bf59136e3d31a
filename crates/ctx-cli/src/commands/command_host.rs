//! `ctx command-host`: not for people. The tool `bash` of `ctx chat` has it run a command in a session
//! of its own, so that it has no terminal to read from; and end it when `ctx chat` is gone, however it
//! ended.

use std::process::ExitCode;

use crate::args::CommandHost;

/// What shells say of a command that cannot be run.
const CANNOT_RUN: u8 = 127;

#[cfg(unix)]
pub(crate) fn run(args: &CommandHost) -> anyhow::Result<ExitCode> {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    // Its error is that this is so already.
    let _ = rustix::process::setsid();
    let lifeline =
        std::thread::Builder::new().name("lifeline".into()).spawn(end_with_standard_input);
    if let Err(error) = lifeline {
        return cannot(&error);
    }
    // One stream for both, so that what is said stays in its order.
    let command = format!("exec 2>&1\n{}", args.command);
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stderr(Stdio::null());
    let status = match shell.status() {
        Ok(status) => status,
        Err(error) => return cannot(&error),
    };
    // As shells say it of a signal.
    let by_signal = || status.signal().map(|signal| signal.saturating_add(128));
    let code = status.code().or_else(by_signal).and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(CANNOT_RUN)))
}

#[cfg(not(unix))]
pub(crate) fn run(_: &CommandHost) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::from(CANNOT_RUN))
}

/// Waits for the end of standard input, whose other end nobody holds but who started this, and ends the
/// command with all that it started.
#[cfg(unix)]
fn end_with_standard_input() {
    use rustix::process::{Signal, getpid, kill_process_group};
    // Nothing is sent; an error says the same as the end.
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    let _ = kill_process_group(getpid(), Signal::KILL);
}

/// It is told where the command's output goes: there is nowhere else.
#[cfg(unix)]
fn cannot(error: &std::io::Error) -> anyhow::Result<ExitCode> {
    use std::io::Write;
    writeln!(std::io::stdout(), "bash cannot be run: {error}")?;
    Ok(ExitCode::from(CANNOT_RUN))
}
