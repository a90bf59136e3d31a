//! Finds the required facts of messages that a summary is about to replace.
//!
//! Sources of facts, highest weight first:
//!
//! 1. **The user's own words**: constraints and refusals, decisions, the open request, and every
//!    path, URL, id, number with a unit, error code and name in code. Text that agents inject into
//!    a user's message (reminders, recalled context, wrappers of commands) does not count. What
//!    users say about themselves (a name, a place, a job, preferences) is a fact too; in a session
//!    without tools, which may be a chat of two people, this holds for both speakers.
//! 2. **The assistant's text**: decisions, open questions, and the same kinds of tokens; names in
//!    code only if quoted. Its thinking does not count: what mattered of it was said or done.
//! 3. **Arguments of tool calls**: files read and changed, folders, addresses; not the contents
//!    written.
//! 4. **Tool results**: only errors, at their root cause and without the whole stack, and the ids
//!    of what a command created (a commit, a pull request). A file that only a listing mentions is
//!    not a fact: a listing of 3,000 files is not 3,000 facts.
//!
//! Equal facts are merged; the citation is the last entry that mentions the fact. A withdrawn
//! constraint is not a fact; a reversed decision ranks below its replacement.

mod ask;
mod failures;
mod passages;
mod personal;
mod results;
mod reversal;
mod tokens;
mod voices;

use std::cmp::Ordering;

use crate::{CitedMessage, RequiredFact};

pub use reversal::{Words, outdates, takes_back};

use failures::Failures;
use passages::Passages;
use tokens::Tokens;
use voices::Voices;

/// Returns the required facts of these messages, most important first. Deterministic.
///
/// ```
/// use ctx_facts::{CitedMessage, FactKind, required_facts};
/// use ctx_core::{Message, Role};
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
    let voices = Voices::of(said);
    let mut passages = Passages::new(voices.has_calls());
    let mut tokens = Tokens::new(said.len());
    let mut failures = Failures::default();
    for (at, one) in said.iter().enumerate() {
        let voice = voices.of_message(at);
        passages.read(at, one, &voice);
        tokens.read(at, one, &voice);
        failures.read(at, one, &voice);
    }
    passages.ask(ask::open_ask(said, &voices));
    let mut facts = passages.into_facts(said);
    facts.extend(failures.into_facts(said));
    facts.extend(tokens.into_facts(said));
    facts.sort_by(by_importance);
    facts
}

fn by_importance(a: &RequiredFact, b: &RequiredFact) -> Ordering {
    a.kind.cmp(&b.kind).then(b.weight.total_cmp(&a.weight)).then_with(|| a.text.cmp(&b.text))
}
