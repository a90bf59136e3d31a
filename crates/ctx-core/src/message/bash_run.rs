//! Commands that the user ran outside the model.

use serde::{Deserialize, Serialize};

/// A command that the user ran outside the model (`!cmd` in pi).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BashRun {
    /// The command line.
    pub command: String,
    /// Its combined stdout and stderr.
    pub output: String,
    /// The exit code; absent if the command was killed.
    pub exit_code: Option<i64>,
    /// Whether the user cancelled it.
    pub cancelled: bool,
    /// Whether `output` is truncated.
    pub truncated: bool,
    /// The path of the full output.
    pub full_output_path: Option<String>,
    /// Whether the command is hidden from the model (`!!cmd`).
    pub exclude_from_context: bool,
}

impl BashRun {
    /// Formats the command and its output as pi shows them to the model.
    #[must_use]
    pub fn as_text(&self) -> String {
        let mut text = format!("Ran `{}`\n", self.command);
        match self.output.as_str() {
            "" => text.push_str("(no output)"),
            output => text.push_str(&format!("```\n{output}\n```")),
        }
        match self.exit_code {
            _ if self.cancelled => text.push_str("\n\n(command cancelled)"),
            Some(code) if code != 0 => {
                text.push_str(&format!("\n\nCommand exited with code {code}"));
            }
            _ => {}
        }
        if let (true, Some(path)) = (self.truncated, &self.full_output_path) {
            text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
        }
        text
    }
}
