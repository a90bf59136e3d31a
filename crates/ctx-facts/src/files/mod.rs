//! Lists of files read and modified.

mod base;
mod block;
mod tools;

use std::collections::BTreeSet;

use ctx_core::{RawJson, Role};
use serde::{Deserialize, Serialize};

use crate::CitedMessage;

pub use base::{base_folder, names_base_folder, with_relative_paths};

use tools::Touch;
pub use tools::modified_files;
pub(crate) use tools::patched;

/// The files a session touched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FileLists {
    /// Files that were read; after [`FileLists::normalised`], those that were not modified.
    pub read_files: BTreeSet<String>,
    /// Files that were written or edited.
    pub modified_files: BTreeSet<String>,
}

impl FileLists {
    /// Collects the files named by the tool calls of these messages, and those listed in summaries
    /// among the messages.
    ///
    /// A call counts if its tool is known: pi's `read`, `write` and `edit` with `path`, and the
    /// file tools of other agents. Whether the call succeeded does not matter. Shell commands are
    /// not parsed.
    #[must_use]
    pub fn of(messages: &[CitedMessage]) -> Self {
        let mut lists = Self::default();
        for cited in messages {
            if matches!(cited.message.role, Role::CompactionSummary | Role::BranchSummary) {
                lists.merge(Self::in_summary(&cited.message.plain_text()));
            }
            for call in cited.message.tool_calls() {
                for (touch, path) in tools::touched(call) {
                    let list = match touch {
                        Touch::Read => &mut lists.read_files,
                        Touch::Modify => &mut lists.modified_files,
                    };
                    list.insert(path);
                }
            }
        }
        lists
    }

    /// Parses the lists in a summary: `<read-files>` and `<modified-files>`, one path per line.
    #[must_use]
    pub fn in_summary(summary: &str) -> Self {
        let base = base_folder(summary).unwrap_or_default();
        let list = |tag: &str| {
            let paths = block::lines(summary, tag).into_iter();
            let is_whole = |path: &str| path.starts_with('/') || path.get(1..2) == Some(":");
            paths.map(|path| if is_whole(&path) { path } else { format!("{base}{path}") }).collect()
        };
        Self { read_files: list("read-files"), modified_files: list("modified-files") }
    }

    /// Parses the lists in the `details` of a compaction entry, as pi and OpenClaw store them;
    /// empty if there are none.
    #[must_use]
    pub fn in_details(details: &RawJson) -> Self {
        serde_json::from_str(details.as_str()).unwrap_or_default()
    }

    /// Adds the files of `other`.
    pub fn merge(&mut self, other: Self) {
        self.read_files.extend(other.read_files);
        self.modified_files.extend(other.modified_files);
    }

    /// Removes modified files from the files read, and empty names from both.
    #[must_use]
    pub fn normalised(mut self) -> Self {
        self.modified_files.retain(|path| !path.is_empty());
        self.read_files.retain(|path| !path.is_empty() && !self.modified_files.contains(path));
        self
    }

    /// Returns the lists in the format used at the end of a summary, blocks separated by a blank
    /// line; empty if there are none. A path that would not parse back unchanged, because it
    /// contains line breaks or tags, is written as JSON.
    ///
    /// ```
    /// use ctx_facts::FileLists;
    ///
    /// let mut lists = FileLists::default();
    /// lists.modified_files.insert("src/a.rs".into());
    /// assert_eq!(lists.render(), "<modified-files>\nsrc/a.rs\n</modified-files>");
    /// assert_eq!(FileLists::in_summary(&lists.render()), lists);
    /// ```
    pub fn render(&self) -> String {
        let blocks = [("read-files", &self.read_files), ("modified-files", &self.modified_files)];
        let blocks = blocks.into_iter().filter(|(_, paths)| !paths.is_empty());
        blocks.map(|(tag, paths)| block::write(tag, paths)).collect::<Vec<_>>().join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ctx_core::{Block, Message, ToolCall};

    use super::*;

    fn said(message: Message) -> CitedMessage {
        CitedMessage { id: "1".into(), message: Arc::new(message), pinned: false }
    }

    fn calls(calls: &[(&str, &str)]) -> CitedMessage {
        let call = |&(name, arguments): &(&str, &str)| {
            Block::ToolCall(ToolCall::new("c", name, RawJson::from_text(arguments)))
        };
        said(Message::new(Role::Assistant, calls.iter().map(call).collect()))
    }

    fn set(paths: &[&str]) -> BTreeSet<String> {
        paths.iter().map(|&path| path.to_owned()).collect()
    }

    #[test]
    fn a_file_that_was_modified_is_not_among_those_read() {
        let said = calls(&[
            ("read", r#"{"path":"a.rs"}"#),
            ("read", r#"{"path":"b.rs"}"#),
            ("edit", r#"{"path":"b.rs","oldText":"x"}"#),
            ("write", r#"{"path":""}"#),
            ("bash", r#"{"path":"c.rs"}"#),
        ]);
        let lists = FileLists::of(&[said]).normalised();
        assert_eq!(lists.read_files, set(&["a.rs"]));
        assert_eq!(lists.modified_files, set(&["b.rs"]));
    }

    #[test]
    fn lists_are_carried_over_from_summaries_and_details() {
        let text = "left\n\n<read-files>\na.rs\n</read-files>";
        let branch = said(Message::text(Role::BranchSummary, text));
        let mut lists = FileLists::of(&[branch]);
        let details = r#"{"readFiles":["b.rs"],"modifiedFiles":["a.rs"],"more":1}"#;
        lists.merge(FileLists::in_details(&RawJson::from_text(details)));
        let lists = lists.normalised();
        assert_eq!(lists.read_files, set(&["b.rs"]));
        assert_eq!(lists.modified_files, set(&["a.rs"]));
        assert_eq!(FileLists::in_details(&RawJson::from_text("[1]")), FileLists::default());
    }

    #[test]
    fn a_user_who_quotes_a_block_names_no_files() {
        let text = "<read-files>\na.rs\n</read-files>";
        assert_eq!(FileLists::of(&[said(Message::text(Role::User, text))]), FileLists::default());
    }

    #[test]
    fn every_path_is_found_again() {
        let paths = set(&[
            "a b.rs",
            "中文.md",
            "two\nlines",
            " blanks ",
            "</modified-files>",
            "\"quoted\"",
            "a<b>",
            "\u{2028}",
            "C:\\x",
        ]);
        let lists = FileLists { read_files: paths.clone(), modified_files: paths };
        let text = format!("A summary.\n\n{}", lists.render());
        assert_eq!(FileLists::in_summary(&text), lists);
        assert_eq!(text.matches("</modified-files>").count(), 1);
        assert!(text.contains("\na b.rs\n"));
    }
}
