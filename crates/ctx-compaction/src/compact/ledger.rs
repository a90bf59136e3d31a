//! The facts of everything that a summary stands for, over all rounds.

use ctx_core::Entry;
use ctx_facts::{CitedMessage, FactLedger};

use crate::History;

/// Reads the messages that the earlier summary stands for, and those before `cut`. The ledger of the
/// last compaction is continued, if it is still in memory.
pub(super) fn read(history: &History, cut: usize) -> FactLedger {
    let earlier = history.originals.iter();
    let known = earlier
        .enumerate()
        .rev()
        .find_map(|(at, entry)| Some((at, *entry.take_derived::<FactLedger>()?)));
    let (from, mut ledger) = known.map_or_else(Default::default, |(at, ledger)| (at + 1, ledger));
    for entry in history.originals.iter().skip(from) {
        add(&mut ledger, entry, false);
    }
    for item in history.items.iter().take(cut) {
        add(&mut ledger, &item.entry, item.pinned);
    }
    ledger
}

/// Keeps the ledger for the next compaction.
pub(super) fn keep(ledger: FactLedger, history: &History, cut: usize) {
    let last = cut.checked_sub(1).and_then(|at| history.items.get(at));
    if let Some(item) = last {
        item.entry.set_derived(Box::new(ledger));
    }
}

/// Reads a message. One that cannot be read is skipped.
fn add(ledger: &mut FactLedger, entry: &Entry, pinned: bool) {
    if let Ok(message) = entry.message() {
        ledger.read(&CitedMessage { id: entry.id().clone(), message, pinned });
    }
}
