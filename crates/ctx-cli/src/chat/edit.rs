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
pub(super) struct Lines {
    history: FileHistory,
    config: Config,
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
        Ok(Self { history, config, file: file.to_owned(), trouble })
    }

    /// The next line. The editor takes Ctrl-C for itself as long as it is there, so it is there only
    /// while somebody types.
    pub(super) fn next(&mut self, prompt: &str) -> anyhow::Result<Line> {
        let history = std::mem::take(&mut self.history);
        let mut editor: Editor<(), FileHistory> =
            Editor::with_history(self.config.clone(), history).map_err(of_terminal)?;
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        let line = editor.readline(prompt);
        self.history = std::mem::take(editor.history_mut());
        taken(line)
    }

    /// Has a line offered again, also in the next run.
    pub(super) fn remember(&mut self, line: &str) {
        let stored = match self.history.add(line) {
            Ok(true) => {
                let folder = self.file.parent().map(std::fs::create_dir_all);
                match folder.transpose() {
                    Ok(_) => self.history.append(&self.file),
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

/// Asks a question whose answer nobody wants to see again.
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
