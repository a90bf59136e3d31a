//! What must be kept of messages that are about to be replaced by a summary.
//!
//! Where facts come from, the weightiest source first:
//!
//! 1. **The user's own words**: constraints and refusals, decisions, the ask that is still open, and
//!    every path, URL, id, number with a unit, error code and name in code. What agents inject into a
//!    user's message (reminders, recalled context, the wrappers of commands) is nobody's demand.
//!    What users say of themselves (a name, a place, what they do and like) is a fact as well; in a
//!    session without tools, where two people may be talking, that of both.
//! 2. **The assistant's text**: decisions, open questions, and the same kinds of tokens; names in
//!    code only where they are quoted. Its thinking is no source: what mattered of it was said or done.
//! 3. **Arguments of tool calls**: files read and changed, folders, addresses; not the contents
//!    written.
//! 4. **Tool results**: only errors, at their root cause and not the whole stack, and the ids of what
//!    a command made (a commit, a pull request). A listing of 3,000 files is not 3,000 facts: a file
//!    that nobody but a listing mentions is none.
//!
//! Equal things are one fact, whose citation is the entry that mentions it last. A constraint that was
//! taken back is none; a decision that was reversed ranks below what took its place.

mod ask;
mod failures;
mod lines;
mod passages;
mod personal;
mod results;
mod reversal;
mod tokens;
mod voices;

use std::cmp::Ordering;

use crate::{Fact, Said};

pub(crate) use reversal::{Words, outdates, takes_back};

use failures::Failures;
use passages::Passages;
use tokens::Tokens;
use voices::Voices;

/// What must be kept of these messages, most important first. Deterministic.
///
/// ```
/// use ctx_compaction::{FactKind, Said, facts};
/// use ctx_core::{Message, Role};
///
/// let said = Said {
///     id: "1".into(),
///     message: Message::text(Role::User, "Never touch src/main.rs.").into(),
///     pinned: false,
/// };
/// let facts = facts(&[said]);
/// assert_eq!(facts[0].text, "Never touch src/main.rs.");
/// assert!(facts.iter().any(|fact| fact.kind == FactKind::Path && fact.text == "src/main.rs"));
/// ```
#[must_use]
pub fn facts(said: &[Said]) -> Vec<Fact> {
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

fn by_importance(a: &Fact, b: &Fact) -> Ordering {
    a.kind.cmp(&b.kind).then(b.weight.total_cmp(&a.weight)).then_with(|| a.text.cmp(&b.text))
}
