//! Messages of another program's file that ctx was told to forget. The file still holds them; what
//! stands beside it says that they are not to be read.

use ctx_core::{ContentHash, EntryId};
use ctx_dialect::json::Object;
use serde::{Deserialize, Serialize};

use crate::entry::Audience;
use crate::load::Recipe;
use crate::transcript::Transcript;

/// The `customType` of the overlay's entry that lists them.
pub(crate) const FORGOTTEN_TYPE: &str = "ctx.forgotten";

/// A message that was forgotten. In a file that another program rewrites, the same id may come to
/// stand for something else: then that is not meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Forgotten {
    pub(crate) id: EntryId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hash: Option<ContentHash>,
}

/// What an entry of an overlay tells to forget.
pub(crate) fn forgotten_of(entry: &Object<'_>) -> Vec<Forgotten> {
    let data = entry.object("data");
    let listed = data.as_ref().and_then(|data| data.get("entries"));
    listed.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

impl Transcript {
    /// Hides what was forgotten: those entries hold no message any more, for whatever is made of the
    /// transcript.
    pub(crate) fn forget(&mut self, forgotten: &[Forgotten]) {
        let mut heads = Vec::new();
        for one in forgotten {
            let Some(index) = self.index_of(&one.id) else { continue };
            if one.hash.is_some_and(|hash| self.first_line_hash(index) != Some(hash)) {
                continue;
            }
            let head = self.entries.get(index).and_then(|entry| entry.head);
            heads.push(head.map_or(index, |head| head as usize));
        }
        heads.sort_unstable();
        for index in 0..self.entries.len() {
            let Some(entry) = self.entries.get_mut(index) else { continue };
            let head = entry.head.map_or(index, |head| head as usize);
            if heads.binary_search(&head).is_ok() && !entry.overlay {
                entry.recipe = Recipe::Nothing;
                entry.audience = Audience::Nobody;
            }
        }
    }
}
