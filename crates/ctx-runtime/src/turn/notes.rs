//! The only tool of a memory flush: it appends to the daily note.

use std::io::Write;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, RawJson, Result, Timestamp, ToolCall, ToolOutput, ToolSpec};
use jiff::tz::TimeZone;

use crate::forget::NoteIndex;
use crate::sync::spawn_blocking;

/// Maximum number of bytes per call.
const MOST: usize = 16 << 10;

/// `memory/YYYY-MM-DD.md` of a workspace.
pub(super) struct DailyNote {
    folder: PathBuf,
    name: String,
    /// The index of written paragraphs, and the session.
    noted: (NoteIndex, String),
    specs: [ToolSpec; 1],
}

impl DailyNote {
    /// The tool's name.
    pub(super) const TOOL: &'static str = "append_memory";

    /// Creates the note of the day of `now`, in the local time zone.
    pub(super) fn of(workspace: &Path, now: Timestamp, noted: (NoteIndex, String)) -> Result<Self> {
        let at = jiff::Timestamp::from_millisecond(now.0).map_err(|error| {
            Error::new(ErrorKind::InvalidInput, "time out of range")
                .with("milliseconds", now.0)
                .source(error)
                .hint("set the clock of the machine")
        })?;
        let date = at.to_zoned(TimeZone::system()).date();
        let spec = ToolSpec {
            name: Self::TOOL.into(),
            description: format!("Appends text to memory/{date}.md. Existing text is not changed."),
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

    /// Runs a call. Errors are returned to the model.
    pub(super) async fn run(&self, call: &ToolCall) -> ToolOutput {
        #[derive(serde::Deserialize)]
        struct Arguments {
            text: String,
        }
        if call.name != Self::TOOL {
            return ToolOutput::error(format!("unknown tool; the only tool is {}", Self::TOOL));
        }
        let Ok(Arguments { text }) = serde_json::from_str(call.arguments.as_str()) else {
            return ToolOutput::error("missing argument \"text\": the text to append");
        };
        if text.len() > MOST {
            return ToolOutput::error(format!("text too long: at most {MOST} bytes in one call"));
        }
        let (folder, name, noted) = (self.folder.clone(), self.name.clone(), self.noted.clone());
        match spawn_blocking(move || append(&folder, &name, &text, &noted)).await {
            Ok(()) => ToolOutput::text(format!("appended to memory/{}", self.name)),
            Err(error) => ToolOutput::error(error.to_string()),
        }
    }
}

/// Appends a paragraph. Neither the folder nor the file may be a link: the agent's memory is in its
/// workspace.
fn append(
    folder: &Path,
    name: &str,
    text: &str,
    (notes, session): &(NoteIndex, String),
) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Io, "cannot write the daily note")
            .with("path", folder.join(name).display())
            .source(error)
    };
    let file = folder.join(name);
    for path in [folder, &file] {
        if path.symlink_metadata().is_ok_and(|found| found.file_type().is_symlink()) {
            return Err(Error::new(ErrorKind::InvalidInput, "the daily note is a link")
                .with("path", path.display())
                .hint("replace it by a regular folder and file"));
        }
    }
    std::fs::create_dir_all(folder).map_err(failed)?;
    let text = text.trim_end();
    // First: a record without a paragraph is harmless, an unrecorded paragraph is never forgotten.
    notes.add(&file, session, text)?;
    let mut file = std::fs::File::options().append(true).create(true).open(file).map_err(failed)?;
    let between = if file.metadata().map_err(failed)?.len() > 0 { "\n" } else { "" };
    file.write_all(format!("{between}{text}\n").as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)
}
