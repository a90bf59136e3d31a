//! The grounds of a summary: its source text, indexed for lookups.

mod claim;

use std::collections::HashSet;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use ctx_core::{Block, EntryId};
use indexmap::IndexMap;

use ctx_facts::{CitedMessage, RequiredFact, citations, strings};
use ctx_text::Span;

pub(crate) use claim::is_audited;
use claim::{Claim, Place};

/// The length in bytes from which building a fast search pays off.
const LONG: usize = 200_000;

/// The full source of a summary, in which its identifiers and numbers are looked up.
///
/// The source is all of the messages: text and thinking, arguments of calls as written and
/// unescaped, results, commands and their outcome; the previous summary; and the user's
/// instructions for the summary. Content of tool results may be cited, though it is not a
/// [required fact](ctx_facts::required_facts) of its own.
#[derive(Clone, Debug, Default)]
pub struct SourceIndex {
    text: String,
    entries: HashSet<EntryId>,
}

impl SourceIndex {
    /// Builds the grounds of a summary from the messages it covers, the previous summary, and the
    /// user's instructions.
    #[must_use]
    pub fn of(said: &[CitedMessage], previous: Option<&str>, instructions: &[&str]) -> Self {
        let mut grounds = Self::default();
        for one in said {
            grounds.entries.insert(one.id.clone());
            for block in &one.message.blocks {
                grounds.block(block);
            }
        }
        for text in previous.iter().chain(instructions) {
            grounds.push(text);
        }
        // The previous summary cites entries that have left the messages.
        for cited in previous.into_iter().flat_map(citations) {
            grounds.entries.extend(cited.ids.into_iter().map(EntryId::from));
        }
        grounds
    }

    /// Adds entries that may be cited, such as that of the previous summary.
    pub(crate) fn with_entries<'e>(mut self, ids: impl IntoIterator<Item = &'e EntryId>) -> Self {
        self.entries.extend(ids.into_iter().cloned());
        self
    }

    /// Adds text by ctx itself, which a model may repeat.
    pub(crate) fn with_text(mut self, text: &str) -> Self {
        self.push(text);
        self
    }

    /// Builds grounds from the texts of facts only.
    pub(crate) fn quoting(facts: &[RequiredFact]) -> Self {
        let mut grounds = Self::default();
        facts.iter().for_each(|fact| grounds.push(&fact.text));
        grounds
    }

    /// Returns for each token whether it occurs in the source, in this or another spelling: `500 ms`
    /// occurs as `500ms`, `src/a.rs` as `/home/me/src/a.rs:12`.
    pub(crate) fn hold(&self, tokens: &[Span<'_>]) -> Vec<bool> {
        let mut claims: Vec<Claim> = tokens.iter().map(Claim::of).collect();
        self.find(claims.iter_mut().flat_map(Claim::places));
        claims.iter().map(Claim::holds).collect()
    }

    /// Whether the entry with this id is part of the source.
    pub(crate) fn has_entry(&self, id: &str) -> bool {
        self.entries.contains(id)
    }

    /// Marks the places that occur, in one pass over the source.
    fn find<'p>(&self, places: impl Iterator<Item = &'p mut Place>) {
        // Each pattern once, with the places that search for it.
        let mut patterns: IndexMap<String, Vec<&mut Place>> = IndexMap::new();
        // An empty pattern would match everywhere.
        for place in places.filter(|place| !place.words.is_empty()) {
            patterns.entry(place.words.to_ascii_lowercase()).or_default().push(place);
        }
        if patterns.is_empty() {
            return;
        }
        // For a short text, building a faster automaton takes longer than the search.
        let kind = (self.text.len() < LONG).then_some(AhoCorasickKind::ContiguousNFA);
        let mut finder = AhoCorasick::builder();
        let finder = finder.ascii_case_insensitive(true).kind(kind).build(patterns.keys());
        let Ok(finder) = finder else { return };
        for hit in finder.find_overlapping_iter(&self.text) {
            let Some((_, seekers)) = patterns.get_index_mut(hit.pattern().as_usize()) else {
                continue;
            };
            seekers.retain_mut(|place| {
                place.stands = place.stands_at(&self.text, &(hit.start()..hit.end()));
                !place.stands
            });
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Text { text } => self.push(text),
            Block::Thinking { thinking, .. } => self.push(thinking),
            Block::ToolCall(call) => {
                self.push(&call.name);
                self.push(call.arguments.as_str());
                for argument in strings(call.arguments.as_str()) {
                    // Without escapes, the value already occurs in the arguments.
                    if matches!(argument.value, std::borrow::Cow::Owned(_)) {
                        self.push(&argument.value);
                    }
                }
            }
            Block::ToolResult(result) => result.content.iter().for_each(|block| self.block(block)),
            Block::Bash(run) => {
                self.push(&run.command);
                self.push(&run.output);
                if let Some(code) = run.exit_code {
                    self.push(&format!("exit code {code}"));
                }
            }
            Block::Opaque { json } => self.push(json.as_str()),
            Block::Image(image) if image.is_url => self.push(&image.data),
            Block::Image(_) => {}
        }
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::{Message, Role};

    use super::*;
    use crate::audit;

    fn grounds(text: &str) -> SourceIndex {
        let message = Message::text(Role::User, text).into();
        let said = CitedMessage { id: "e1".into(), message, pinned: false };
        SourceIndex::of(&[said], Some("before [e:e0]"), &["dwell on the parser"])
    }

    #[test]
    fn what_stands_in_the_source_is_held_however_it_is_spelled() {
        let source = "/home/me/proj/src/a.rs:12 took 1500ms; see https://x.org/a/b?c=1 and #42, \
            commit 3f2a9bc1d4e5, exited with code 137, got HTTP/1.1 404, timeout_ms = 3000, \
            UserService.create(), `retry_after`, 200k tokens, port: 8080, v1.2.3, $5.20, 5 minutes";
        let grounds = grounds(source);
        for (text, held) in [
            ("src/a.rs", true),
            ("/home/me/proj/src/a.rs", true),
            ("src/a.rs:12", true),
            ("/home/me/proj/", true),
            ("src/b.rs", false),
            ("a.rs.bak", false),
            ("1,500 ms", true),
            ("1.5 s", false),
            ("3000 ms", true),
            ("47%", false),
            ("https://x.org/a/b", true),
            ("https://x.org/z", false),
            ("#42", true),
            ("#4", false),
            ("3f2a9bc", true),
            ("3f2a9bd", false),
            ("exit code 137", true),
            ("exit code 1", false),
            ("HTTP 404", true),
            ("HTTP 500", false),
            ("UserService", true),
            ("UserFactory", false),
            ("retry_after", true),
            ("retry_afte", false),
            ("200,000 tokens", true),
            ("port 8080", true),
            ("port 9090", false),
            ("1.2.3", true),
            ("v1.2.4", false),
            ("$5.20", true),
            ("5 min", true),
            ("6 min", false),
            ("[e:e1]", true),
            ("[e:e0]", true),
            ("[e:e2]", false),
            ("[e:e1, e:e2]", false),
        ] {
            let is_held = audit(text, &[], &grounds).ungrounded.is_empty();
            assert_eq!(is_held, held, "{text}");
        }
    }
}
