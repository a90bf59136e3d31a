//! A compaction as ctx writes it: pi's entry with an additional field for ctx.

use ctx_core::{Compacted, ContentHash, EntryId, Projection, RawJson, Result};
use ctx_dialect::json::Object;
use serde::{Deserialize, Serialize};

use super::edits::json;
use super::entry::NewEntry;

/// The field of a compaction that contains its [`CompactionExtra`].
pub(crate) const CTX_FIELD: &str = "ctx";

/// The data that ctx stores with a compaction. Projections are part of the entry, so that one write
/// adds or removes both.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CompactionExtra {
    /// The content hash of the first kept message. In a file that another program rewrites, the
    /// same id may later name a different message.
    pub(crate) first_kept_hash: Option<ContentHash>,
    /// Messages before the first kept entry that the compaction left in place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) staying: Vec<EntryId>,
    /// Projections of kept messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) projections: Vec<Projection>,
    /// The archived file with the earlier history, if the session was rewritten.
    pub(crate) archived: Option<String>,
}

impl CompactionExtra {
    /// Parses the field `ctx` of a compaction entry; `None` if it is missing or unreadable.
    pub(crate) fn of(entry: &Object<'_>) -> Option<Self> {
        serde_json::from_str(entry.get(CTX_FIELD)?.get()).ok()
    }
}

/// Returns the entry of a compaction.
pub(crate) fn compaction_entry(
    compacted: &Compacted,
    first_kept_hash: Option<ContentHash>,
) -> Result<NewEntry> {
    let extra = CompactionExtra {
        first_kept_hash,
        staying: compacted.staying.clone(),
        projections: compacted.projections.clone(),
        archived: None,
    };
    let details = compacted.details.as_ref();
    Ok(NewEntry::Compaction {
        summary: compacted.summary.clone(),
        first_kept_entry_id: compacted.first_kept_entry_id.clone(),
        tokens_before: compacted.tokens_before.0.into(),
        tokens_after: compacted.tokens_after.map(|tokens| tokens.0.into()),
        details: details.map(|details| RawJson::from_text(details.to_string())),
        // Tells pi that another program wrote the entry, so that pi does not continue its file
        // lists.
        from_hook: Some(!details.is_some_and(has_file_lists)),
        ctx: Some(RawJson::from_text(json(&extra)?)),
    })
}

/// Whether `details` contains both file lists, which pi continues unless `fromHook` is set.
fn has_file_lists(details: &serde_json::Value) -> bool {
    let are_paths = |list: &Vec<serde_json::Value>| list.iter().all(serde_json::Value::is_string);
    let lists = ["readFiles", "modifiedFiles"].map(|key| details.get(key)?.as_array());
    lists.into_iter().all(|list| list.is_some_and(are_paths))
}
