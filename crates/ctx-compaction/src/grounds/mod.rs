//! What stands in the source of a summary.

mod claim;

use std::collections::HashSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use ctx_core::{Block, EntryId, ToolResult};
use indexmap::IndexMap;

use crate::text::{Token, strings, tokens};
use crate::{Fact, FactKind, Said};

pub(crate) use claim::is_audited;
use claim::{Claim, Place};

/// From here on a text is long enough for a fast search to be worth its preparation, in bytes.
const LONG: usize = 200_000;

/// Everything that stands in the source: identifiers and numbers of a summary are looked up here.
///
/// The source is all of the messages: what was said and thought, arguments of calls as written and
/// with their escapes resolved, results, commands and their outcome; the summary before; and what
/// the user said how to summarise. What a tool showed may be cited, though it is no
/// [fact](crate::facts) of its own.
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
                grounds.block(block);
            }
        }
        for text in previous.iter().chain(instructions) {
            grounds.push(text);
        }
        // A summary before cites entries that are no longer among the messages.
        for cited in previous.into_iter().flat_map(citations) {
            grounds.entries.extend(cited.ids.into_iter().map(EntryId::from));
        }
        grounds
    }

    /// Whether an identifier, a number or the citation of an entry stands in the source, in this or
    /// another spelling: `500 ms` is grounded by `500ms`, `src/a.rs` by `/home/me/src/a.rs:12`.
    #[must_use]
    pub fn holds(&self, identifier: &str) -> bool {
        let identifier = identifier.trim();
        if let Some(cited) = citations(identifier).first()
            && cited.range == (0..identifier.len())
        {
            return cited.ids.iter().all(|id| self.entries.contains(*id));
        }
        let found = tokens(identifier);
        let whole = found.iter().find(|token| token.text == identifier);
        let claim = whole.map_or_else(|| Claim::of_text(identifier), Claim::of);
        self.grounded([&claim].into_iter()).first().copied().unwrap_or_default()
    }

    /// With an entry that may be cited, such as that of the summary before.
    pub(crate) fn with_entry(mut self, id: Option<&EntryId>) -> Self {
        self.entries.extend(id.cloned());
        self
    }

    /// With what ctx itself says, which a model may repeat.
    pub(crate) fn with_text(mut self, text: &str) -> Self {
        self.push(text);
        self
    }

    /// What facts say, and nothing else.
    pub(crate) fn quoting(facts: &[Fact]) -> Self {
        let mut grounds = Self::default();
        facts.iter().for_each(|fact| grounds.push(&fact.text));
        grounds
    }

    /// For each token, whether it stands in the source. One pass over the source for all of them.
    pub(crate) fn hold(&self, tokens: &[Token<'_>]) -> Vec<bool> {
        let mut once: IndexMap<(FactKind, &str, bool), Claim<'_>> = IndexMap::new();
        for token in tokens {
            once.entry((token.kind, token.text, token.quoted)).or_insert_with(|| Claim::of(token));
        }
        let held = self.grounded(once.values());
        let held_of = |token: &Token<'_>| {
            let place = once.get_index_of(&(token.kind, token.text, token.quoted));
            place.and_then(|place| held.get(place)).copied().unwrap_or_default()
        };
        tokens.iter().map(held_of).collect()
    }

    /// Whether an entry of that id is part of the source.
    pub(crate) fn has_entry(&self, id: &str) -> bool {
        self.entries.contains(id)
    }

    fn grounded<'c>(&self, claims: impl Iterator<Item = &'c Claim<'c>> + Clone) -> Vec<bool> {
        let places: Vec<&Place> = claims.clone().flat_map(Claim::places).collect();
        let stands = self.stand(&places);
        let mut at = 0;
        let holds = claims.map(|claim| {
            let count = claim.places().count();
            let own = stands.get(at..at + count).unwrap_or_default();
            at += count;
            claim.holds(own)
        });
        holds.collect()
    }

    fn stand(&self, places: &[&Place]) -> Vec<bool> {
        let mut out = vec![false; places.len()];
        // Each pattern once, with those that still look for it.
        let mut patterns: IndexMap<String, Vec<usize>> = IndexMap::new();
        for (at, place) in places.iter().enumerate() {
            // Empty patterns match everywhere and mean nothing.
            if !place.words.is_empty() {
                patterns.entry(place.words.to_ascii_lowercase()).or_default().push(at);
            }
        }
        // A short text is searched before a faster automaton would be built.
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
                    // Without escapes it stands in the arguments already.
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

/// A citation in a text: `[e:ID]`, or several ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Citation<'a> {
    /// Where it stands, brackets included.
    pub(crate) range: Range<usize>,
    /// The ids.
    pub(crate) ids: Vec<&'a str>,
}

/// The citations of a text.
pub(crate) fn citations(text: &str) -> Vec<Citation<'_>> {
    const LONGEST: usize = 400;
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(open) =
        memchr::memmem::find(text.as_bytes().get(at..).unwrap_or_default(), b"[e:")
    {
        let start = at + open;
        at = start + 3;
        let inner = text.as_bytes().get(at..).unwrap_or_default();
        let near = inner.get(..inner.len().min(LONGEST)).unwrap_or_default();
        let Some(len) = near.iter().position(|b| matches!(b, b']' | b'\n' | b'[')) else {
            continue;
        };
        if near.get(len) != Some(&b']') {
            continue;
        }
        let ids = text.get(at..at + len).unwrap_or_default().split([',', ';']);
        let ids =
            ids.map(|id| id.trim().trim_start_matches("e:").trim()).filter(|id| !id.is_empty());
        out.push(Citation { range: start..at + len + 1, ids: ids.collect() });
        at += len + 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use ctx_core::{Message, Role};

    use super::*;

    fn grounds(text: &str) -> Grounds {
        let message = Message::text(Role::User, text).into();
        let said = Said { id: "e1".into(), message, pinned: false };
        Grounds::of(&[said], Some("before [e:e0]"), &["dwell on the parser"])
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
