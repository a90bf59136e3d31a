//! `/context`: what the next request would hold, and what of it the provider has in its cache.

use ctx_core::{AssembleRequest, EntryId, Manifest, ManifestEntry, NodeState, Result, Tokens};

use super::Turn;
use crate::runtime::NoticeKind;
use crate::session::rebuilt;

/// What went out with a request, as far as the provider's cache goes by it.
#[derive(Debug)]
pub(crate) struct Sent {
    /// System prompt and tools.
    fixed: Tokens,
    entries: Vec<(EntryId, NodeState, Tokens)>,
}

impl Sent {
    /// Of the request that a manifest describes.
    pub(crate) fn of(manifest: &Manifest) -> Self {
        let entries = live(manifest);
        let entries = entries.map(|entry| (entry.entry.clone(), entry.state, entry.tokens));
        Self { fixed: fixed(manifest), entries: entries.collect() }
    }

    /// How many entries at the beginning of another request are the same, of those that go out.
    fn same(&self, manifest: &Manifest) -> usize {
        if self.fixed != fixed(manifest) {
            return 0;
        }
        let is_same = |(sent, now): &(&(EntryId, NodeState, Tokens), &ManifestEntry)| {
            (&sent.0, sent.1, sent.2) == (&now.entry, now.state, now.tokens)
        };
        self.entries.iter().zip(live(manifest)).take_while(is_same).count()
    }
}

/// The entries that go out, in their order.
fn live(manifest: &Manifest) -> impl Iterator<Item = &ManifestEntry> {
    manifest.entries.iter().filter(|entry| entry.state != NodeState::Dropped)
}

fn fixed(manifest: &Manifest) -> Tokens {
    // A message of the system's own is among the entries as well: it is the same or it is not.
    let parts = manifest.components.iter().filter(|part| ["system", "tools"].contains(&part.name));
    parts.map(|part| part.tokens).sum()
}

impl Turn<'_> {
    /// What the next request would hold: assembled on a copy of which nothing is kept.
    pub(super) async fn would_be_sent(&mut self) -> Result<Manifest> {
        let inner = self.inner();
        let setting = self.session.setting()?;
        let (home, path) = (inner.home.clone(), self.session.path.clone());
        let view = rebuilt(home, path, setting.ledger.clone()).await?;
        if view.is_empty() {
            return Ok(view.manifest());
        }
        let turn = self.session.turn(&inner.settings.ids, setting);
        let engine = setting.engine.clone();
        let request = AssembleRequest { session_id: self.session.id.clone(), view, turn };
        let assembled = match engine.assemble(request).await {
            Ok(assembled) => assembled.into_view(),
            Err(error) => {
                let words = format!("the engine does not say what it would do: {error}");
                self.say(NoticeKind::Engine, words);
                let view = self.session.take_view(&inner.home).await?;
                let manifest = view.manifest();
                self.session.view = Some(view);
                return Ok(manifest);
            }
        };
        self.say_warnings();
        let mut view = assembled;
        view.finish()?;
        Ok(view.manifest())
    }

    /// The next request as a list, for a person.
    pub(super) async fn list_context(&mut self) -> Result<String> {
        let manifest = self.would_be_sent().await?;
        Ok(listed(&manifest, self.session.sent.as_ref()))
    }
}

/// A manifest as text, line by line, with what a change does to the provider's cache: what stands
/// before the first one is there already, all behind it is read anew.
fn listed(manifest: &Manifest, sent: Option<&Sent>) -> String {
    let same = sent.map(|sent| sent.same(manifest));
    let mut out = format!(
        "{} of {} tokens (window {}, {} kept free for the answer); {}\n",
        manifest.tokens,
        manifest.limit,
        manifest.window,
        manifest.reserve,
        match same {
            Some(same) =>
                format!("{} at the beginning are as in the last request", prefix(manifest, same)),
            None => "nothing was sent since the session was opened".to_owned(),
        },
    );
    let parts = manifest.components.iter().filter(|part| part.tokens.0 > 0);
    let parts: Vec<_> = parts.map(|part| format!("{} {}", part.name, part.tokens)).collect();
    out.push_str(&parts.join(", "));
    let mut at = 0;
    for entry in &manifest.entries {
        let state = entry.state.in_words();
        let cache = match same {
            _ if entry.state == NodeState::Dropped => "-",
            Some(same) if at < same => "cached",
            Some(same) if at == same => "first change",
            Some(_) => "after it",
            None => "new",
        };
        at += usize::from(entry.state != NodeState::Dropped);
        let (id, before, tokens) = (&entry.entry, entry.before, entry.tokens);
        out.push_str(&format!("\n{id}  {}  {state}  {before} -> {tokens}  {cache}", entry.role));
        if let (Some(layer), Some(reason)) = (&entry.layer, &entry.reason) {
            out.push_str(&format!("  {layer}: {reason}"));
        }
    }
    out
}

/// How much of the request its first so many entries are, with all that stands before them. Entries
/// are counted by rule, the whole by what the provider said: the share is what counts.
fn prefix(manifest: &Manifest, same: usize) -> Tokens {
    if same == 0 {
        return Tokens::ZERO;
    }
    let counted = |entries: usize| {
        let entries = live(manifest).take(entries).map(|entry| entry.tokens.get());
        fixed(manifest).get().saturating_add(entries.sum())
    };
    let whole = counted(usize::MAX).max(1);
    let share = u128::from(manifest.tokens.get()) * u128::from(counted(same)) / u128::from(whole);
    Tokens::saturating_from(u64::try_from(share).unwrap_or(u64::MAX)).min(manifest.tokens)
}
