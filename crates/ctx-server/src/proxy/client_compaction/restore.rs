//! Puts saved items back in the place of a compaction item.

use std::borrow::Cow;
use std::collections::HashSet;

use ctx_core::ContentHash;
use ctx_dialect::openai_responses;
use ctx_dialect::wire::{Items, Protocol, compaction_content, developer_item, is_trigger};
use serde_json::value::RawValue;

use super::originals::{OriginalItems, PREFIX};
use super::saved::{RestoredItems, SavedItems};

/// Replaces items that cannot be restored. The client has kept its user's messages.
const LOST: &str = "[The earlier part of this conversation was compacted, and its content is not \
                    available any more. Ask the user if something in it is needed.]";

/// A body with its whole history.
#[derive(Debug)]
pub(in crate::proxy) struct WholeBody<'a> {
    pub(in crate::proxy) text: Cow<'a, str>,
    /// Why an item could not be restored.
    pub(in crate::proxy) lost: Option<String>,
    /// What a compaction of it saves; `None` if its history is not a list.
    pub(in crate::proxy) to_save: Option<SavedItems>,
}

/// The items of a history, restored so far.
#[derive(Default)]
struct History<'a> {
    items: Vec<Cow<'a, str>>,
    parent: Option<String>,
    /// The number of items of the parent.
    inherited: usize,
    is_changed: bool,
    lost: Option<String>,
}

impl<'a> WholeBody<'a> {
    /// Restores the items of a body. If it is compacted, the item that asks for that is
    /// removed.
    pub(in crate::proxy) fn of(
        originals: &OriginalItems,
        protocol: Protocol,
        body: &'a str,
        owner: &[u8],
        compacts: bool,
    ) -> Self {
        let Some(items) = Items::of(protocol, body) else {
            return Self { text: Cow::Borrowed(body), lost: None, to_save: None };
        };
        let mut history = History::default();
        for item in items.iter() {
            if compacts && is_trigger(item) {
                history.is_changed = true;
                continue;
            }
            match compaction_content(item).filter(|content| content.starts_with(PREFIX)) {
                Some(content) => match originals.restore(&content, owner) {
                    Ok(restored) => history.restore(&restored),
                    Err(error) => history.lose(error.to_string()),
                },
                None => history.items.push(Cow::Borrowed(item)),
            }
        }
        let new = history.items.get(history.inherited..).unwrap_or_default();
        let raw = |item: &Cow<'_, str>| RawValue::from_string(item.to_string()).ok();
        let to_save = compacts.then(|| SavedItems {
            protocol: Some(protocol),
            parent: history.parent.clone(),
            items: new.iter().filter_map(raw).collect(),
            ..SavedItems::default()
        });
        let text = match history.is_changed {
            true => Cow::Owned(items.replaced(&history.items)),
            false => Cow::Borrowed(body),
        };
        Self { text, lost: history.lost, to_save }
    }
}

impl History<'_> {
    /// Puts the items of a compaction at the beginning. Of the messages that the client has kept
    /// before the compaction item, those that are not among them follow.
    fn restore(&mut self, restored: &RestoredItems) {
        let hash = |item: &str| openai_responses::parse(item).ok().map(|m| ContentHash::of(&m));
        let known: HashSet<_> = restored.items.iter().filter_map(|item| hash(item.get())).collect();
        let kept = std::mem::take(&mut self.items);
        let is_new = |item: &Cow<'_, str>| hash(item).is_none_or(|hash| !known.contains(&hash));
        if restored.missing.is_some() {
            self.items.push(Cow::Owned(developer_item(LOST)));
        }
        self.items.extend(restored.items.iter().map(|item| Cow::Owned(item.get().to_owned())));
        (self.parent, self.inherited) = (Some(restored.id.clone()), self.items.len());
        self.items.extend(kept.into_iter().filter(is_new));
        self.is_changed = true;
    }

    /// Puts a note in the place of a compaction item.
    fn lose(&mut self, why: String) {
        self.items.push(Cow::Owned(developer_item(LOST)));
        (self.is_changed, self.lost) = (true, Some(why));
    }
}
