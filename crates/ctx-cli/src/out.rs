//! Words out: data on stdout, everything else on stderr.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use anstream::{eprintln, stdout};
use anstyle::{AnsiColor, Style};
use anyhow::Context;
use comfy_table::{CellAlignment, Table, presets};
use ctx_core::{Error, ErrorKind};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::args::{Global, When};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();

/// How the command speaks.
#[derive(Debug)]
pub(crate) struct Out {
    quiet: bool,
}

impl Out {
    pub(crate) fn new(global: &Global) -> Self {
        match global.color {
            When::Auto => {}
            When::Always => anstream::ColorChoice::Always.write_global(),
            When::Never => anstream::ColorChoice::Never.write_global(),
        }
        Self { quiet: global.quiet }
    }

    /// One line of data.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        writeln!(stdout(), "{}", text.as_ref())
    }

    /// A value as pretty JSON.
    pub(crate) fn json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        let mut out = io::BufWriter::new(stdout().lock());
        serde_json::to_writer_pretty(&mut out, value)?;
        out.write_all(b"\n")?;
        out.flush()?;
        Ok(())
    }

    /// Something worth knowing that is not the answer.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            eprintln!("{DIM}note:{DIM:#} {}", text.as_ref());
        }
    }

    /// Something that may be wrong.
    pub(crate) fn warn(&self, text: impl AsRef<str>) {
        if !self.quiet {
            eprintln!("{YELLOW}warning:{YELLOW:#} {}", text.as_ref());
        }
    }

    /// What went wrong, why, and what to do next.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let mut said = error.to_string();
        eprintln!("{RED}error:{RED:#} {said}");
        for cause in error.chain().skip(1).map(ToString::to_string) {
            if !said.contains(&cause) {
                eprintln!("  {DIM}because:{DIM:#} {cause}");
                said = cause;
            }
        }
        let hint = error.chain().find_map(|e| e.downcast_ref::<ctx_core::Error>()?.hint_text());
        if let Some(hint) = hint {
            eprintln!("{GREEN}hint:{GREEN:#} {hint}");
        }
    }

    /// A bar that shows itself only when the work takes longer than a moment.
    pub(crate) fn progress(&self, what: &'static str, length: usize) -> ProgressBar {
        let bar = ProgressBar::new(length as u64).with_message(what);
        let template = "{msg} {wide_bar} {pos}/{len} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let hidden = self.quiet || !io::stderr().is_terminal();
        let target = if hidden {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(10)
        };
        bar.set_draw_target(target);
        bar.enable_steady_tick(Duration::from_millis(500));
        bar
    }
}

/// A table without lines. The columns from the second to the `numbers`th are aligned to the right.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>, numbers: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if !header.is_empty() {
        table.set_header(header.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>());
    }
    for row in rows {
        table.add_row(row);
    }
    for at in 1..numbers {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// `1234567` as `1,234,567`.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes for people.
pub(crate) fn bytes(n: u64) -> String {
    indicatif::DecimalBytes(n).to_string()
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Whether the reader of our output went away, which is not an error of ours.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|e| {
        e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
            || e.downcast_ref::<serde_json::Error>()
                .is_some_and(|e| e.io_error_kind() == Some(io::ErrorKind::BrokenPipe))
    })
}

/// Whether a file that is in the way of an output is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Keep,
    Replace,
}

impl Existing {
    pub(crate) fn replaced_if(force: bool) -> Self {
        if force { Self::Replace } else { Self::Keep }
    }
}

/// Writes what was made of the transcript `source` to a file, whole or not at all: beside its
/// place, then moved there. The transcript itself is never replaced, whatever was asked for.
pub(crate) fn write_beside<T>(
    source: &Path,
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let place = || format!("{} cannot be written", path.display());
    if is_same_file(source, path) {
        let error = Error::new(ErrorKind::Conflict, "the output would replace the transcript");
        return Err(error.with("path", path.display()).hint("name another output file").into());
    }
    let force = existing == Existing::Replace;
    if !force && path.try_exists().with_context(place)? {
        let error = Error::new(ErrorKind::Conflict, "the output file exists already");
        return Err(error.with("path", path.display()).hint("--force replaces it").into());
    }
    let mut file = tempfile::NamedTempFile::new_in(folder).with_context(place)?;
    let mut writer = BufWriter::new(file.as_file_mut());
    let written = write(&mut writer)?;
    writer.flush().with_context(place)?;
    drop(writer);
    if force {
        file.persist(path).map_err(|e| e.error).with_context(place)?;
    } else {
        file.persist_noclobber(path).map_err(|e| e.error).with_context(place)?;
    }
    Ok(written)
}

/// Whether both paths lead to one file. One that does not exist is no other.
fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
