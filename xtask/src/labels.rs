//! Manual labels. They name a line by its hash, because the sessions may not be copied.

#![expect(clippy::print_stdout, reason = "the output of the tasks")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use ctx_core::{ContentHash, Message, Role};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
pub(crate) struct Label {
    session: String,
    /// The section of a line, the type of a fact.
    section: String,
    line: ContentHash,
    /// Whether the line belongs there.
    right: Option<bool>,
    /// The line, in what is printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
}

impl Label {
    /// Returns a line without a label.
    pub(crate) fn new(session: &str, section: &str, text: &str) -> Self {
        let line = ContentHash::of(&Message::text(Role::User, text));
        let (session, section, text) = (session.to_owned(), section.to_owned(), text.to_owned());
        Self { session, section, line, right: None, text }
    }

    fn key(&self) -> (&str, &str, ContentHash) {
        (&self.session, &self.section, self.line)
    }
}

/// How lines agree with their labels.
#[derive(Default)]
pub(crate) struct Agreement {
    pub(crate) right: usize,
    pub(crate) wrong: usize,
    pub(crate) unlabelled: usize,
    /// The number of lines labelled as right, found or not.
    pub(crate) wanted: usize,
}

/// Compares lines with the labels in a file. With `print`, prints the lines without a label, in the
/// form of the file.
pub(crate) fn compare(file: &Path, lines: &[Label], print: bool) -> Result<Agreement> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let labels = text.lines().map(serde_json::from_str).collect::<Result<Vec<Label>, _>>();
    let labels = labels.with_context(|| file.display().to_string())?;
    let known: HashMap<_, _> = labels.iter().map(|label| (label.key(), label.right)).collect();
    let wanted = known.values().filter(|right| **right == Some(true)).count();
    let mut out = Agreement { wanted, ..Agreement::default() };
    for line in lines {
        match known.get(&line.key()).copied().flatten() {
            Some(true) => out.right += 1,
            Some(false) => out.wrong += 1,
            None => {
                out.unlabelled += 1;
                if print {
                    println!("{}", serde_json::to_string(line)?);
                }
            }
        }
    }
    Ok(out)
}
