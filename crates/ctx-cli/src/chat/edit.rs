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
/// One editor reads them all: when several lines arrive at once it reads ahead, and returns the
/// rest next.
pub(super) struct LineEditor {
    editor: Editor<(), FileHistory>,
    file: PathBuf,
    /// Why the history is not stored, once that fails.
    trouble: Option<String>,
}

impl LineEditor {
    /// Opens the editor. Pasted text is one message, whatever its lines. Alt-Enter adds a line.
    pub(super) fn open(file: &Path) -> anyhow::Result<Self> {
        let config = Config::builder().max_history_size(REMEMBERED).map_err(of_terminal)?.build();
        let mut history = FileHistory::with_config(&config);
        let mut trouble = None;
        if let Err(error) = history.load(file)
            && file.exists()
        {
            trouble = Some(format!("cannot read the input history: {error}"));
        }
        let mut editor = Editor::with_history(config, history).map_err(of_terminal)?;
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        Ok(Self { editor, file: file.to_owned(), trouble })
    }

    /// Returns the next line. Text typed or pasted since the last one comes first, in order.
    pub(super) fn next(&mut self, prompt: &str) -> anyhow::Result<Entered> {
        taken(self.editor.readline(prompt))
    }

    /// Adds a line to the history, also for later runs.
    pub(super) fn remember(&mut self, line: &str) {
        let history = self.editor.history_mut();
        let stored = match history.add(line) {
            Ok(true) => {
                let folder = self.file.parent().map(std::fs::create_dir_all);
                match folder.transpose() {
                    Ok(_) => history.append(&self.file),
                    Err(error) => Err(error.into()),
                }
            }
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = stored {
            self.trouble = Some(format!("cannot save the input history: {error}"));
        }
    }

    /// Returns a warning for the user, once.
    pub(super) fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}

/// Discards typed input that was not read yet. Returns whether it held at least one line.
#[cfg(unix)]
pub(super) fn drop_typed() -> bool {
    use rustix::termios::{QueueSelector, tcflush};
    let stdin = std::io::stdin();
    let had_lines = rustix::io::ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0);
    // On failure there cannot be a user at a terminal to ask.
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
        Editor::with_history(Config::default(), MemHistory::new()).map_err(of_terminal)?;
    taken(editor.readline(prompt))
}

fn taken(line: rustyline::Result<String>) -> anyhow::Result<Entered> {
    match line {
        Ok(line) => Ok(Entered::Text(line)),
        Err(ReadlineError::Interrupted) => Ok(Entered::Interrupted),
        Err(ReadlineError::Eof) => Ok(Entered::End),
        Err(error) => Err(of_terminal(error)),
    }
}

fn of_terminal(error: ReadlineError) -> anyhow::Error {
    let said = Error::new(ErrorKind::Io, "cannot read from the terminal");
    said.source(error).hint("--prompt TEXT needs no terminal").into()
}
