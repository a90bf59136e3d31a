//! Words out: data on stdout, everything else on stderr.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anstream::{eprintln, stdout};
use anstyle::{AnsiColor, Style};
use ctx_core::{Error, ErrorKind};
use ctx_eval::SessionReport;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};

use crate::args::{Global, When};
pub(crate) use crate::table::{Cell, DIM, Table, table, terminal_columns};
use crate::words::{bytes, counted, harmless, harmless_json, shortened, wrapped};

/// Longer notes, warnings and errors than this are cut.
const LINE_CHARS: usize = 600;

/// What `note: ` and `warning: ` take of a line.
const NOTE: usize = 6;
const WARNING: usize = 9;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();

/// How the command speaks.
#[derive(Debug, Default)]
pub(crate) struct Out {
    /// No progress and no notes.
    quiet: bool,
    /// No warnings either.
    silent: bool,
}

impl Out {
    pub(crate) fn new(global: &Global) -> Self {
        match global.color {
            When::Auto => {}
            When::Always => anstream::ColorChoice::Always.write_global(),
            When::Never => anstream::ColorChoice::Never.write_global(),
        }
        Self { quiet: global.quiet, silent: false }
    }

    /// Who says nothing but data.
    pub(crate) fn silent() -> Self {
        Self { quiet: true, silent: true }
    }

    /// A line of data, or several. On a terminal they are broken between words.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        writeln!(stdout(), "{}", wrapped(text.as_ref(), [0; 2], terminal_columns()).join("\n"))
    }

    /// What a report is about: the transcript, and how much is in it.
    pub(crate) fn session(&self, session: &SessionReport) -> io::Result<()> {
        self.line(format!("{BOLD}{}{BOLD:#}", harmless(&session.path)))?;
        let mut parts = vec![
            counted(session.entries, "entry"),
            counted(session.messages, "message"),
            counted(session.tool_results, "tool result"),
        ];
        if session.bad_lines > 0 {
            let bad = usize::try_from(session.bad_lines).unwrap_or(usize::MAX);
            parts.push(counted(bad, "bad line"));
        }
        let (format, size) = (&session.format, bytes(session.bytes));
        self.line(format!("{DIM}{format}, {size}: {}{DIM:#}", parts.join(", ")))
    }

    /// A value as pretty JSON.
    pub(crate) fn json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(value)?;
        let mut out = io::BufWriter::new(stdout().lock());
        writeln!(out, "{}", harmless_json(&text))?;
        out.flush()?;
        Ok(())
    }

    /// Something worth knowing that is not the answer.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            eprintln!("{DIM}note:{DIM:#} {}", told(text.as_ref(), NOTE));
        }
    }

    /// A line beside the answer: what is going on. It is made harmless by who says it.
    pub(crate) fn aside(&self, text: impl AsRef<str>) {
        if !self.quiet {
            let lines = wrapped(text.as_ref(), [0; 2], stderr_columns());
            eprintln!("{DIM}{}{DIM:#}", lines.join("\n"));
        }
    }

    /// Something that may be wrong. Who wants to hear less wants to hear this.
    pub(crate) fn warn(&self, text: impl AsRef<str>) {
        if !self.silent {
            eprintln!("{YELLOW}warning:{YELLOW:#} {}", told(text.as_ref(), WARNING));
        }
    }

    /// A table that belongs to a question.
    pub(crate) fn note_table(&self, table: &str) {
        eprintln!("{table}");
    }

    /// Asks whether to go on.
    ///
    /// # Errors
    ///
    /// `Cancelled` for any answer but yes; `InvalidInput` where nobody is there to answer.
    pub(crate) fn ask(&self, question: &str) -> anyhow::Result<()> {
        let yes = "--yes answers it beforehand";
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            let error = Error::new(ErrorKind::InvalidInput, format!("nobody to ask: {question}"));
            return Err(error.hint(yes).into());
        }
        anstream::eprint!("{BOLD}{}{BOLD:#} [y/N] ", harmless(question));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes" | "Yes") {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Cancelled, "nothing was changed").hint(yes).into())
    }

    /// What went wrong, why, and what to do next.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let mut said = error.to_string();
        eprintln!("{RED}error:{RED:#} {}", told(&said, NOTE + 1));
        for cause in error.chain().skip(1).map(ToString::to_string) {
            if !said.contains(&cause) {
                eprintln!("  {DIM}because:{DIM:#} {}", told(&cause, WARNING + 2));
                said = cause;
            }
        }
        let hint = error.chain().find_map(|e| e.downcast_ref::<ctx_core::Error>()?.hint_text());
        if let Some(hint) = hint {
            eprintln!("{GREEN}hint:{GREEN:#} {}", told(hint, NOTE));
        }
    }

    /// A bar that shows itself only when the work takes longer than a moment.
    pub(crate) fn progress(&self, what: &'static str, length: usize) -> ProgressBar {
        self.bar(what, length as u64, "{msg} {wide_bar} {human_pos}/{human_len}, {eta} left")
    }

    /// The same for an amount of bytes.
    pub(crate) fn progress_of_bytes(&self, what: &'static str, length: u64) -> ProgressBar {
        self.bar(what, length, "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes}, {eta} left")
    }

    fn bar(&self, what: &'static str, length: u64, template: &str) -> ProgressBar {
        let bar = ProgressBar::new(length).with_message(what);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_draw_target(self.target());
        bar.enable_steady_tick(Duration::from_millis(500));
        bar
    }
}

impl Out {
    /// A sign that something is going on, which shows itself only when it takes longer than a
    /// moment.
    pub(crate) fn waiting(&self, what: impl Into<Cow<'static, str>>) -> ProgressBar {
        let bar = ProgressBar::new_spinner().with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_draw_target(self.target());
        bar.enable_steady_tick(Duration::from_millis(500));
        bar
    }

    fn target(&self) -> ProgressDrawTarget {
        if self.quiet || !io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(10)
        }
    }
}

/// A note as the terminal has room for it, after a word that takes `used` columns.
fn told(text: &str, used: usize) -> String {
    let text = shortened(text, LINE_CHARS);
    wrapped(&text, [used, 2], stderr_columns()).join("\n  ")
}

/// The width of the terminal that notes go to, if there is one.
fn stderr_columns() -> Option<usize> {
    terminal_size_of(io::stderr()).map(|(Width(columns), _)| usize::from(columns))
}
