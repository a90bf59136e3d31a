//! `write`: a whole file.

use std::io::Write as _;
use std::path::Path;

use ctx_core::{ToolCall, ToolOutput};
use serde::Deserialize;

use super::{Ask, Tools, arguments, blocking, of_file};
use crate::args::Tool;
use crate::words::counted;

pub(super) const NAME: &str = "write";

pub(super) fn spec() -> (&'static str, String, &'static str) {
    let about = "Writes a file: all of it, in the place of what was there. Folders on the way to it \
                 are made.";
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
        let located = self.allowed(Tool::Write, &path, Ask::Always).await?;
        let shown = self.place.shown(&located);
        let done = blocking(move || {
            let lines = counted(content.lines().count(), "line");
            replace(&located.path, &content).map_err(of_file(&shown))?;
            Ok(format!("wrote {lines} to {shown}"))
        });
        done.await.map(ToolOutput::text)
    }
}

/// Puts a file in its place, whole or not at all.
fn replace(path: &Path, content: &str) -> std::io::Result<()> {
    let old = match path.metadata() {
        Ok(old) if old.is_dir() => return Err(std::io::Error::other("this is a folder")),
        Ok(old) if !old.is_file() => {
            return Err(std::io::Error::other("this is a device or a pipe, and no file"));
        }
        Ok(old) => Some(old),
        Err(_) => None,
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(content.as_bytes())?;
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.persist(path)?;
    Ok(())
}
