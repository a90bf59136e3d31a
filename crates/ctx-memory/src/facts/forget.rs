//! Removes facts, from the disk as well.

use std::collections::{BTreeSet, HashMap, HashSet};

use ctx_core::{Error, ErrorKind, Result, Timestamp};

use super::{Fact, FactId, FactStore};
use ctx_text::without_case;

/// Selects facts to forget.
#[derive(Clone, Copy, Debug)]
pub enum FactSelector<'a> {
    /// Facts that have one of these entries among their sources.
    Entries {
        /// The session. Entry ids are unique only within a session.
        session: &'a str,
        /// The entries.
        ids: &'a BTreeSet<String>,
    },
    /// All facts of a session.
    Session(&'a str),
    /// Facts that contain this text, ignoring case and line breaks.
    Matching(&'a str),
    /// Facts by their ids.
    Facts(&'a BTreeSet<FactId>),
}

impl FactStore {
    /// Returns the facts that [`forget`](Self::forget) would remove.
    pub fn would_forget(&self, what: &[FactSelector<'_>]) -> Vec<&Fact> {
        let wanted = FactFilter::of(what);
        self.facts.iter().filter(|fact| wanted.takes(fact)).collect()
    }

    /// Removes facts, from the disk as well: the file is rewritten once, without these facts and
    /// their earlier versions. A fact that was superseded by a removed one becomes current again.
    /// Returns the removed facts.
    ///
    /// # Errors
    ///
    /// If a text to match is empty, or the file cannot be locked, read or written; nothing has
    /// changed then.
    pub fn forget(&mut self, what: &[FactSelector<'_>]) -> Result<Vec<Fact>> {
        let is_empty = |erase: &FactSelector<'_>| matches!(erase, FactSelector::Matching(text) if text.trim().is_empty());
        if what.iter().any(is_empty) {
            return Err(Error::new(ErrorKind::InvalidInput, "the text to forget is empty")
                .hint("give a text; to forget a whole session, give the session"));
        }
        if self.file.is_kept() && !self.file.path().exists() {
            self.refresh()?;
            return Ok(Vec::new());
        }
        let lock = self.file.lock()?;
        self.file.sweep(&lock);
        self.refresh()?;
        let wanted = FactFilter::of(what);
        let (gone, mut kept): (Vec<Fact>, Vec<Fact>) =
            self.facts.iter().cloned().partition(|fact| wanted.takes(fact));
        let erased: HashMap<FactId, &Fact> = gone.iter().map(|fact| (fact.id, fact)).collect();
        for fact in &mut kept {
            relink(fact, &erased, |id| self.get(id).map(|fact| fact.valid_from));
        }
        self.file.rewrite(&lock, kept.iter(), |line| wanted.keeps(line))?;
        self.clear();
        for fact in kept {
            self.put(fact);
        }
        Ok(gone)
    }
}

/// If the successor of a fact is erased, the fact is linked to the successor's successor, if any.
fn relink(
    fact: &mut Fact,
    erased: &HashMap<FactId, &Fact>,
    since: impl Fn(FactId) -> Option<Timestamp>,
) {
    let mut next = fact.superseded_by;
    // A chain longer than the number of its facts means a cycle in the file.
    for _ in 0..=erased.len() {
        let Some(gone) = next.and_then(|id| erased.get(&id)) else { break };
        next = gone.superseded_by;
    }
    if next == fact.superseded_by {
        return;
    }
    let next = next.filter(|id| !erased.contains_key(id));
    fact.superseded_by = next;
    fact.valid_to = next.and_then(since);
}

/// Everything to forget, matched against each fact.
#[derive(Default)]
struct FactFilter<'a> {
    sessions: HashSet<&'a str>,
    entries: HashMap<&'a str, Vec<&'a BTreeSet<String>>>,
    texts: Vec<String>,
    facts: Vec<&'a BTreeSet<FactId>>,
    /// A line that is not a fact must not contain these texts.
    names: Vec<String>,
}

impl<'a> FactFilter<'a> {
    fn of(what: &[FactSelector<'a>]) -> Self {
        let mut wanted = Self::default();
        for erase in what {
            match *erase {
                FactSelector::Entries { session, ids } => {
                    wanted.entries.entry(session).or_default().push(ids);
                    wanted.names.extend(ids.iter().map(|id| format!("\"{id}\"")));
                }
                FactSelector::Session(session) => {
                    wanted.sessions.insert(session);
                    wanted.names.push(format!("\"{session}\""));
                }
                FactSelector::Matching(text) => wanted.texts.push(without_case(text)),
                FactSelector::Facts(ids) => wanted.facts.push(ids),
            }
        }
        wanted.texts.retain(|text| !text.is_empty());
        wanted
    }

    fn takes(&self, fact: &Fact) -> bool {
        let is_named = || {
            let ids = self.entries.get(fact.session_id.as_str()).into_iter().flatten();
            fact.source_entry_ids.iter().any(|id| ids.clone().any(|ids| ids.contains(id)))
        };
        let holds = || {
            let told = [&fact.content, &fact.context].map(|told| without_case(told));
            self.texts.iter().any(|text| told.iter().any(|told| told.contains(text.as_str())))
        };
        self.sessions.contains(fact.session_id.as_str())
            || self.facts.iter().any(|ids| ids.contains(&fact.id))
            || is_named()
            || !self.texts.is_empty() && holds()
    }

    /// Whether a line that this version does not know as a fact is kept. Its meaning is unknown,
    /// and escapes may hide a text.
    fn keeps(&self, line: &str) -> bool {
        self.texts.is_empty() && !self.names.iter().any(|name| line.contains(name.as_str()))
    }
}
