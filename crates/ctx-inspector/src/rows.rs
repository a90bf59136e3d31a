//! Selects and sums rows; shared by all sources.

use std::collections::BTreeMap;

use ctx_core::text::head_chars;
use ctx_core::{Action, Edit, Error, ErrorKind, Tokens};
use ctx_trace::{EntryRecord, Preview};
use serde_json::Value;

use super::shape::{EntriesQuery, EntryRow, LayerEdits, RequestPage};
use super::text::contains;

/// The default and the maximum number of rows.
const ROWS: usize = 200;
const MOST_ROWS: usize = 1_000;

/// Maximum number of reasons per layer and action.
const REASONS: usize = 5;

/// Returns the start and the number of the requested rows.
pub(super) fn page(from: usize, count: Option<usize>, all: usize) -> (usize, usize) {
    let from = from.min(all);
    (from, count.unwrap_or(ROWS).min(MOST_ROWS).min(all - from))
}

impl RequestPage {
    /// Adds the entries of the request that match a query, and counts all of them. `changed` tells
    /// whether the request edited an entry, `contains` searches its text, `begins` returns its
    /// beginning.
    pub(super) fn with_entries(
        mut self,
        all: &[EntryRecord],
        query: &EntriesQuery,
        changed: impl Fn(&EntryRecord) -> bool,
        contains: impl Fn(&EntryRecord, &str) -> bool,
        begins: impl Fn(&EntryRecord) -> Preview,
    ) -> Self {
        let filter = EntryFilter::of(query);
        let fits = |entry: &&EntryRecord| {
            filter.entry(entry, changed(entry), |words| contains(entry, words))
        };
        let found: Vec<&EntryRecord> = all.iter().filter(fits).collect();
        let named = |named: &String| found.iter().position(|entry| *entry.entry == **named);
        self.place = query.entry.as_ref().and_then(named);
        self.matching = found.len();
        let (from, count) = page(query.from, query.count, found.len());
        self.from = from;
        let shown = found.iter().skip(from).take(count).map(|&entry| EntryRow {
            changed: changed(entry),
            entry: EntryRecord { begins: begins(entry), ..entry.clone() },
        });
        self.entries = shown.collect();
        for entry in all {
            *self.states.entry(entry.state.name()).or_default() += 1;
            *self.states.entry("changed").or_default() += usize::from(changed(entry));
            if let Some(layer) = &entry.layer {
                *self.layers.entry(layer.to_string()).or_default() += 1;
            }
        }
        self
    }
}

/// A filter of entries.
struct EntryFilter<'a> {
    state: Option<&'a str>,
    layer: Option<&'a str>,
    words: Option<String>,
}

impl<'a> EntryFilter<'a> {
    fn of(query: &'a EntriesQuery) -> Self {
        let given = |text: &'a Option<String>| text.as_deref().filter(|text| !text.is_empty());
        Self {
            state: given(&query.state),
            layer: given(&query.layer),
            words: given(&query.q).map(str::to_lowercase),
        }
    }

    /// Whether an entry matches. `message_contains` searches its text.
    fn entry(
        &self,
        entry: &EntryRecord,
        changed: bool,
        message_contains: impl FnOnce(&str) -> bool,
    ) -> bool {
        let state = match self.state {
            None => true,
            Some("changed") => changed,
            Some(state) => entry.state.name() == state,
        };
        state
            && self.layer.is_none_or(|layer| entry.layer.as_deref() == Some(layer))
            && self.words.as_deref().is_none_or(|words| {
                let reason = entry.reason.as_deref().unwrap_or_default();
                let texts = [&*entry.entry, &entry.role, reason];
                texts.iter().any(|text| contains(text, words)) || message_contains(words)
            })
    }
}

/// Returns the error for an entry that a request does not have.
pub(super) fn unknown_entry(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, "unknown entry")
        .with("entry", head_chars(id, 80))
        .hint("the request lists its entries")
}

/// Returns the error for a compaction that a session does not have.
pub(super) fn unknown_compaction(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, "unknown compaction")
        .with("compaction", head_chars(id, 80))
        .hint("the session lists its compactions")
}

/// Returns the receipt. `None` if this version cannot read the details: the page relies on their
/// fields.
pub(super) fn receipt_of(details: &Value) -> Option<Value> {
    let read = ctx_layers::compaction::Details::from_json(details)?;
    serde_json::to_value(read.receipt).ok()
}

/// Sums edits by layer and action.
pub(super) fn by_layer(edits: &[Edit]) -> Vec<LayerEdits> {
    let mut sums: BTreeMap<(&str, Action), LayerEdits> = BTreeMap::new();
    for edit in edits {
        let sum = sums.entry((&edit.layer, edit.action)).or_insert_with(|| LayerEdits {
            layer: edit.layer.to_string(),
            action: edit.action.name().to_owned(),
            ..LayerEdits::default()
        });
        sum.add(edit.before, edit.after, &edit.reason);
    }
    sums.into_values().collect()
}

impl LayerEdits {
    /// Adds an edit.
    pub(super) fn add(&mut self, before: Tokens, after: Tokens, reason: &str) {
        self.edits += 1;
        self.before += before.get();
        self.after += after.get();
        let is_known = reason.is_empty() || self.reasons.iter().any(|known| known == reason);
        if !is_known && self.reasons.len() < REASONS {
            self.reasons.push(reason.to_owned());
        }
    }
}
