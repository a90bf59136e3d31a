//! Somebody at a terminal who is asked before anything is done.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use super::edit::{Line, ask, drop_typed};
use super::tools::{Deed, Leave, Permits};
use super::{Interrupt, Sign};
use crate::args::Tool;
use crate::out::{BOLD, DIM, GREEN, RED};
use crate::words::{harmless_lines, shortened};

/// Longer lines of what will be written are cut.
const LINE_CHARS: usize = 160;

/// Asks the person at the terminal.
pub(crate) struct Person {
    /// What was allowed for good: this command, this file.
    always: Mutex<HashSet<(Tool, String)>>,
    interrupt: Interrupt,
    sign: Sign,
}

impl Person {
    pub(crate) fn new(interrupt: Interrupt, sign: Sign) -> Self {
        Self { always: Mutex::default(), interrupt, sign }
    }

    fn always(&self) -> std::sync::MutexGuard<'_, HashSet<(Tool, String)>> {
        self.always.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a person answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    Always,
}

impl Answer {
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
impl Permits for Person {
    async fn ask(&self, deed: Deed) -> Leave {
        let key = (deed.tool, deed.subject.clone());
        if self.always().contains(&key) {
            return Leave::Granted;
        }
        let refused = |reason: &str| Leave::Refused(reason.to_owned());
        let sign = self.sign.clone();
        let answered = tokio::task::spawn_blocking(move || sign.beside(|| question(&deed))).await;
        match answered {
            Ok(Ok(Ok(Answer::Yes))) => Leave::Granted,
            Ok(Ok(Ok(Answer::Always))) => {
                self.always().insert(key);
                Leave::Granted
            }
            Ok(Ok(Ok(Answer::No))) => refused("the user said no"),
            Ok(Ok(Err(Line::Interrupted))) => {
                self.interrupt.trigger();
                // The turn is over: nothing is told to the model any more.
                std::future::pending().await
            }
            Ok(Ok(Err(_)) | Err(_)) | Err(_) => refused("nobody answered whether it may be done"),
        }
    }
}

/// Asks until there is an answer, or nobody to give one.
fn question(deed: &Deed) -> anyhow::Result<Result<Answer, Line>> {
    let outside = if deed.is_outside { ", outside of this folder" } else { "" };
    let words = harmless_lines(&deed.words);
    anstream::eprintln!("{BOLD}{words}{BOLD:#}{outside}");
    for line in &deed.preview {
        let style = match line.as_bytes().first() {
            Some(b'+') => GREEN,
            Some(b'-') => RED,
            _ => DIM,
        };
        anstream::eprintln!("  {style}{}{style:#}", shortened(line, LINE_CHARS));
    }
    // Only what is typed with the question before one's eyes answers it.
    if drop_typed() {
        anstream::eprintln!("{DIM}what was typed before this question is dropped{DIM:#}");
    }
    loop {
        match ask("allow it? [y]es, [N]o, [a]lways: ")? {
            Line::Said(text) => match Answer::of(&text) {
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
    fn only_a_yes_is_a_yes() {
        for (text, answer) in [
            ("y", Some(Answer::Yes)),
            (" YES ", Some(Answer::Yes)),
            ("a", Some(Answer::Always)),
            ("n", Some(Answer::No)),
            ("", Some(Answer::No)),
            ("yep, and also", None),
        ] {
            assert_eq!(Answer::of(text), answer, "{text:?}");
        }
    }
}
