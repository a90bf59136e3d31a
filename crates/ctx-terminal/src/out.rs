//! Output: data on stdout, everything else on stderr.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anstream::{eprintln, stdout};
use anstyle::{AnsiColor, Style};
use ctx_core::{Error, ErrorKind};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};

use crate::failure::Declined;
use crate::format::{escaped, escaped_json, shortened, wrapped};
pub use crate::table::{Cell, DIM, Table, table, terminal_columns};

/// Maximum length of notes, warnings and errors.
const LINE_CHARS: usize = 600;

/// Columns used by `note: ` and `warning: `.
const NOTE: usize = 6;
const WARNING: usize = 9;

/// The style of names and headings.
pub const BOLD: Style = Style::new().bold();
/// The colour of what is good.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// The colour of errors.
pub const RED: Style = AnsiColor::Red.on_default();
/// The colour of warnings.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();

/// The output of a command.
#[derive(Debug, Default)]
pub struct Out {
    /// No progress and no notes.
    quiet: bool,
    /// No warnings either.
    silent: bool,
}

impl Out {
    /// Creates an output, without progress and notes if it is `quiet`.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, silent: false }
    }

    /// Prints data only.
    pub fn silent() -> Self {
        Self { quiet: true, silent: true }
    }

    /// Prints a line of data, or several. On a terminal they are wrapped between words.
    pub fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        self.line_indented(text, 0)
    }

    /// Prints a line whose continuation lines begin with blanks.
    pub fn line_indented(&self, text: impl AsRef<str>, blanks: usize) -> io::Result<()> {
        let lines = wrapped(text.as_ref(), [0, blanks], terminal_columns());
        writeln!(stdout(), "{}", lines.join(&format!("\n{:blanks$}", "")))
    }

    /// Prints a value as pretty JSON.
    pub fn json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(value)?;
        let mut out = io::BufWriter::new(stdout().lock());
        writeln!(out, "{}", escaped_json(&text))?;
        out.flush()?;
        Ok(())
    }

    /// Prints a report: as JSON, or with `print` for a reader.
    pub fn report<R: Serialize>(
        &self,
        json: bool,
        report: &R,
        print: impl FnOnce(&R, &Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<ExitCode> {
        match json {
            true => self.json(report)?,
            false => print(report, self)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints additional information on stderr.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            eprintln!("{DIM}note:{DIM:#} {}", wrapped_note(text.as_ref(), NOTE));
        }
    }

    /// Prints a progress line on stderr. The caller must escape control characters.
    pub fn aside(&self, text: impl AsRef<str>) {
        if !self.quiet {
            let lines = wrapped(text.as_ref(), [0; 2], stderr_columns());
            eprintln!("{DIM}{}{DIM:#}", lines.join("\n"));
        }
    }

    /// Prints a warning. `--quiet` does not suppress it.
    pub fn warn(&self, text: impl AsRef<str>) {
        if !self.silent {
            eprintln!("{YELLOW}warning:{YELLOW:#} {}", wrapped_note(text.as_ref(), WARNING));
        }
    }

    /// Prints a table that belongs to a question.
    pub fn note_table(&self, table: &str) {
        eprintln!("{table}");
    }

    /// Asks for confirmation.
    ///
    /// # Errors
    ///
    /// [`Declined`] for any answer but yes; `InvalidInput` without a terminal.
    pub fn ask(&self, question: &str) -> anyhow::Result<()> {
        let yes = "use --yes to confirm without a question";
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            let error = Error::new(
                ErrorKind::InvalidInput,
                format!("no terminal to ask for confirmation: {question}"),
            );
            return Err(error.hint(yes).into());
        }
        anstream::eprint!("{BOLD}{}{BOLD:#} [y/N] ", escaped(question));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        if matches!(&*answer.trim().to_lowercase(), "y" | "yes") {
            return Ok(());
        }
        Err(Declined.into())
    }

    /// Prints an error with its cause and hint.
    pub fn error(&self, error: &anyhow::Error) {
        if error.is::<Declined>() {
            return self.note(error.to_string());
        }
        let mut printed = error.to_string();
        eprintln!("{RED}error:{RED:#} {}", wrapped_note(&printed, NOTE + 1));
        for cause in error.chain().skip(1).map(ToString::to_string) {
            if !printed.contains(&cause) {
                eprintln!("  {DIM}because:{DIM:#} {}", wrapped_note(&cause, WARNING + 2));
                printed = cause;
            }
        }
        let hint = error.chain().find_map(|e| e.downcast_ref::<ctx_core::Error>()?.hint_text());
        if let Some(hint) = hint {
            eprintln!("{GREEN}hint:{GREEN:#} {}", wrapped_note(hint, NOTE));
        }
    }

    /// Returns a progress bar that appears only if the work takes longer than a moment.
    pub fn progress(&self, what: &'static str, length: usize) -> ProgressBar {
        self.bar(what, length as u64, "{msg} {wide_bar} {human_pos}/{human_len}, {eta} left")
    }

    /// As [`Self::progress`], for a number of bytes.
    pub fn progress_of_bytes(&self, what: &'static str, length: u64) -> ProgressBar {
        self.bar(what, length, "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes}, {eta} left")
    }

    fn bar(&self, what: &'static str, length: u64, template: &str) -> ProgressBar {
        self.started(ProgressBar::new(length).with_message(what), template)
    }

    /// Runs `work` while a spinner says what it does.
    pub fn while_waiting<T>(&self, what: &'static str, work: impl FnOnce() -> T) -> T {
        let waiting = self.waiting(what);
        let done = work();
        waiting.finish_and_clear();
        done
    }

    /// Returns a spinner that appears only if the work takes longer than a moment.
    pub fn waiting(&self, what: impl Into<Cow<'static, str>>) -> ProgressBar {
        let bar = ProgressBar::new_spinner().with_message(what);
        self.started(bar, "{spinner} {msg} {elapsed}")
    }

    fn started(&self, bar: ProgressBar, template: &str) -> ProgressBar {
        if let Ok(style) = ProgressStyle::with_template(template) {
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

/// Wraps a message to the terminal's width, after a label of `used` columns.
fn wrapped_note(text: &str, used: usize) -> String {
    let text = shortened(text, LINE_CHARS);
    wrapped(&text, [used, 2], stderr_columns()).join("\n  ")
}

/// Returns the width of the terminal on stderr, if there is one.
fn stderr_columns() -> Option<usize> {
    terminal_size_of(io::stderr()).map(|(Width(columns), _)| usize::from(columns))
}
