//! Writes requests and labels for others to judge.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_eval::eval::bench::Exported;

/// A folder of one JSONL file per session.
pub(super) struct Export {
    folder: PathBuf,
}

/// The file of a session.
pub(super) struct ExportFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Export {
    /// Creates the folder, which must not exist.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        std::fs::create_dir(folder).map_err(|error| {
            failed("cannot create the folder of the export", folder, error)
                .hint("name a folder that does not exist, in one that does")
        })?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Creates the file of a session. The number distinguishes sessions of the same name.
    pub(super) fn file(&self, number: usize, session: &Path) -> Result<ExportFile> {
        let name = session.file_stem().unwrap_or_default().to_string_lossy();
        let path = self.folder.join(format!("{:02}-{name}.jsonl", number + 1));
        let file =
            File::create_new(&path).map_err(|error| failed("cannot export", &path, error))?;
        Ok(ExportFile { path, file: BufWriter::new(file) })
    }
}

impl ExportFile {
    pub(super) fn write(&mut self, line: &Exported<'_>) -> Result<()> {
        let written = serde_json::to_string(line).map_err(std::io::Error::from);
        let written = written.and_then(|json| writeln!(self.file, "{json}"));
        written.map_err(|error| failed("cannot export", &self.path, error))
    }
}

fn failed(what: &'static str, path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, what).with("path", path.display()).source(error)
}
