//! One retrieval call, to test whether the agent could have found a handle in original messages.
//!
//! The lexical search of ctx's memory searches passages of the messages before the cut. The query
//! has the words of the message that used the handle, without the needed handles.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use ctx_core::{Role, Timestamp};
use ctx_search::{Query, SearchIndex, SearchSettings, Segment, SegmentId};

use super::handles::HandleIds;
use super::needed::Needed;
use super::session::{Item, Speaker};

/// The size of a passage, in characters: 400 tokens.
const PASSAGE_CHARS: usize = 1_600;

/// The number of passages that a call returns: 4,000 tokens.
const PASSAGES: usize = 10;

/// The size of a query, in characters.
const QUERY_CHARS: usize = 400;

/// Returns the needed handles that one call finds.
pub(super) fn found(
    history: &[Arc<Item>],
    after: &[Arc<Item>],
    needed: &[Needed],
    ids: &HandleIds,
) -> HashSet<u32> {
    let (index, passages) = indexed(history);
    let mut found = HashSet::new();
    for used_by in needed.iter().map(|one| one.used_by).collect::<BTreeSet<_>>() {
        let Some(item) = after.get(used_by) else { continue };
        let wanted = needed.iter().filter(|one| one.used_by == used_by);
        let wanted: Vec<_> =
            wanted.filter_map(|one| Some((one.handle, ids.get(one.handle)?))).collect();
        let mut words = item.text.clone();
        for (_, handle) in &wanted {
            words = words.replace(&handle.text, " ");
        }
        let text = ctx_core::text::head_chars(&words, QUERY_CHARS);
        let query = Query { text, session: None, limit: PASSAGES, now: Timestamp(0) };
        let hits = index.search(&query, None);
        let hits =
            hits.iter().filter_map(|hit| passages.get(usize::try_from(hit.id.0.as_u128()).ok()?));
        let answer = hits.cloned().collect::<Vec<String>>().join("\n");
        found.extend(wanted.iter().filter(|(_, handle)| handle.is_in(&answer)).map(|(id, _)| *id));
    }
    found
}

fn indexed(history: &[Arc<Item>]) -> (SearchIndex, Vec<String>) {
    let mut index = SearchIndex::new(SearchSettings::default());
    let mut passages = Vec::new();
    for item in history {
        let role = match item.speaker {
            Speaker::User | Speaker::Summary => Role::User,
            Speaker::Agent => Role::Assistant,
            Speaker::Tool => Role::ToolResult,
        };
        let mut left = item.text.as_str();
        while !left.trim().is_empty() {
            let passage = ctx_core::text::head_chars(left, PASSAGE_CHARS);
            left = &left[passage.len()..];
            index.add(&segment(passages.len(), &role, passage));
            passages.push(passage.to_owned());
        }
    }
    (index, passages)
}

fn segment(nth: usize, role: &Role, content: &str) -> Segment {
    Segment {
        id: SegmentId(uuid::Uuid::from_u128(nth as u128)),
        agent_id: String::new(),
        session_id: String::new(),
        timestamp: Timestamp(0),
        archived_at: None,
        role: role.clone(),
        name: None,
        content: content.to_owned(),
        tokens: 0,
        metadata: ctx_search::Metadata::default(),
        entry_id: None,
    }
}
