//! A program that writes summaries: one JSON object per line in, one per line out.
//!
//! It gets `{"messages": [OpenAI chat], "previous": summary or null, "budgetTokens": n}` and answers
//! `{"summary": "..."}`. docs/bench.md is the contract.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ctx_core::{Error, ErrorKind, Message, Result, Tokens};
use serde::Deserialize;

use super::super::request::Request;
use super::super::session::tokens;
use super::{Outcome, Task};

/// The most characters of an answer that an error quotes.
const QUOTED_CHARS: usize = 80;

/// A running program.
#[derive(Debug)]
pub struct CandidateProgram {
    pub(super) command: String,
    child: Child,
    questions: Sender<String>,
    answers: Receiver<String>,
    limit: Duration,
    /// The reason why it gets no more requests.
    failed: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    summary: String,
}

impl CandidateProgram {
    /// Starts `command`, whose words are separated by spaces. An answer may take `limit`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for an empty command, [`ErrorKind::NotFound`] if it cannot be
    /// started.
    pub fn start(command: &str, limit: Duration) -> Result<Self> {
        let mut words = command.split_whitespace();
        let program = words.next().ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, "empty command of the candidate")
                .hint("name a program and its arguments, separated by spaces")
        })?;
        let started =
            Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| {
            Error::new(ErrorKind::NotFound, "cannot start the candidate")
                .with("command", command)
                .hint("the first word is a program; a shell is not used")
                .source(error)
        })?;
        let (questions, answers) = connect(&mut child);
        Ok(Self { command: command.to_owned(), child, questions, answers, limit, failed: None })
    }

    /// Asks for one summary after another.
    pub(super) fn compact(&mut self, task: &Task<'_>) -> Result<Outcome> {
        if let Some(why) = &self.failed {
            return Err(Error::new(ErrorKind::Contract, why.clone()));
        }
        let compacted = self.compact_rounds(task);
        if let Err(error) = &compacted {
            self.failed = Some(error.to_string());
        }
        compacted
    }

    fn compact_rounds(&mut self, task: &Task<'_>) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let (mut from, mut summary) = (0, None);
        for (round, (end, target)) in task.rounds().enumerate() {
            let tail = task.tail(round).max(from);
            let budget = target - tokens(&task.history[tail..end]);
            let messages = task.history[from..tail].iter().map(|item| &*item.message);
            let started = Instant::now();
            let written = self.ask(messages, summary.as_deref(), budget)?;
            outcome.millis += started.elapsed().as_secs_f64() * 1_000.0;
            outcome.request = Request::of_summary(written.clone(), &task.history[tail..end]);
            (from, summary) = (tail, Some(written));
        }
        Ok(outcome)
    }

    fn ask<'m>(
        &mut self,
        messages: impl Iterator<Item = &'m Message>,
        previous: Option<&str>,
        budget: Tokens,
    ) -> Result<String> {
        let messages = ctx_dialect::openai_chat::write(messages);
        let messages: Vec<&str> = messages.iter().map(|json| json.as_str()).collect();
        let previous = serde_json::to_string(&previous).unwrap_or_else(|_| "null".to_owned());
        let question = format!(
            r#"{{"messages":[{}],"previous":{previous},"budgetTokens":{budget}}}"#,
            messages.join(","),
        );
        // This fails if the program has ended. The missing answer is then the error.
        let _ = self.questions.send(question);
        let answer = self.answers.recv_timeout(self.limit).map_err(|why| self.silent(why))?;
        serde_json::from_str(&answer).map(|Answer { summary }| summary).map_err(|error| {
            self.wrong("the candidate's answer is not {\"summary\": \"...\"}")
                .with("answer", ctx_core::text::clip(&answer, QUOTED_CHARS))
                .source(error)
        })
    }

    fn wrong(&self, what: &'static str) -> Error {
        Error::new(ErrorKind::Contract, what).with("command", &self.command)
    }

    fn silent(&mut self, why: RecvTimeoutError) -> Error {
        match why {
            RecvTimeoutError::Timeout => self
                .wrong("the candidate did not answer in time")
                .with("seconds", self.limit.as_secs())
                .hint("give it more with --candidate-seconds"),
            RecvTimeoutError::Disconnected => {
                let status = self.child.wait().map(|status| status.to_string());
                self.wrong("the candidate ended without an answer")
                    .with("status", status.unwrap_or_default())
                    .hint("it must answer each line on its standard input with one line")
            }
        }
    }
}

impl Drop for CandidateProgram {
    fn drop(&mut self) {
        // This fails if the program has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects the pipes to threads. A program that neither reads nor answers then blocks nothing.
fn connect(child: &mut Child) -> (Sender<String>, Receiver<String>) {
    let (questions, to_write) = channel::<String>();
    let (read, answers) = channel();
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    std::thread::spawn(move || {
        let Some(mut stdin) = stdin else { return };
        for question in to_write {
            if writeln!(stdin, "{question}").and_then(|()| stdin.flush()).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        let Some(stdout) = stdout else { return };
        for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
            if !line.trim().is_empty() && read.send(line).is_err() {
                return;
            }
        }
    });
    (questions, answers)
}
