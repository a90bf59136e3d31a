//! The grounds of a summary: its source text, indexed for lookups.

mod claim;

use ctx_core::text::Slice;
use std::collections::HashSet;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use ctx_core::{Block, EntryId, ToolResult};
use indexmap::IndexMap;

use ctx_facts::citations;
use ctx_facts::strings;
use ctx_facts::{CitedMessage, RequiredFact};
use ctx_text::{Span, SpanKind, spans};

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
        // The previous summary cites entries that are no longer among the messages.
        for cited in previous.into_iter().flat_map(citations) {
            grounds.entries.extend(cited.ids.into_iter().map(EntryId::from));
        }
        grounds
    }

    /// Whether an identifier, a number or the citation of an entry occurs in the source, in this or
    /// another spelling: `500 ms` is grounded by `500ms`, `src/a.rs` by `/home/me/src/a.rs:12`.
    #[must_use]
    pub fn holds(&self, identifier: &str) -> bool {
        let identifier = identifier.trim();
        if let Some(cited) = citations(identifier).first()
            && cited.range == (0..identifier.len())
        {
            return cited.ids.iter().all(|id| self.entries.contains(*id));
        }
        let found = spans(identifier);
        let whole = found.iter().find(|token| token.text == identifier);
        let claim = whole.map_or_else(|| Claim::of_text(identifier), Claim::of);
        self.grounded([&claim].into_iter()).first().copied().unwrap_or_default()
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

    /// Returns for each token whether it occurs in the source, in one pass over the source.
    pub(crate) fn hold(&self, tokens: &[Span<'_>]) -> Vec<bool> {
        let mut once: IndexMap<(SpanKind, &str, bool), Claim<'_>> = IndexMap::new();
        for token in tokens {
            once.entry((token.kind, token.text, token.quoted)).or_insert_with(|| Claim::of(token));
        }
        let held = self.grounded(once.values());
        let held_of = |token: &Span<'_>| {
            let place = once.get_index_of(&(token.kind, token.text, token.quoted));
            place.and_then(|place| held.get(place)).copied().unwrap_or_default()
        };
        tokens.iter().map(held_of).collect()
    }

    /// Whether the entry with this id is part of the source.
    pub(crate) fn has_entry(&self, id: &str) -> bool {
        self.entries.contains(id)
    }

    fn grounded<'c>(&self, claims: impl Iterator<Item = &'c Claim<'c>> + Clone) -> Vec<bool> {
        let places: Vec<&Place> = claims.clone().flat_map(Claim::places).collect();
        let stands = self.stand(&places);
        let mut at = 0;
        let holds = claims.map(|claim| {
            let count = claim.places().count();
            let own = stands.slice(at..at + count);
            at += count;
            claim.holds(own)
        });
        holds.collect()
    }

    fn stand(&self, places: &[&Place]) -> Vec<bool> {
        let mut out = vec![false; places.len()];
        // Each pattern once, with the places that search for it.
        let mut patterns: IndexMap<String, Vec<usize>> = IndexMap::new();
        for (at, place) in places.iter().enumerate() {
            // An empty pattern would match everywhere.
            if !place.words.is_empty() {
                patterns.entry(place.words.to_ascii_lowercase()).or_default().push(at);
            }
        }
        // For a short text, building a faster automaton takes longer than the search.
        let kind = (self.text.len() < LONG).then_some(AhoCorasickKind::ContiguousNFA);
        let mut finder = AhoCorasick::builder();
        let finder = finder.ascii_case_insensitive(true).kind(kind).build(patterns.keys());
        let Ok(finder) = finder else { return out };
        for hit in finder.find_overlapping_iter(&self.text) {
            let Some((_, seekers)) = patterns.get_index_mut(hit.pattern().as_usize()) else {
                continue;
            };
            seekers.retain(|&at| {
                let range = hit.start()..hit.end();
                let stands =
                    places.get(at).is_some_and(|place| place.stands_at(&self.text, &range));
                if let Some(out) = out.get_mut(at) {
                    *out |= stands;
                }
                !stands
            });
        }
        out
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
            Block::ToolResult(result) => self.result(result),
            Block::Bash(run) => {
                self.push(&run.command);
                self.push(&run.output);
                if let Some(code) = run.exit_code {
                    self.push(&format!("exit code {code}"));
                }
            }
            Block::Opaque { json } => self.push(json.as_str()),
            Block::Image(image) => {
                if image.is_url {
                    self.push(&image.data);
                }
            }
        }
    }

    fn result(&mut self, result: &ToolResult) {
        for block in &result.content {
            match block {
                Block::Text { text } => self.push(text),
                Block::Opaque { json } => self.push(json.as_str()),
                _ => {}
            }
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
            assert_eq!(grounds.holds(text), held, "{text}");
        }
    }
}
