//! The ledger of facts that messages state and that must not be lost.
//!
//! Sources of facts, highest weight first:
//!
//! 1. **The user's own words**: demands and refusals, decisions, requests, statements, and every path,
//!    URL, id, number with a unit, error code and name in code. Text that agents inject into a user's
//!    message (reminders, recalled context, wrappers of commands) does not count. What users say about
//!    themselves (a name, a place, a job, preferences) is a fact too; in a session without tools, which
//!    may be a chat of two people, this holds for both speakers.
//! 2. **The assistant's text**: decisions, open questions, and the same kinds of tokens; names in code
//!    only if quoted. Its thinking does not count: what mattered of it was said or done.
//! 3. **Arguments of tool calls**: files read and changed, folders, addresses; not the contents
//!    written.
//! 4. **Tool results**: only errors, at their root cause and without the whole stack, and the ids of
//!    what a command created (a commit, a pull request). A file that only a listing mentions is not a
//!    fact: a listing of 3,000 files is not 3,000 facts.
//!
//! Equal facts are merged; the citation is the last entry that mentions the fact. A statement that a
//! later one replaces or withdraws is not a fact, nor is a value that only it mentions.

mod ask;
mod classify;
mod failures;
mod names;
mod passages;
mod personal;
mod results;
mod speakers;
mod tokens;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use ctx_core::EntryId;
use ctx_text::{NormalForm, normal_form, spans};

use crate::{CitedMessage, RequiredFact};

pub use classify::{chooses, has_reason, stated_kind};
pub use speakers::own_words;

use ask::RecentAsks;
use failures::Failures;
use names::Names;
use passages::{Passage, Passages};
use speakers::{OpenCalls, Texts};
use tokens::Tokens;

/// The maximum number of tokens (paths, ids, names) in a ledger, the most important ones.
const MOST_TOKENS: usize = 4_000;

/// The facts of a session so far. Messages are read once, in order.
#[derive(Debug, Default)]
pub struct FactLedger {
    messages: usize,
    calls: OpenCalls,
    passages: Passages,
    tokens: Tokens,
    failures: Failures,
    names: Names,
    asks: RecentAsks,
}

/// What a ledger contains.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerFacts {
    /// The required facts, most important first.
    pub required: Vec<RequiredFact>,
    /// Statements that no longer hold: a later one replaced or withdrew them.
    pub superseded: Vec<SupersededFact>,
    /// Names in code, flags and hashes that may be needed next, most needed first. They are not
    /// required.
    pub names: Vec<String>,
}

/// A statement that no longer holds.
#[derive(Clone, Debug, PartialEq)]
pub struct SupersededFact {
    /// The statement.
    pub fact: RequiredFact,
    /// The statement that replaced or withdrew it.
    pub by: String,
    /// The entry of that statement.
    pub entry: EntryId,
}

impl FactLedger {
    /// Reads messages.
    #[must_use]
    pub fn of(messages: &[CitedMessage]) -> Self {
        let mut ledger = Self::default();
        messages.iter().for_each(|one| ledger.read(one));
        ledger
    }

    /// Returns the number of messages read.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Reads the next message.
    pub fn read(&mut self, one: &CitedMessage) {
        let at = self.messages;
        let texts = Texts::of(one);
        let speakers = self.calls.read(&one.message, &texts);
        self.passages.read(at, one, &speakers);
        self.tokens.read(at, one, &speakers);
        self.failures.read(at, one, &speakers);
        self.names.read(at, &one.message, &speakers);
        self.asks.read(at, one, &speakers);
        self.tokens.shrink(MOST_TOKENS);
        self.messages += 1;
    }

    /// Returns the facts. Deterministic.
    pub fn facts(&self) -> LedgerFacts {
        self.facts_before([])
    }

    /// Returns the facts without those that `later` messages replace or withdraw.
    pub fn facts_before(&self, later: impl IntoIterator<Item = CitedMessage>) -> LedgerFacts {
        let mut passages = Cow::Borrowed(&self.passages);
        for (one, at) in later.into_iter().zip(self.messages..) {
            let texts = Texts::of(&one);
            let speakers = OpenCalls::default().read(&one.message, &texts);
            if !speakers.user.text.is_empty() {
                passages.to_mut().read(at, &one, &speakers);
            }
        }
        let found = passages.facts(self.messages, self.calls.any, &self.asks.open());
        let mut required = found.required;
        required.extend(self.failures.facts(self.messages));
        required.extend(self.tokens.facts(self.messages, &stale(&found.gone)));
        required.sort_by(by_importance);
        let names = self.names.ranked(&found.gone);
        LedgerFacts { required, superseded: found.superseded, names }
    }
}

/// Returns the values in statements that no longer hold, each with the index of the message that
/// replaced it.
fn stale(gone: &[(Passage, usize)]) -> HashMap<NormalForm, usize> {
    let mut stale = HashMap::new();
    for (passage, by) in gone {
        for span in spans(&passage.text) {
            stale.insert(normal_form(span.kind, span.text), *by);
        }
    }
    stale
}

/// Returns the required facts of these messages, most important first. Deterministic.
///
/// ```
/// use ctx_core::{Message, Role};
/// use ctx_facts::{CitedMessage, FactKind, required_facts};
///
/// let said = CitedMessage {
///     id: "1".into(),
///     message: Message::text(Role::User, "Never touch src/main.rs.").into(),
///     pinned: false,
/// };
/// let facts = required_facts(&[said]);
/// assert_eq!(facts[0].text, "Never touch src/main.rs.");
/// assert!(facts.iter().any(|fact| fact.kind == FactKind::Path && fact.text == "src/main.rs"));
/// ```
#[must_use]
pub fn required_facts(said: &[CitedMessage]) -> Vec<RequiredFact> {
    FactLedger::of(said).facts().required
}

fn by_importance(a: &RequiredFact, b: &RequiredFact) -> Ordering {
    a.kind.cmp(&b.kind).then(b.weight.total_cmp(&a.weight)).then_with(|| a.text.cmp(&b.text))
}
