//! `write`: a whole file.

use std::io::Write as _;
use std::path::Path;

use ctx_core::{ToolCall, ToolOutput};
use ctx_terminal::files::{Readers, temporary_in};
use ctx_terminal::format::{bytes, counted};
use serde::Deserialize;

use super::{Tool, Tools, arguments, blocking, file_error};

pub(super) const NAME: &str = "write";

/// Maximum size of a file that is compared with its new content.
const MOST_COMPARED: u64 = 1_000_000;

/// Maximum number of preview lines.
const MOST_SHOWN: usize = 40;

pub(super) fn spec() -> (&'static str, String, &'static str) {
    let about = "Writes a file, and replaces its previous content. Missing parent folders are \
                 created.";
    let parameters = r#"{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}"#;
    (NAME, about.to_owned(), parameters)
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

impl Tools {
    pub(super) async fn write(&self, call: &ToolCall) -> Result<ToolOutput, String> {
        let Arguments { path, content } = arguments(call)?;
        let located = self.allowed(Tool::Write, &path, Some(&content)).await?;
        let shown = self.place.shown(&located);
        let done = blocking(move || {
            let lines = counted(content.lines().count(), "line");
            replace(&located.path, &content).map_err(file_error(&shown))?;
            Ok(format!("wrote {lines} to {shown}"))
        });
        done.await.map(ToolOutput::text)
    }
}

/// Describes a write in one line, and in a preview. The preview has all lines of a new or large
/// file, or the changed lines of an existing file.
pub(super) fn preview(path: &Path, shown: &str, content: &str) -> (String, Vec<String>) {
    let size = |text: &str| {
        format!("{}, {}", counted(text.lines().count(), "line"), bytes(text.len() as u64))
    };
    let Ok(old) = path.metadata() else {
        let lines = content.lines().map(|line| format!("+{line}"));
        return (format!("write {shown} ({})", size(content)), cut(lines));
    };
    let read = || ctx_disk::read_to_string(path).ok();
    let Some(before) = (old.is_file() && old.len() <= MOST_COMPARED).then(read).flatten() else {
        let lines = content.lines().map(|line| format!("+{line}"));
        let was = bytes(old.len());
        return (format!("replace {shown} ({}; was {was})", size(content)), cut(lines));
    };
    let words = format!("replace {shown} ({}; was {})", size(content), size(&before));
    let diff = similar::TextDiff::from_lines(before.as_str(), content);
    let hunks = diff.unified_diff().context_radius(2).to_string();
    (words, cut(hunks.lines().map(str::to_owned)))
}

/// Returns the first lines of a preview, and the number of omitted ones.
fn cut(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<_> = lines.collect();
    if lines.len() > MOST_SHOWN + 1 {
        let more = counted(lines.len() - MOST_SHOWN, "more line");
        lines.truncate(MOST_SHOWN);
        lines.push(format!("({more})"));
    }
    lines
}

/// Replaces a file atomically.
fn replace(path: &Path, content: &str) -> std::io::Result<()> {
    let old = match path.metadata() {
        Ok(old) if old.is_dir() => return Err(std::io::Error::other("this is a folder")),
        Ok(old) if !old.is_file() => {
            return Err(std::io::Error::other("not a file, but a device or a pipe"));
        }
        Ok(old) => Some(old),
        Err(_) => None,
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = temporary_in(folder, Readers::Usual)?;
    file.write_all(content.as_bytes())?;
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.persist(path)?;
    Ok(())
}
