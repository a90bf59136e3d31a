//! `bash`: runs a command in its own session, with a time limit.

#[cfg(all(unix, not(test)))]
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use ctx_core::{ToolCall, ToolOutput};
use ctx_terminal::format::counted;
use ctx_terminal::shutdown::ProcessGroup;
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::output::BoundedOutput;
use super::{Tool, ToolAction, Tools, arguments};

pub(super) const NAME: &str = "bash";

/// Default and maximum time limits of a command.
const USUAL_SECONDS: u64 = 120;
const MOST_SECONDS: u64 = 3_600;

/// Longer outputs end with the exit status even on success.
const LONG: u64 = 4_000;

pub(super) fn spec() -> (&'static str, String, &'static str) {
    let about = format!(
        "Runs a command in bash, in the working folder, without input or terminal. After `timeout` \
         seconds ({USUAL_SECONDS} by default), it is killed with all processes that it started. \
         Returns the output and the exit status."
    );
    let parameters = r#"{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer","minimum":1}},"required":["command"]}"#;
    (NAME, about, parameters)
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
    timeout: Option<u64>,
}

impl Tools {
    pub(super) async fn bash(&self, call: &ToolCall) -> Result<ToolOutput, String> {
        let Arguments { command, timeout } = arguments(call)?;
        if command.contains('\0') {
            return Err("the command contains a NUL byte".to_owned());
        }
        let seconds = timeout.unwrap_or(USUAL_SECONDS).clamp(1, MOST_SECONDS);
        let (subject, words) = (command.clone(), format!("run {command}"));
        self.ask_permission(ToolAction {
            tool: Tool::Bash,
            subject,
            words,
            preview: Vec::new(),
            is_outside: false,
        })
        .await?;
        self.run_within(&command, Duration::from_secs(seconds)).await
    }

    async fn run_within(&self, command: &str, limit: Duration) -> Result<ToolOutput, String> {
        let mut shell = shell(command);
        shell.current_dir(self.folder()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = shell
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot run bash: {error}"))?;
        // Closing this pipe ends the command, even if this program dies.
        let lifeline = child.stdin.take();
        // Dropping this with the future ends all processes of the command.
        let mut group = ProcessGroup::of(child.id());
        let Some(mut stdout) = child.stdout.take() else { return Err("no output".to_owned()) };
        let (mut kept, mut status, mut buffer) =
            (BoundedOutput::default(), None, vec![0; 16 << 10]);
        let in_time = tokio::time::timeout(limit, async {
            loop {
                tokio::select! {
                    biased;
                    read = stdout.read(&mut buffer) => match read {
                        Ok(0) | Err(_) => break,
                        Ok(got) => kept.push(&buffer[..got]),
                    },
                    // Background processes would keep the output open, so they are killed too.
                    ended = child.wait(), if status.is_none() => {
                        status = Some(ended);
                        group.end();
                    }
                }
            }
            if status.is_none() {
                status = Some(child.wait().await);
            }
        });
        let in_time = in_time.await.is_ok();
        group.end();
        drop(lifeline);
        let failure = match status {
            Some(Ok(status)) if status.success() => None,
            Some(Ok(status)) => Some(status.to_string()),
            Some(Err(error)) => Some(error.to_string()),
            None => Some(format!(
                "killed at the time limit of {}",
                counted(limit.as_secs() as usize, "second")
            )),
        };
        Ok(result(kept, failure, in_time))
    }
}

/// Returns what a command printed as the result of the call, with what is missing in it.
fn result(kept: BoundedOutput, failure: Option<String>, in_time: bool) -> ToolOutput {
    let (printed, is_cut, is_long) = (kept.printed, kept.cut_to(), kept.printed > LONG);
    let mut text = kept.into_text();
    if !in_time && failure.is_none() {
        text.push_str("\n[the output was still open at the time limit]");
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    if let Some(kept) = is_cut {
        text.push_str(&format!(
            "\n[{printed} bytes were printed; {kept} of them are kept, here and in the stored \
             result; to keep all of them, redirect the output to a file]"
        ));
    }
    // Later truncation keeps a result's end if that end has an exit status.
    if is_long && failure.is_none() {
        text.push_str("\n[exit code 0]");
    }
    match failure {
        None => ToolOutput::text(text),
        Some(how) => ToolOutput::error(format!("{}\n[{how}]", text.trim_end())),
    }
}

/// Creates a command without a terminal. It ends when its standard input is closed, so it does not
/// outlive this program.
#[cfg(all(unix, not(test)))]
fn shell(command: &str) -> Command {
    // This link runs this program even if its file was replaced.
    let this = match cfg!(target_os = "linux") {
        true => Ok(PathBuf::from("/proc/self/exe")),
        false => std::env::current_exe(),
    };
    let mut shell = Command::new(this.unwrap_or_else(|_| PathBuf::from("ctx")));
    shell.arg0("ctx").args(["command-host", "--", command]).stdin(Stdio::piped());
    shell
}

/// Runs bash directly in unit tests and on systems without `ctx command-host`.
#[cfg(any(not(unix), test))]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(format!("exec 2>&1\n{command}")).stdin(Stdio::null());
    #[cfg(unix)]
    shell.process_group(0);
    shell
}
