//! Compares what users received with what is on disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ctx_core::Role;
use ctx_session::key::FileId;
use ctx_session::{Home, Transcript};

use super::life::{TurnEvent, beginning};

/// What users received.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) sent: usize,
    pub(crate) failed: usize,
    pub(crate) answered: Vec<(String, String)>,
    pub(crate) wrong: Vec<String>,
}

impl Account {
    pub(crate) fn note(&mut self, event: TurnEvent) {
        match event {
            TurnEvent::Sent(_) => self.sent += 1,
            TurnEvent::Failed => self.failed += 1,
            TurnEvent::Answered { message, answer } => self.answered.push((message, answer)),
            TurnEvent::Wrong(what) => self.wrong.push(what),
        }
    }
}

/// Where a text is stored: the file, and the index of the message.
type Places = HashMap<String, Vec<(PathBuf, usize)>>;

/// Returns the problems in the sessions of a home.
pub(crate) fn check(home: &Path, account: &Account) -> Vec<String> {
    let mut wrong = account.wrong.clone();
    let (mut messages, mut answers) = (Places::new(), Places::new());
    let sessions = Home::at(home).sessions_dir(&FileId::main());
    for file in std::fs::read_dir(sessions).expect("the sessions' folder").flatten() {
        let path = file.path();
        let name = file.file_name().to_string_lossy().into_owned();
        if !name.contains(".jsonl") || name.ends_with(".lock") || name.contains(".torn-") {
            continue;
        }
        let transcript = Transcript::open(&path).expect("a transcript");
        let problems = transcript.problems.iter();
        wrong.extend(problems.map(|problem| format!("{name}: {problem}")));
        for (at, item) in transcript.main_line().expect("it is read").iter().enumerate() {
            let message = item.entry.message().expect("it is read");
            let known = match message.role {
                Role::User => &mut messages,
                Role::Assistant if message.tool_calls().next().is_none() => &mut answers,
                _ => continue,
            };
            let text = beginning(&message.plain_text());
            known.entry(text).or_default().push((path.clone(), at));
        }
    }
    for (what, places) in messages.iter().chain(&answers).filter(|(_, places)| places.len() > 1) {
        wrong.push(format!("{what} is stored {} times", places.len()));
    }
    for (message, answer) in &account.answered {
        match (messages.get(message).map(Vec::as_slice), answers.get(answer).map(Vec::as_slice)) {
            (Some([(asked, before)]), Some([(file, after)])) if asked == file && before < after => {
            }
            found => {
                wrong.push(format!("{message} was answered by {answer}, and stored: {found:?}"));
            }
        }
    }
    wrong
}
