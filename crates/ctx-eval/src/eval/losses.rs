//! What was left out, and how much of what matters in it is still said.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::AddAssign;
use std::sync::Arc;

use ctx_core::{Action, ContextView, Edit, Entry, EntryId, Result, Role, Tokens};
use ctx_layers::compaction::{Grounds, Said, audit, facts, missing};

use super::{presets, text};

/// Losses are judged when they make up this share of the window, so that a policy which drops a
/// message before every request costs no audit for each.
const JUDGED_FROM: f64 = 0.1;

/// How many facts a passage had, and how many of them stand in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) facts: u64,
    pub(super) kept: u64,
}

impl Kept {
    /// The share that is kept, where there were any.
    pub(super) fn share(self) -> Option<f64> {
        (self.facts > 0).then(|| self.kept as f64 / self.facts as f64)
    }
}

impl AddAssign for Kept {
    fn add_assign(&mut self, other: Self) {
        self.facts += other.facts;
        self.kept += other.kept;
    }
}

/// How much of what must be kept of `said` stands in `text`.
pub(super) fn kept(said: &[Said], text: &str) -> Kept {
    let facts = facts(said);
    let missing = missing(text, &facts).len();
    Kept { facts: facts.len() as u64, kept: facts.len().saturating_sub(missing) as u64 }
}

/// What a summary says that stands nowhere in `said` nor in the summary before it.
pub(super) fn ungrounded(summary: &str, said: &[Said], previous: Option<&str>) -> Vec<String> {
    let ids: BTreeSet<&str> = said.iter().map(|said| &*said.id).collect();
    let is_cited = |text: &str| {
        let cited = text.strip_prefix("[e:").and_then(|text| text.strip_suffix(']'));
        cited.is_some_and(|cited| {
            previous.is_some_and(|previous| previous.contains(text)) || names(&ids, cited)
        })
    };
    let invented = audit(summary, &[], &Grounds::of(said, previous, &[])).ungrounded;
    let texts = invented.into_iter().map(|invented| invented.text);
    texts.filter(|text| !is_cited(text)).collect()
}

/// Whether a citation names one of the ids. Either may be the other's beginning: how much of a long
/// id is cited is for the summariser to say.
fn names(ids: &BTreeSet<&str>, cited: &str) -> bool {
    let begins =
        |id: Option<&&str>| id.is_some_and(|id| id.starts_with(cited) || cited.starts_with(id));
    !cited.is_empty()
        && (begins(ids.range(cited..).next()) || begins(ids.range(..cited).next_back()))
}

/// A recorded message, as the auditor takes it. One that cannot be read is passed over.
pub(super) fn said(entry: &Entry) -> Option<Said> {
    Some(Said { id: cited(entry.id()), message: entry.message().ok()?, pinned: false })
}

/// An id as summaries cite it: of a long one the beginning, so that a summary of the same size says
/// more.
pub(super) fn cited(id: &EntryId) -> EntryId {
    const WHOLE_CHARS: usize = 12;
    const CITED_CHARS: usize = 8;
    let short = id.get(..CITED_CHARS).filter(|_| id.len() > WHOLE_CHARS);
    short.map_or_else(|| id.clone(), EntryId::from)
}

/// Messages left out since the last judgement.
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

    /// A message of the transcript.
    pub(super) fn know(&mut self, entry: &Arc<Entry>) {
        self.known.insert(entry.id().clone(), entry.clone());
    }

    /// Takes note of what edits left out or shortened. Says whether history was cut: to bound one
    /// tool result when it comes is none.
    pub(super) fn note(&mut self, edits: &[Edit]) -> bool {
        let mut cut = false;
        for edit in edits {
            // An empty result that goes is gone all the same: a summary may cite it.
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

    /// Whether so much was lost that it is time to judge.
    pub(super) fn are_due(&self) -> bool {
        !self.pending.is_empty() && self.tokens >= self.least
    }

    /// Whether anything was lost since the last judgement.
    pub(super) fn any(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The messages lost since the last judgement, as recorded.
    pub(super) fn said(&self) -> Vec<Said> {
        self.pending.iter().filter_map(|id| said(self.known.get(id)?)).collect()
    }

    /// Looks the facts of what was lost up in the request, and begins anew.
    pub(super) fn judge(&mut self, view: &ContextView) -> Result<Kept> {
        let kept = kept(&self.said(), &text::of_request(view)?);
        self.pending.clear();
        self.listed.clear();
        self.tokens = Tokens::ZERO;
        Ok(kept)
    }
}

/// The recorded messages of a view, as the auditor takes them.
pub(super) fn said_in(view: &ContextView) -> Vec<Said> {
    let live = view
        .nodes()
        .iter()
        .filter(|node| node.is_live() && *node.role() != Role::CompactionSummary);
    live.filter_map(|node| said(node.entry())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_may_be_the_beginning_of_an_id_or_longer_than_what_is_known_of_it() {
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
