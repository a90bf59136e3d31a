//! The facts of everything that a summary covers, over all rounds.

use ctx_core::Entry;
use ctx_extract::WorkingState;
use ctx_facts::{CitedMessage, FactLedger};

use crate::History;
use crate::fnv1a::fnv1a;

/// A ledger, which is kept in memory at the last entry it has read.
#[derive(Default)]
pub(super) struct SessionLedger {
    pub(super) facts: FactLedger,
    pub(super) state: WorkingState,
    /// The hash of the ids of all entries that it has read. Branches and copies of a session share
    /// entries, but not the entries before them.
    read: u64,
}

/// Reads the messages that the earlier summary covers, and those before `cut`. The ledger of the
/// last compaction is continued, if it is still in memory and has read the same messages.
pub(super) fn read(history: &History, cut: usize) -> SessionLedger {
    let hashes = history.originals.iter().scan(0, |hash, entry| {
        *hash = after(*hash, entry);
        Some(*hash)
    });
    let earlier: Vec<_> = history.originals.iter().zip(hashes).enumerate().collect();
    let known = earlier.into_iter().rev().find_map(|(at, (entry, hash))| {
        let kept = entry.take_derived::<SessionLedger>().filter(|kept| kept.read == hash)?;
        Some((at + 1, *kept))
    });
    let (from, mut ledger) = known.unwrap_or_default();
    for entry in history.originals.iter().skip(from) {
        ledger.add(entry, false);
    }
    for item in history.items.iter().take(cut) {
        ledger.add(&item.entry, item.pinned);
    }
    ledger
}

/// Keeps the ledger for the next compaction.
pub(super) fn keep(ledger: SessionLedger, history: &History, cut: usize) {
    let last = cut.checked_sub(1).and_then(|at| history.items.get(at));
    if let Some(item) = last {
        item.entry.set_derived(Box::new(ledger));
    }
}

/// Returns the hash of the ids up to an entry, from that up to the entry before it.
fn after(hash: u64, entry: &Entry) -> u64 {
    fnv1a(&[&hash.to_le_bytes(), entry.id().as_bytes()])
}

impl SessionLedger {
    /// Reads a message. One that cannot be read is skipped.
    fn add(&mut self, entry: &Entry, pinned: bool) {
        self.read = after(self.read, entry);
        if let Ok(message) = entry.message() {
            let said = CitedMessage { id: entry.id().clone(), message, pinned };
            self.facts.read(&said);
            self.state.read(&said);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ctx_core::{Counter, Message, Role, TokenLedger, Tokens};

    use super::*;

    fn history(originals: &[&Arc<Entry>]) -> History {
        History {
            items: Vec::new(),
            previous: None,
            originals: originals.iter().map(|&entry| entry.clone()).collect(),
            ledger: TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000)),
            counted: Tokens::ZERO,
            pointed: Tokens::ZERO,
        }
    }

    #[test]
    fn a_kept_ledger_is_not_continued_for_another_branch() {
        let entry =
            |id: &str, text: &str| Arc::new(Entry::in_memory(id, Message::text(Role::User, text)));
        let (own, other) = (entry("a", "Never use npm."), entry("b", "Always use pnpm."));
        let shared = entry("c", "The port is 8080.");
        let branch = history(&[&own, &shared]);
        let texts = |history: &History| -> Vec<String> {
            let facts = read(history, 0).facts.facts().required;
            facts.into_iter().map(|fact| fact.text).filter(|text| text.contains("use")).collect()
        };
        shared.set_derived(Box::new(read(&branch, 0)));
        assert_eq!(texts(&history(&[&other, &shared])), ["Always use pnpm."]);
        // The ledger of the same messages is continued: an empty one shows that nothing is read again.
        let kept = SessionLedger { read: read(&branch, 0).read, ..SessionLedger::default() };
        shared.set_derived(Box::new(kept));
        assert_eq!(texts(&branch), [] as [&str; 0]);
    }
}
