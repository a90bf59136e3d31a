//! `/context`: the contents of the next request, and which part the provider has cached.

use ctx_core::printable::thousands;
use ctx_core::{AssembleRequest, Manifest, NodeState, Result, Tokens};

use super::Turn;
use crate::host::NoticeKind;
use crate::session::{SentRequest, prefix_tokens, rebuild_view};

impl Turn<'_> {
    /// Returns the manifest of the next request, assembled on a copy that is discarded.
    pub(super) async fn preview(&mut self) -> Result<Manifest> {
        let pool = self.pool;
        let setup = self.session.setup()?;
        let (home, path) = (pool.home.clone(), self.session.path.clone());
        let view = rebuild_view(home, path, setup.ledger.clone()).await?;
        if view.is_empty() {
            return Ok(view.manifest());
        }
        let turn = self.session.turn(&pool.settings.ids);
        let engine = setup.engine.clone();
        let request = AssembleRequest { session_id: self.session.id.clone(), view, turn };
        let mut view = match engine.assemble(request).await {
            Ok(assembled) => assembled.into_view(),
            Err(error) => {
                let words = format!("the engine failed to preview the request: {error}");
                self.notify(NoticeKind::Engine, words);
                return self.manifest().await;
            }
        };
        self.notify_warnings();
        view.finish()?;
        Ok(view.manifest())
    }

    /// Describes the next request for the user, part by part and as a list.
    pub(super) async fn list_context(&mut self) -> Result<String> {
        let now = self.manifest().await?.tokens;
        let manifest = self.preview().await?;
        Ok(listed(now, &manifest, self.session.sent.as_ref()))
    }
}

/// Describes how full the window is, as in `/status` and `/context`.
pub(super) fn fullness(used: Tokens, manifest: &Manifest) -> String {
    let limit = manifest.limit.get();
    let share = 100 * used.get() / limit.max(1);
    format!("{} of {} tokens ({share} %)", thousands(used.get()), thousands(limit))
}

/// Formats a manifest: its parts, then its entries with the effect of changes on the provider's
/// cache. Entries before the first change are cached; all later ones are read again.
fn listed(now: Tokens, manifest: &Manifest, sent: Option<&SentRequest>) -> String {
    let same = sent.map(|sent| sent.shared_entries(manifest));
    let count = |tokens: Tokens| thousands(tokens.get());
    let cached = match same {
        Some(same) => {
            format!("{} of them unchanged since the last one", count(prefix_tokens(manifest, same)))
        }
        None => "no request was sent since the session was opened".to_owned(),
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

/// Formats the parts of a request: name, tokens, share of the limit, and a bar. The parts are
/// estimates and the total is the provider's count, so the parts are scaled to it.
fn parts(manifest: &Manifest) -> Vec<[String; 4]> {
    const CELLS: u64 = 20;
    let (whole, limit) = (manifest.tokens.get(), manifest.limit.get().max(1));
    let counted: u64 = manifest.components.iter().map(|part| part.tokens.get()).sum();
    let row = |name: &str, tokens: u64, cell: &str| {
        let cells = (tokens * CELLS).div_ceil(limit).min(CELLS) as usize;
        let share = format!("{} %", 100 * tokens / limit);
        [name.to_owned(), thousands(tokens), share, cell.repeat(cells)]
    };
    let (mut rows, mut so_far, mut shown) = (Vec::new(), 0, 0);
    for part in manifest.components.iter().filter(|part| part.tokens.0 > 0) {
        so_far += part.tokens.get();
        let until = u128::from(whole) * u128::from(so_far) / u128::from(counted.max(1));
        let until = u64::try_from(until).unwrap_or(u64::MAX);
        rows.push(row(&part.name, until - shown, "█"));
        shown = until;
    }
    rows.push(row("free", manifest.limit.get().saturating_sub(whole), "░"));
    rows
}

/// Aligns rows in columns, with numbers to the right.
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
