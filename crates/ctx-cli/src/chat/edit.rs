//! Lines from a person: edited, pasted, remembered.

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind};
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History as _, MemHistory};
use rustyline::{Cmd, Config, Editor, KeyCode, KeyEvent, Modifiers};

/// How many lines are remembered.
const REMEMBERED: usize = 1_000;

/// What came of asking for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Said(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    Over,
}

/// Takes lines, and remembers them in a file.
///
/// One editor takes them all: it has read more than a line where several came at once, and what it
/// holds is said next.
pub(super) struct Lines {
    editor: Editor<(), FileHistory>,
    file: PathBuf,
    /// Why they are not remembered, once that is so.
    trouble: Option<String>,
}

impl Lines {
    /// Pasted text comes as one message, whatever lines it has. Alt-Enter begins another line.
    pub(super) fn open(file: &Path) -> anyhow::Result<Self> {
        let config = Config::builder().max_history_size(REMEMBERED).map_err(of_terminal)?.build();
        let mut history = FileHistory::with_config(&config);
        let mut trouble = None;
        if let Err(error) = history.load(file)
            && file.exists()
        {
            trouble = Some(format!("what was typed before is not there: {error}"));
        }
        let mut editor = Editor::with_history(config, history).map_err(of_terminal)?;
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        Ok(Self { editor, file: file.to_owned(), trouble })
    }

    /// The next line: what was typed or pasted since the last comes first, in its order.
    pub(super) fn next(&mut self, prompt: &str) -> anyhow::Result<Line> {
        taken(self.editor.readline(prompt))
    }

    /// Has a line offered again, also in the next run.
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
            self.trouble = Some(format!("what is typed is not remembered: {error}"));
        }
    }

    /// What a person should be told, once.
    pub(super) fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}

/// Drops what was typed and not read yet. Whether that was a line, or more.
#[cfg(unix)]
pub(super) fn drop_typed() -> bool {
    use rustix::termios::{QueueSelector, tcflush};
    let stdin = std::io::stdin();
    let had_lines = rustix::io::ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0);
    // Where it cannot be dropped there is no terminal, and nobody to ask.
    let _ = tcflush(&stdin, QueueSelector::IFlush);
    had_lines
}

#[cfg(not(unix))]
pub(super) fn drop_typed() -> bool {
    false
}

/// Asks a question whose answer nobody wants to see again. What the editor of messages holds answers
/// none: this is another.
pub(super) fn ask(prompt: &str) -> anyhow::Result<Line> {
    let mut editor: Editor<(), MemHistory> =
        Editor::with_history(Config::default(), MemHistory::new()).map_err(of_terminal)?;
    taken(editor.readline(prompt))
}

fn taken(line: rustyline::Result<String>) -> anyhow::Result<Line> {
    match line {
        Ok(line) => Ok(Line::Said(line)),
        Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
        Err(ReadlineError::Eof) => Ok(Line::Over),
        Err(error) => Err(of_terminal(error)),
    }
}

fn of_terminal(error: ReadlineError) -> anyhow::Error {
    let said = Error::new(ErrorKind::Io, "the terminal cannot be read");
    said.source(error).hint("--prompt TEXT needs no terminal").into()
}
