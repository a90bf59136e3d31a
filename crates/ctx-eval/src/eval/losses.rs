//! Tracks lost messages, and how many of their facts remain in the request.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ctx_core::{Action, ContextView, Edit, Entry, EntryId, Result, Role, Tokens};
use ctx_facts::{CitedMessage, required_facts};
use ctx_layers::compaction::{SourceIndex, audit, missing};

use super::share::Share;
use super::{presets, text};

/// Losses are judged when they reach this share of the window. Otherwise a policy that drops a
/// message before every request would need an audit each time.
const JUDGED_FROM: f64 = 0.1;

/// Returns how many required facts of `said` are in `text`.
pub(super) fn kept(said: &[CitedMessage], text: &str) -> Share {
    let facts = required_facts(said);
    let missing = missing(text, &facts).len();
    Share { of: facts.len() as u64, kept: facts.len().saturating_sub(missing) as u64 }
}

/// Returns the claims of a summary that are neither in `said` nor in the previous summary.
pub(super) fn ungrounded(
    summary: &str,
    said: &[CitedMessage],
    previous: Option<&str>,
) -> Vec<String> {
    let ids: BTreeSet<&str> = said.iter().map(|said| &*said.id).collect();
    let is_cited = |text: &str| {
        let cited = text.strip_prefix("[e:").and_then(|text| text.strip_suffix(']'));
        cited.is_some_and(|cited| {
            previous.is_some_and(|previous| previous.contains(text)) || names(&ids, cited)
        })
    };
    let invented = audit(summary, &[], &SourceIndex::of(said, previous, &[])).ungrounded;
    let texts = invented.into_iter().map(|invented| invented.text);
    texts.filter(|text| !is_cited(text)).collect()
}

/// Whether a citation names one of the ids. Either may be a prefix of the other, because the
/// summariser decides how much of a long id it cites.
fn names(ids: &BTreeSet<&str>, cited: &str) -> bool {
    let begins =
        |id: Option<&&str>| id.is_some_and(|id| id.starts_with(cited) || cited.starts_with(id));
    !cited.is_empty()
        && (begins(ids.range(cited..).next()) || begins(ids.range(..cited).next_back()))
}

/// Returns a recorded message for the auditor, or `None` if it cannot be read.
pub(super) fn cited_message(entry: &Entry) -> Option<CitedMessage> {
    Some(CitedMessage { id: cited(entry.id()), message: entry.message().ok()?, pinned: false })
}

/// Returns an id as summaries cite it. A long id is shortened to its beginning, which saves space
/// in the summary.
pub(super) fn cited(id: &EntryId) -> EntryId {
    const WHOLE_CHARS: usize = 12;
    const CITED_CHARS: usize = 8;
    let short = id.get(..CITED_CHARS).filter(|_| id.len() > WHOLE_CHARS);
    short.map_or_else(|| id.clone(), EntryId::from)
}

/// Messages lost since the last judgement.
#[derive(Debug)]
pub(super) struct Losses {
    known: HashMap<EntryId, Arc<Entry>>,
    pending: Vec<EntryId>,
    listed: HashSet<EntryId>,
    tokens: Tokens,
    least: Tokens,
}

impl Losses {
    pub(super) fn new(window: Tokens) -> Self {
        Self {
            known: HashMap::new(),
            pending: Vec::new(),
            listed: HashSet::new(),
            tokens: Tokens::ZERO,
            least: window.scale(JUDGED_FROM),
        }
    }

    /// Adds a message of the transcript.
    pub(super) fn add_message(&mut self, entry: &Arc<Entry>) {
        self.known.insert(entry.id().clone(), entry.clone());
    }

    /// Records messages that edits dropped or truncated. Returns whether history was cut; limiting
    /// a tool result on arrival is not a cut.
    pub(super) fn note(&mut self, edits: &[Edit]) -> bool {
        let mut cut = false;
        for edit in edits {
            // Even an empty result counts when it is dropped, because a summary may cite it.
            let lost = match edit.action {
                Action::Drop => true,
                Action::Replace => edit.after < edit.before,
                Action::Insert | Action::Pin | Action::Move => false,
            };
            if !lost || !self.known.contains_key(&edit.entry) {
                continue;
            }
            cut |= edit.action == Action::Drop || edit.layer == presets::LAYER;
            self.tokens += edit.before - edit.after;
            if self.listed.insert(edit.entry.clone()) {
                self.pending.push(edit.entry.clone());
            }
        }
        cut
    }

    /// Whether enough was lost to judge.
    pub(super) fn is_due(&self) -> bool {
        !self.pending.is_empty() && self.tokens >= self.least
    }

    /// Whether anything was lost since the last judgement.
    pub(super) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns the messages lost since the last judgement, as recorded.
    pub(super) fn messages(&self) -> Vec<CitedMessage> {
        self.pending.iter().filter_map(|id| cited_message(self.known.get(id)?)).collect()
    }

    /// Looks up the facts of lost messages in the request, and starts over.
    pub(super) fn judge(&mut self, view: &ContextView) -> Result<Share> {
        let kept = kept(&self.messages(), &text::of_request(view)?);
        self.pending.clear();
        self.listed.clear();
        self.tokens = Tokens::ZERO;
        Ok(kept)
    }
}

/// Returns the recorded messages of a view for the auditor.
pub(super) fn cited_messages_in(view: &ContextView) -> Vec<CitedMessage> {
    let live = view
        .nodes()
        .iter()
        .filter(|node| node.is_live() && *node.role() != Role::CompactionSummary);
    live.filter_map(|node| cited_message(node.entry())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_may_be_shorter_or_longer_than_the_known_id() {
        let ids = BTreeSet::from(["21b4c963", "0000007f", "ab28d430"]);
        for (cited, named) in [
            ("21b4c963", true),
            ("21b4", true),
            ("21b4c963-0dbf", true),
            ("0000007f", true),
            ("21b5", false),
            ("0000007e", false),
            ("", false),
            ("zz", false),
        ] {
            assert_eq!(names(&ids, cited), named, "{cited}");
        }
    }
}
