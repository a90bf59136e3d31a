//! The facts of everything that a summary stands for, over all rounds.

use ctx_core::Entry;
use ctx_facts::{CitedMessage, FactLedger};

use crate::History;
use crate::fnv1a::fnv1a;

/// A ledger that is kept in memory at the last entry it has read.
struct KeptLedger {
    ledger: FactLedger,
    /// The hash of the ids of all entries that it has read. Branches and copies of a session share
    /// entries, but not the entries before them.
    read: u64,
}

/// Reads the messages that the earlier summary stands for, and those before `cut`. The ledger of the
/// last compaction is continued, if it is still in memory and has read the same messages.
pub(super) fn read(history: &History, cut: usize) -> FactLedger {
    let hashes = hashes(history.originals.iter().map(|entry| &**entry));
    let earlier = history.originals.iter().zip(&hashes).enumerate();
    let known = earlier.rev().find_map(|(at, (entry, hash))| {
        let kept = entry.take_derived::<KeptLedger>().filter(|kept| kept.read == *hash)?;
        Some((at + 1, kept.ledger))
    });
    let (from, mut ledger) = known.unwrap_or_default();
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
    let items = history.items.iter().take(cut).map(|item| &*item.entry);
    let all = history.originals.iter().map(|entry| &**entry).chain(items);
    if let (Some(last), Some(read)) = (all.clone().last(), hashes(all).pop()) {
        last.set_derived(Box::new(KeptLedger { ledger, read }));
    }
}

/// Returns a hash of the ids up to each entry.
fn hashes<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<u64> {
    let next = |hash: &mut u64, entry: &Entry| {
        *hash = fnv1a(&[&hash.to_le_bytes(), entry.id().as_bytes()]);
        Some(*hash)
    };
    entries.scan(0, next).collect()
}

/// Reads a message. One that cannot be read is skipped.
fn add(ledger: &mut FactLedger, entry: &Entry, pinned: bool) {
    if let Ok(message) = entry.message() {
        ledger.read(&CitedMessage { id: entry.id().clone(), message, pinned });
    }
}
