//! A compaction as ctx writes it: pi's entry, and in a field of its own what ctx needs of it.

use ctx_core::{Compacted, ContentHash, EntryId, Projection, Tokens};
use ctx_dialect::json::Object;
use serde::{Deserialize, Serialize};

use crate::log::Body;

/// The field of a compaction that holds its [`Mark`].
pub(crate) const MARK: &str = "ctx";

/// What ctx needs of a compaction it stored. That the forms stand in the entry itself makes them
/// come and go with it, in one write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Mark {
    /// The content of the first kept message. In a file that another program rewrites, the same id
    /// may come to stand for something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_kept_hash: Option<ContentHash>,
    /// Messages before the first kept entry that stay all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) staying: Vec<EntryId>,
    /// Shorter forms of messages that are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) projections: Vec<Projection>,
    /// The file that holds what was before, where the session was rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) archived: Option<String>,
}

impl Mark {
    /// The mark of a compaction entry, if it has one that can be read.
    pub(crate) fn of(entry: &Object<'_>) -> Option<Self> {
        serde_json::from_str(entry.get(MARK)?.get()).ok()
    }
}

/// The entry of a compaction.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompactionBody<'a> {
    summary: &'a str,
    first_kept_entry_id: &'a EntryId,
    tokens_before: Tokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_after: Option<Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a serde_json::Value>,
    /// For pi: something other than the agent itself wrote it, and what files it names are not
    /// those of the session so far.
    from_hook: bool,
    ctx: Mark,
}

impl<'a> CompactionBody<'a> {
    pub(crate) fn new(compacted: &'a Compacted, first_kept_hash: Option<ContentHash>) -> Self {
        let projections = compacted.projections.clone();
        Self {
            summary: &compacted.summary,
            first_kept_entry_id: &compacted.first_kept_entry_id,
            tokens_before: compacted.tokens_before,
            tokens_after: compacted.tokens_after,
            details: compacted.details.as_ref(),
            from_hook: !compacted.details.as_ref().is_some_and(has_file_lists),
            ctx: Mark {
                first_kept_hash,
                staying: compacted.staying.clone(),
                projections,
                archived: None,
            },
        }
    }
}

/// Whether `details` holds the two lists with which pi goes on, if `fromHook` does not forbid it.
fn has_file_lists(details: &serde_json::Value) -> bool {
    let are_paths = |list: &Vec<serde_json::Value>| list.iter().all(serde_json::Value::is_string);
    let lists = ["readFiles", "modifiedFiles"].map(|key| details.get(key)?.as_array());
    lists.into_iter().all(|list| list.is_some_and(are_paths))
}

impl Body for CompactionBody<'_> {
    fn kind(&self) -> &'static str {
        "compaction"
    }
}
