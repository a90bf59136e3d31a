//! What stands in the source of a summary.

use std::collections::HashSet;

use ctx_core::{Block, EntryId};

use crate::Said;

/// Everything that stands in the source: identifiers and numbers of a summary are looked up here.
#[derive(Clone, Debug, Default)]
pub struct Grounds {
    text: String,
    entries: HashSet<EntryId>,
}

impl Grounds {
    /// The grounds of a summary: the messages it stands for, the summary it goes on from, and what
    /// the user said how to summarise.
    #[must_use]
    pub fn of(said: &[Said], previous: Option<&str>, instructions: &[&str]) -> Self {
        let mut grounds = Self::default();
        for one in said {
            grounds.entries.insert(one.id.clone());
            for block in &one.message.blocks {
                match block {
                    Block::Text { text } => grounds.push(text),
                    Block::Thinking { thinking, .. } => grounds.push(thinking),
                    Block::ToolCall(call) => grounds.push(call.arguments.as_str()),
                    Block::ToolResult(result) => grounds.push(&result.plain_text()),
                    Block::Bash(run) => {
                        grounds.push(&run.command);
                        grounds.push(&run.output);
                    }
                    Block::Image(_) | Block::Opaque { .. } => {}
                }
            }
        }
        for text in previous.iter().chain(instructions) {
            grounds.push(text);
        }
        grounds
    }

    /// Whether an identifier, a number or the citation of an entry stands in the source.
    #[must_use]
    pub fn holds(&self, identifier: &str) -> bool {
        let cited = identifier.strip_prefix("[e:").and_then(|rest| rest.strip_suffix(']'));
        cited.map_or_else(|| self.text.contains(identifier), |id| self.entries.contains(id))
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }
}
