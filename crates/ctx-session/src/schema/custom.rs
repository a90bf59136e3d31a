//! The `custom` entries that ctx writes.

use ctx_core::{ContentHash, EntryId, Projection, RawJson, Result};
use ctx_dialect::json::Object;
use serde::{Deserialize, Serialize};

use super::edits::json;
use super::entry::NewEntry;

/// The `customType` of an undo, with the entry's id as `targetId` in its data.
pub(crate) const UNDO_TYPE: &str = "ctx.undo";

/// The `customType` of projections.
pub(crate) const PROJECTIONS_TYPE: &str = "ctx.projections";

/// The `customType` of the overlay entry that lists forgotten messages.
pub(crate) const FORGOTTEN_TYPE: &str = "ctx.forgotten";

/// The `customType` of a system prompt, which other formats store outside of the messages.
pub(crate) const SYSTEM_PROMPT_TYPE: &str = "ctx.system_prompt";

/// The `customType` of tool schemas, which other formats store outside of the messages.
pub(crate) const TOOLS_TYPE: &str = "ctx.tools";

/// A forgotten message. If another program rewrites the file, the same id may later name a
/// different message, which is then not hidden.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Forgotten {
    pub(crate) id: EntryId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hash: Option<ContentHash>,
}

/// Parses the forgotten messages of an overlay entry.
pub(crate) fn forgotten_of(entry: &Object<'_>) -> Vec<Forgotten> {
    let data = entry.object("data");
    let listed = data.as_ref().and_then(|data| data.get("entries"));
    listed.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// Returns the entry that saves `projections`, unless there are none.
pub(crate) fn projections_entry(projections: &[Projection]) -> Result<Option<NewEntry>> {
    if projections.is_empty() {
        return Ok(None);
    }
    let data = Some(RawJson::from_text(json(projections)?));
    Ok(Some(NewEntry::Custom { custom_type: PROJECTIONS_TYPE.into(), data }))
}
