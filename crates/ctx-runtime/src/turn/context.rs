//! `/context`: what the next request would hold, and what of it the provider has in its cache.

use ctx_core::{AssembleRequest, EntryId, Manifest, ManifestEntry, NodeState, Result, Tokens};

use super::Turn;
use crate::runtime::NoticeKind;
use crate::session::rebuilt;
use crate::words::thousands;

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

    /// The next request, part by part and as a list, for a person.
    pub(super) async fn list_context(&mut self) -> Result<String> {
        let now = self.present().await?.tokens;
        let manifest = self.would_be_sent().await?;
        Ok(listed(now, &manifest, self.session.sent.as_ref()))
    }
}

/// How full the window is, in the words of `/status` and `/context`.
pub(super) fn fullness(used: Tokens, manifest: &Manifest) -> String {
    let limit = manifest.limit.get();
    let share = 100 * used.get() / limit.max(1);
    format!("{} of {} tokens ({share} %)", thousands(used.get()), thousands(limit))
}

/// A manifest as text: its parts, then its entries with what a change does to the provider's cache.
/// What stands before the first one is there already, all behind it is read anew.
fn listed(now: Tokens, manifest: &Manifest, sent: Option<&Sent>) -> String {
    let same = sent.map(|sent| sent.same(manifest));
    let count = |tokens: Tokens| thousands(tokens.get());
    let cached = match same {
        Some(same) => {
            format!("{} at the beginning are as in the last one", count(prefix(manifest, same)))
        }
        None => "nothing was sent since the session was opened".to_owned(),
    };
    let (window, reserve) = (count(manifest.window), count(manifest.reserve));
    let mut lines = vec![
        format!("{}; window {window}, {reserve} kept for the answer", fullness(now, manifest)),
        format!("next request: {} tokens; {cached}", count(manifest.tokens)),
        String::new(),
    ];
    lines.extend(aligned(&parts(manifest), &[1, 2]));
    let mut rows = Vec::with_capacity(manifest.entries.len());
    let mut at = 0;
    for entry in &manifest.entries {
        let cache = match same {
            _ if entry.state == NodeState::Dropped => "-",
            Some(same) if at < same => "cached",
            Some(same) if at == same => "first change",
            Some(_) => "after it",
            None => "new",
        };
        at += usize::from(entry.state != NodeState::Dropped);
        let why = entry.layer.as_ref().zip(entry.reason.as_ref());
        rows.push([
            entry.entry.to_string(),
            entry.role.to_string(),
            count(entry.before),
            count(entry.tokens),
            entry.state.in_words().to_owned(),
            cache.to_owned(),
            why.map(|(layer, reason)| format!("{layer}: {reason}")).unwrap_or_default(),
        ]);
    }
    if !rows.is_empty() {
        let header = ["entry", "role", "tokens", "sent", "form", "cache", ""].map(str::to_owned);
        rows.insert(0, header);
        lines.push(String::new());
        lines.extend(aligned(&rows, &[2, 3]));
    }
    lines.join("\n")
}

/// The parts of a request: name, tokens, share of the limit, and that as a bar. Parts are counted by
/// rule and the whole by what the provider said, so each is given in proportion.
fn parts(manifest: &Manifest) -> Vec<[String; 4]> {
    const CELLS: u64 = 20;
    let (whole, limit) = (manifest.tokens.get(), manifest.limit.get().max(1));
    let counted: u64 = manifest.components.iter().map(|part| part.tokens.get()).sum();
    let row = |name: &str, tokens: u64, cell: &str| {
        let cells = (tokens * CELLS).div_ceil(limit).min(CELLS) as usize;
        let share = format!("{} %", 100 * tokens / limit);
        [name.to_owned(), thousands(tokens), share, cell.repeat(cells)]
    };
    let (mut rows, mut so_far, mut told) = (Vec::new(), 0, 0);
    for part in manifest.components.iter().filter(|part| part.tokens.0 > 0) {
        so_far += part.tokens.get();
        let until = u128::from(whole) * u128::from(so_far) / u128::from(counted.max(1));
        let until = u64::try_from(until).unwrap_or(u64::MAX);
        rows.push(row(part.name, until - told, "█"));
        told = until;
    }
    rows.push(row("free", manifest.limit.get().saturating_sub(whole), "░"));
    rows
}

/// Rows as lines, column under column; numbers to the right.
fn aligned<const N: usize>(rows: &[[String; N]], numbers: &[usize]) -> Vec<String> {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).enumerate();
        let cells = cells.map(|(at, (cell, width))| match numbers.contains(&at) {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
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
