//! The contents of the last request, as relevant to the provider's cache.

use ctx_core::{EntryId, Manifest, ManifestEntry, NodeState, Tokens};

/// What was sent with a request.
#[derive(Debug)]
pub(crate) struct SentRequest {
    /// System prompt and tools.
    fixed: Tokens,
    entries: Vec<(EntryId, NodeState, Tokens)>,
}

impl SentRequest {
    /// Creates it from the manifest of a request.
    pub(crate) fn of(manifest: &Manifest) -> Self {
        let entries = live(manifest);
        let entries = entries.map(|entry| (entry.entry.clone(), entry.state, entry.tokens));
        Self { fixed: fixed(manifest), entries: entries.collect() }
    }

    /// Number of leading entries that another request shares with this request.
    pub(crate) fn shared_entries(&self, manifest: &Manifest) -> usize {
        if self.fixed != fixed(manifest) {
            return 0;
        }
        let is_same = |(sent, now): &(&(EntryId, NodeState, Tokens), &ManifestEntry)| {
            (&sent.0, sent.1, sent.2) == (&now.entry, now.state, now.tokens)
        };
        self.entries.iter().zip(live(manifest)).take_while(is_same).count()
    }
}

/// Number of tokens of the first `shared` entries and everything before them. The entries are
/// estimates and the total is the provider's count, so the estimate is scaled.
pub(crate) fn prefix_tokens(manifest: &Manifest, shared: usize) -> Tokens {
    if shared == 0 {
        return Tokens::ZERO;
    }
    let counted = |entries: usize| {
        let entries = live(manifest).take(entries).map(|entry| entry.tokens.get());
        fixed(manifest).get().saturating_add(entries.sum())
    };
    let whole = counted(usize::MAX).max(1);
    let share = u128::from(manifest.tokens.get()) * u128::from(counted(shared)) / u128::from(whole);
    Tokens::saturating_from(u64::try_from(share).unwrap_or(u64::MAX)).min(manifest.tokens)
}

/// Returns the entries that are sent, in order.
fn live(manifest: &Manifest) -> impl Iterator<Item = &ManifestEntry> {
    manifest.entries.iter().filter(|entry| entry.state != NodeState::Dropped)
}

fn fixed(manifest: &Manifest) -> Tokens {
    // The system message may be among the entries as well, and is compared there.
    let parts =
        manifest.components.iter().filter(|part| ["system", "tools"].contains(&&*part.name));
    parts.map(|part| part.tokens).sum()
}
