//! Reads lines from the user, with editing, pasting and history.

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind};
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History as _, MemHistory};
use rustyline::{Cmd, Config, Editor, KeyCode, KeyEvent, Modifiers};

/// Maximum number of lines in the history.
const REMEMBERED: usize = 1_000;

/// The result of reading a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
}

/// Reads lines, and stores them in a history file.
///
/// One editor reads all lines: if several arrive at once, it reads ahead, and returns the others in
/// the next calls.
pub(super) struct LineEditor {
    editor: Editor<(), FileHistory>,
    file: PathBuf,
    /// The last error of the history file, until it is reported.
    pub(super) warning: Option<String>,
}

impl LineEditor {
    /// Opens the editor. Pasted text is one message, even if it has several lines. Alt-Enter adds a
    /// line.
    pub(super) fn open(file: &Path) -> anyhow::Result<Self> {
        let config =
            Config::builder().max_history_size(REMEMBERED).map_err(terminal_error)?.build();
        let mut history = FileHistory::with_config(&config);
        let mut warning = None;
        if let Err(error) = history.load(file)
            && file.exists()
        {
            warning = Some(format!("cannot read the input history: {error}"));
        }
        let mut editor = Editor::with_history(config, history).map_err(terminal_error)?;
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        Ok(Self { editor, file: file.to_owned(), warning })
    }

    /// Returns the next line. Text typed or pasted since the last line comes first, in order.
    pub(super) fn next(&mut self, prompt: &str) -> anyhow::Result<Entered> {
        entered(self.editor.readline(prompt))
    }

    /// Adds a line to the history, also for later runs.
    pub(super) fn remember(&mut self, line: &str) {
        let history = self.editor.history_mut();
        let stored = match history.add(line) {
            Ok(true) => {
                let folder = self.file.parent().map(std::fs::create_dir_all).transpose();
                folder.map_err(Into::into).and_then(|_| history.append(&self.file))
            }
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = stored {
            self.warning = Some(format!("cannot save the input history: {error}"));
        }
    }
}

/// Discards typed input that was not read yet. Returns whether it contained at least one line.
#[cfg(unix)]
pub(super) fn drop_typed() -> bool {
    use rustix::termios::{QueueSelector, tcflush};
    let stdin = std::io::stdin();
    let had_lines = rustix::io::ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0);
    // This fails only without a terminal, where no user can be asked.
    let _ = tcflush(&stdin, QueueSelector::IFlush);
    had_lines
}

#[cfg(not(unix))]
pub(super) fn drop_typed() -> bool {
    false
}

/// Asks a question whose answer is not added to the history. Input buffered in the message editor
/// is not used as the answer.
pub(super) fn ask(prompt: &str) -> anyhow::Result<Entered> {
    let mut editor: Editor<(), MemHistory> =
        Editor::with_history(Config::default(), MemHistory::new()).map_err(terminal_error)?;
    entered(editor.readline(prompt))
}

fn entered(line: rustyline::Result<String>) -> anyhow::Result<Entered> {
    match line {
        Ok(line) => Ok(Entered::Text(line)),
        Err(ReadlineError::Interrupted) => Ok(Entered::Interrupted),
        Err(ReadlineError::Eof) => Ok(Entered::End),
        Err(error) => Err(terminal_error(error)),
    }
}

fn terminal_error(source: ReadlineError) -> anyhow::Error {
    let error = Error::new(ErrorKind::Io, "cannot read from the terminal");
    error.source(source).hint("--prompt TEXT needs no terminal").into()
}
