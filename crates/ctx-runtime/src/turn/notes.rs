//! The one tool of a memory flush: it appends to the note of the day, and does nothing else.

use std::io::Write;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, RawJson, Result, Timestamp, ToolCall, ToolOutput, ToolSpec};
use jiff::tz::TimeZone;

use crate::forget::Notes;
use crate::session::blocking;

/// What one call may write, in bytes.
const MOST: usize = 16 << 10;

/// `memory/YYYY-MM-DD.md` of a workspace.
pub(super) struct DailyNote {
    folder: PathBuf,
    name: String,
    /// Where it is noted what was written, and of which session.
    noted: (Notes, String),
    specs: [ToolSpec; 1],
}

impl DailyNote {
    /// The tool's name.
    pub(super) const TOOL: &'static str = "append_memory";

    /// The note of the day that `now` is in, where the user is.
    pub(super) fn of(workspace: &Path, now: Timestamp, noted: (Notes, String)) -> Result<Self> {
        let at = jiff::Timestamp::from_millisecond(now.0).map_err(|error| {
            Error::new(ErrorKind::InvalidInput, "the time is out of range")
                .with("milliseconds", now.0)
                .source(error)
                .hint("set the clock of the machine")
        })?;
        let date = at.to_zoned(TimeZone::system()).date();
        let spec = ToolSpec {
            name: Self::TOOL.into(),
            description: format!(
                "Appends text to memory/{date}.md. What stands there already stays as it is."
            ),
            parameters: RawJson::from_text(
                r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#,
            ),
        };
        let (folder, name) = (workspace.join("memory"), format!("{date}.md"));
        Ok(Self { folder, name, noted, specs: [spec] })
    }

    pub(super) fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// Runs a call. Whatever goes wrong is for the model to read.
    pub(super) async fn run(&self, call: &ToolCall) -> ToolOutput {
        #[derive(serde::Deserialize)]
        struct Arguments {
            text: String,
        }
        if call.name != Self::TOOL {
            return ToolOutput::error(format!("there is no tool but {}", Self::TOOL));
        }
        let Ok(Arguments { text }) = serde_json::from_str(call.arguments.as_str()) else {
            return ToolOutput::error("give what to append as \"text\"");
        };
        if text.len() > MOST {
            return ToolOutput::error(format!("at most {MOST} bytes at once"));
        }
        let (folder, name, noted) = (self.folder.clone(), self.name.clone(), self.noted.clone());
        match blocking(move || append(&folder, &name, &text, &noted)).await {
            Ok(()) => ToolOutput::text(format!("appended to memory/{}", self.name)),
            Err(error) => ToolOutput::error(error.to_string()),
        }
    }
}

/// Appends a paragraph. Neither the folder nor the file may lead elsewhere: the agent's memory is
/// in its workspace.
fn append(folder: &Path, name: &str, text: &str, (notes, session): &(Notes, String)) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Io, "the note of the day cannot be written")
            .with("path", folder.join(name).display())
            .source(error)
    };
    let file = folder.join(name);
    for path in [folder, &file] {
        if path.symlink_metadata().is_ok_and(|found| found.file_type().is_symlink()) {
            return Err(Error::new(ErrorKind::InvalidInput, "the note of the day is a link")
                .with("path", path.display())
                .hint("put a folder and a file of their own in its place"));
        }
    }
    std::fs::create_dir_all(folder).map_err(failed)?;
    let text = text.trim_end();
    // First: what is noted and not written harms nobody, what is written and not noted stays.
    notes.add(&file, session, text)?;
    let mut file = std::fs::File::options().append(true).create(true).open(file).map_err(failed)?;
    let between = if file.metadata().map_err(failed)?.len() > 0 { "\n" } else { "" };
    file.write_all(format!("{between}{text}\n").as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)
}
