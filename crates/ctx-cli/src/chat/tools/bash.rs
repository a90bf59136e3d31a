//! `bash`: runs a command in its own session, with a time limit.

#[cfg(all(unix, not(test)))]
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use ctx_core::{ToolCall, ToolOutput};
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::output::BoundedOutput;
use super::{Deed, Tools, arguments};
use crate::args::Tool;
use crate::format::counted;
use crate::shutdown::ProcessGroup;

pub(super) const NAME: &str = "bash";

/// Default and maximum time limits of a command.
const USUAL_SECONDS: u64 = 120;
const MOST_SECONDS: u64 = 3_600;

/// Longer outputs end with the exit status even on success.
const LONG: u64 = 4_000;

pub(super) fn spec() -> (&'static str, String, &'static str) {
    let about = format!(
        "Runs a command in bash, in the working folder. It gets nothing to read and no terminal, and it \
         and whatever it started end after `timeout` seconds ({USUAL_SECONDS} by default). Its output comes back, \
         and how it ended."
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
        self.leave(Deed {
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
        // The command may run while this is held, and ends when this program ends for any reason.
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
                    // Processes left running hold the output open, so they end with the command.
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
        let (printed, is_cut, is_long) = (kept.printed(), kept.cut_to(), kept.printed() > LONG);
        let mut text = kept.into_text();
        let code = match status {
            Some(Ok(status)) if status.success() => None,
            Some(Ok(status)) => Some(status.to_string()),
            Some(Err(error)) => Some(error.to_string()),
            None => Some(format!("ended after {}", counted(limit.as_secs() as usize, "second"))),
        };
        if !in_time && code.is_none() {
            text.push_str("\n[its output was still open when its time was over]");
        }
        if text.is_empty() {
            text.push_str("(no output)");
        }
        if let Some(kept) = is_cut {
            text.push_str(&format!(
                "\n[{printed} bytes were printed; {kept} of them are kept, here and wherever this \
                 result is preserved: let the command write to a file to have them all]"
            ));
        }
        // The limit on long results keeps the end of those with an exit status.
        if is_long && code.is_none() {
            text.push_str("\n[exit code 0]");
        }
        Ok(match code {
            None => ToolOutput::text(text),
            Some(how) => ToolOutput::error(format!("{}\n[{how}]", text.trim_end())),
        })
    }
}

/// Creates a command with a pipe on which it depends: without a terminal, and ending with this
/// program, however that ends.
#[cfg(all(unix, not(test)))]
fn shell(command: &str) -> Command {
    // This program, even if its file was replaced since.
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
