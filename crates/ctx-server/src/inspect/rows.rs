//! Choosing and counting rows, the same for every source.

use std::collections::BTreeMap;

use ctx_core::{Action, Edit, Tokens};
use serde_json::Value;

use super::shape::{EntriesAsked, LayerEdits};
use super::text::holds;
use crate::trace::EntryRecord;

/// So many rows are given unless said otherwise, and at most.
const ROWS: usize = 200;
const MOST_ROWS: usize = 1_000;

/// So many reasons of a layer are told.
const REASONS: usize = 5;

/// Where the rows that were asked for begin, and how many they are.
pub(super) fn page(from: usize, count: Option<usize>, all: usize) -> (usize, usize) {
    let from = from.min(all);
    (from, count.unwrap_or(ROWS).min(MOST_ROWS).min(all - from))
}

/// Where the entry stands that was named.
pub(super) fn place(asked: &EntriesAsked, found: &[&EntryRecord]) -> Option<usize> {
    let named = asked.entry.as_deref()?;
    found.iter().position(|entry| &*entry.entry == named)
}

/// Which entries were asked for.
pub(super) struct Fits<'a> {
    state: Option<&'a str>,
    layer: Option<&'a str>,
    words: Option<String>,
}

impl<'a> Fits<'a> {
    pub(super) fn of(asked: &'a EntriesAsked) -> Self {
        let given = |text: &'a Option<String>| text.as_deref().filter(|text| !text.is_empty());
        Self {
            state: given(&asked.state),
            layer: given(&asked.layer),
            words: given(&asked.q).map(str::to_lowercase),
        }
    }

    /// Whether an entry is one of them; `says` tells whether its text holds these words.
    pub(super) fn entry(
        &self,
        entry: &EntryRecord,
        changed: bool,
        says: impl FnOnce(&str) -> bool,
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
                let told = [&*entry.entry, &entry.role, reason];
                told.iter().any(|text| holds(text, words)) || says(words)
            })
    }
}

/// The receipt, where the details hold one that this version reads: the page relies on its shape.
pub(super) fn receipt_of(details: &Value) -> Option<Value> {
    let read = ctx_layers::compaction::Details::from_json(details)?;
    serde_json::to_value(read.receipt).ok()
}

/// What was done, by layer and action.
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
    /// Counts an edit in.
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
