//! The terminal's title while a client runs.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ctx_session::clock;

use crate::ask::status;

/// The time between two looks at the proxy.
const PERIOD: Duration = Duration::from_secs(2);

/// Saves the terminal's title, as xterm does and most terminals have adopted.
const SAVE: &str = "\x1b[22;2t";
/// Restores it.
const RESTORE: &str = "\x1b[23;2t";

/// Shows the status of the client's conversation in the title, until it is dropped.
pub(super) struct Title {
    /// The thread, and what ends it.
    running: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Title {
    /// Shows what passes a proxy from now on. Does nothing without a terminal.
    pub(super) fn of(url: &str) -> Self {
        if !std::io::stderr().is_terminal() || std::env::var_os("TERM").is_some_and(|t| t == "dumb")
        {
            return Self { running: None };
        }
        let since = clock::now().0;
        let project = std::env::current_dir().unwrap_or_default().display().to_string();
        let url = url.to_owned();
        let (end, ended) = mpsc::channel();
        let thread = thread::spawn(move || {
            follow(|| status(&url, since, &project).map(|status| status.to_string()), &ended);
        });
        Self { running: Some((end, thread)) }
    }
}

impl Drop for Title {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.running.take() {
            drop(end);
            // It panics only if the terminal is gone.
            let _ = thread.join();
        }
    }
}

/// Writes the status to the title whenever it changes. One write each, so that it does not end up
/// inside of the client's own sequences.
fn follow(line: impl Fn() -> Option<String>, ended: &mpsc::Receiver<()>) {
    let mut shown: Option<String> = None;
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PERIOD) {
        let Some(line) = line().filter(|line| Some(line) != shown.as_ref()) else {
            continue;
        };
        let save = if shown.is_none() { SAVE } else { "" };
        write(&format!("{save}\x1b]2;ctx: {line}\x07"));
        shown = Some(line);
    }
    if shown.is_some() {
        write(RESTORE);
    }
}

/// Best effort: the title is for people.
fn write(text: &str) {
    let mut terminal = std::io::stderr();
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}
