//! Asks the user at a terminal before a tool acts.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use ctx_terminal::format::{escaped_lines, shortened};
use ctx_terminal::out::{BOLD, DIM, GREEN, RED};

use super::edit::{Entered, ask, drop_typed};
use super::tools::{Approver, Tool, ToolAction};
use super::{Interrupt, Spinner};

/// Maximum length of a line in a preview.
const LINE_CHARS: usize = 160;

/// Asks the user at the terminal.
pub(crate) struct TerminalUser {
    /// Permissions for the whole conversation, each for one command or one file.
    always: Mutex<HashSet<(Tool, String)>>,
    interrupt: Interrupt,
    spinner: Spinner,
}

impl TerminalUser {
    pub(crate) fn new(interrupt: Interrupt, spinner: Spinner) -> Self {
        Self { always: Mutex::default(), interrupt, spinner }
    }

    fn always(&self) -> std::sync::MutexGuard<'_, HashSet<(Tool, String)>> {
        self.always.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confirmation {
    Yes,
    No,
    Always,
}

impl Confirmation {
    fn of(text: &str) -> Option<Self> {
        match text.trim().to_lowercase().as_str() {
            "y" | "yes" => Some(Self::Yes),
            "n" | "no" | "" => Some(Self::No),
            "a" | "always" => Some(Self::Always),
            _ => None,
        }
    }
}

#[async_trait]
impl Approver for TerminalUser {
    async fn ask(&self, action: ToolAction) -> Result<(), String> {
        let key = (action.tool, action.subject.clone());
        if self.always().contains(&key) {
            return Ok(());
        }
        let refused = |reason: &str| Err(reason.to_owned());
        let spinner = self.spinner.clone();
        let answered =
            tokio::task::spawn_blocking(move || spinner.beside(|| question(&action))).await;
        match answered {
            Ok(Ok(Ok(Confirmation::Yes))) => Ok(()),
            Ok(Ok(Ok(Confirmation::Always))) => {
                self.always().insert(key);
                Ok(())
            }
            Ok(Ok(Ok(Confirmation::No))) => refused("denied by the user"),
            Ok(Ok(Err(Entered::Interrupted))) => {
                self.interrupt.trigger();
                // The turn is over: the model gets no further results.
                std::future::pending().await
            }
            Ok(Ok(Err(_)) | Err(_)) | Err(_) => refused("no answer to the confirmation"),
        }
    }
}

/// Asks until there is an answer or the input ends.
fn question(action: &ToolAction) -> anyhow::Result<Result<Confirmation, Entered>> {
    let outside = if action.is_outside { ", outside of this folder" } else { "" };
    let words = escaped_lines(&action.words);
    anstream::eprintln!("{BOLD}{words}{BOLD:#}{outside}");
    for line in &action.preview {
        let style = match line.as_bytes().first() {
            Some(b'+') => GREEN,
            Some(b'-') => RED,
            _ => DIM,
        };
        anstream::eprintln!("  {style}{}{style:#}", shortened(line, LINE_CHARS));
    }
    // Only text typed after the question was shown is the answer.
    if drop_typed() {
        anstream::eprintln!("{DIM}input typed before this question is ignored{DIM:#}");
    }
    loop {
        match ask("allow it? [y]es, [N]o, [a]lways: ")? {
            Entered::Text(text) => match Confirmation::of(&text) {
                Some(answer) => return Ok(Ok(answer)),
                None => anstream::eprintln!("{DIM}answer y, n or a{DIM:#}"),
            },
            line => return Ok(Err(line)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_a_confirmation() {
        for (text, answer) in [
            ("y", Some(Confirmation::Yes)),
            (" YES ", Some(Confirmation::Yes)),
            ("a", Some(Confirmation::Always)),
            ("n", Some(Confirmation::No)),
            ("", Some(Confirmation::No)),
            ("yep, and also", None),
        ] {
            assert_eq!(Confirmation::of(text), answer, "{text:?}");
        }
    }
}
