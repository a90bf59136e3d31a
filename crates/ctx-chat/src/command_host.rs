//! `ctx command-host`: for internal use. The tool `bash` uses it to run a command in its own session
//! without a terminal, and to end the command when the conversation has ended for any reason.

use std::process::ExitCode;

/// The shells' exit code for a command that cannot be run.
const CANNOT_RUN: u8 = 127;

/// Runs a command of the tool `bash`, and ends it when standard input is closed.
///
/// # Errors
///
/// If the output cannot be written.
#[cfg(unix)]
pub fn host_command(command: &str) -> anyhow::Result<ExitCode> {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    // Fails only if this process already leads a session.
    let _ = rustix::process::setsid();
    let lifeline =
        std::thread::Builder::new().name("lifeline".into()).spawn(end_with_standard_input);
    if let Err(error) = lifeline {
        return cannot(&error);
    }
    // Output and errors share a stream, which keeps their order.
    let command = format!("exec 2>&1\n{command}");
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stderr(Stdio::null());
    let status = match shell.status() {
        Ok(status) => status,
        Err(error) => return cannot(&error),
    };
    // The shells' exit code for a signal.
    let by_signal = || status.signal().map(|signal| signal.saturating_add(128));
    let code = status.code().or_else(by_signal).and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(CANNOT_RUN)))
}

/// Runs nothing: on this system the tool `bash` runs its commands itself.
///
/// # Errors
///
/// None.
#[cfg(not(unix))]
pub fn host_command(_: &str) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::from(CANNOT_RUN))
}

/// Waits until standard input is closed, which happens when the parent process ends, and kills the
/// command with all its processes.
#[cfg(unix)]
fn end_with_standard_input() {
    use rustix::process::{Signal, getpid, kill_process_group};
    // The parent sends nothing. An error also means that it ended.
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    let _ = kill_process_group(getpid(), Signal::KILL);
}

/// Writes the error to the command's output: the caller reads nothing else.
#[cfg(unix)]
fn cannot(error: &std::io::Error) -> anyhow::Result<ExitCode> {
    use std::io::Write;
    writeln!(std::io::stdout(), "cannot run bash: {error}")?;
    Ok(ExitCode::from(CANNOT_RUN))
}
