//! `bash`: a command in a session of its own, within a time.

#[cfg(all(unix, not(test)))]
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use ctx_core::{ToolCall, ToolOutput};
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::output::Kept;
use super::{Deed, Tools, arguments};
use crate::args::Tool;
use crate::ending::Group;
use crate::words::counted;

pub(super) const NAME: &str = "bash";

/// How long a command may take, unless the call says otherwise, and at most.
const USUAL_SECONDS: u64 = 120;
const MOST_SECONDS: u64 = 3_600;

/// Longer outputs say how they ended also where all went well.
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
            return Err("a command holds no NUL bytes".to_owned());
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
            .map_err(|error| format!("bash cannot be run: {error}"))?;
        // As long as this is held the command may run, whatever becomes of this program.
        let lifeline = child.stdin.take();
        // Dropped with this future, it takes what the command started along.
        let mut group = Group::of(child.id());
        let Some(mut stdout) = child.stdout.take() else { return Err("no output".to_owned()) };
        let (mut kept, mut status, mut buffer) = (Kept::default(), None, vec![0; 16 << 10]);
        let in_time = tokio::time::timeout(limit, async {
            loop {
                tokio::select! {
                    biased;
                    read = stdout.read(&mut buffer) => match read {
                        Ok(0) | Err(_) => break,
                        Ok(got) => kept.push(&buffer[..got]),
                    },
                    // What it left running holds the output open, and ends with it.
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
        // What bounds long results shows the end of those that say how they ended.
        if is_long && code.is_none() {
            text.push_str("\n[exit code 0]");
        }
        Ok(match code {
            None => ToolOutput::text(text),
            Some(how) => ToolOutput::error(format!("{}\n[{how}]", text.trim_end())),
        })
    }
}

/// A command to run, with something to write to that it ends with: no terminal, and no longer than this
/// program, whatever ends that.
#[cfg(all(unix, not(test)))]
fn shell(command: &str) -> Command {
    // This program, also where its file was replaced since.
    let this = match cfg!(target_os = "linux") {
        true => Ok(PathBuf::from("/proc/self/exe")),
        false => std::env::current_exe(),
    };
    let mut shell = Command::new(this.unwrap_or_else(|_| PathBuf::from("ctx")));
    shell.arg0("ctx").args(["command-host", "--", command]).stdin(Stdio::piped());
    shell
}

/// The program of a test runs no commands of `ctx`, nor is there one elsewhere.
#[cfg(any(not(unix), test))]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(format!("exec 2>&1\n{command}")).stdin(Stdio::null());
    #[cfg(unix)]
    shell.process_group(0);
    shell
}
