//! Commands that the person runs beside the model.

use serde::{Deserialize, Serialize};

/// A command the person ran beside the model (`!cmd` in pi).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BashRun {
    /// The command line.
    pub command: String,
    /// Its output, both streams.
    pub output: String,
    /// Its exit code; absent when it was killed.
    pub exit_code: Option<i64>,
    /// Whether the person stopped it.
    pub cancelled: bool,
    /// Whether `output` is not all of it.
    pub truncated: bool,
    /// Where all of it is.
    pub full_output_path: Option<String>,
    /// Whether the model is not to see it (`!!cmd`).
    pub exclude_from_context: bool,
}

impl BashRun {
    /// The command and its output in the words in which pi gives them to the model.
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
