//! Taking facts away, from the disk as well.

use std::collections::{BTreeSet, HashMap, HashSet};

use ctx_core::{Error, ErrorKind, Result, Timestamp};

use super::{Fact, FactId, FactStore};
use crate::text::without_case;

/// What is to be forgotten.
#[derive(Clone, Copy, Debug)]
pub enum Erase<'a> {
    /// What was drawn from these entries of a session, alone or together with others.
    Entries {
        /// The session. Ids of entries are unique within it alone.
        session: &'a str,
        /// The entries.
        ids: &'a BTreeSet<String>,
    },
    /// All that was said in a session.
    Session(&'a str),
    /// What holds this text, whatever the case of its letters and however it is broken into lines.
    Matching(&'a str),
}

impl FactStore {
    /// The facts that [`forget`](Self::forget) would take away.
    pub fn would_forget(&self, what: &[Erase<'_>]) -> Vec<&Fact> {
        let wanted = Wanted::of(what);
        self.facts.iter().filter(|fact| wanted.takes(fact)).collect()
    }

    /// Takes facts away, from the disk as well: the file is written anew, once, without them and
    /// without what they said before they were last told. What an erased fact had superseded holds
    /// again, as if that had never been said. Returns the facts that are gone.
    ///
    /// # Errors
    ///
    /// Where a text to match is empty, or the file cannot be locked, read or written; nothing has
    /// changed then.
    pub fn forget(&mut self, what: &[Erase<'_>]) -> Result<Vec<Fact>> {
        let is_empty =
            |erase: &Erase<'_>| matches!(erase, Erase::Matching(text) if text.trim().is_empty());
        if what.iter().any(is_empty) {
            return Err(Error::new(ErrorKind::InvalidInput, "the text to forget is empty")
                .hint("name the text; to forget all of a session, name the session"));
        }
        if self.file.is_kept() && !self.file.path().exists() {
            self.refresh()?;
            return Ok(Vec::new());
        }
        let lock = self.file.lock()?;
        if self.file.is_kept() {
            self.file.sweep(&lock);
        }
        self.refresh()?;
        let wanted = Wanted::of(what);
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

/// A fact whose successor is erased is succeeded by that one's successor, if any is left.
fn relink(
    fact: &mut Fact,
    erased: &HashMap<FactId, &Fact>,
    since: impl Fn(FactId) -> Option<Timestamp>,
) {
    let mut next = fact.superseded_by;
    // A chain is no longer than the facts in it; a file that says otherwise holds a circle.
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

/// All that is to be forgotten, to be asked of each fact.
#[derive(Default)]
struct Wanted<'a> {
    sessions: HashSet<&'a str>,
    entries: HashMap<&'a str, Vec<&'a BTreeSet<String>>>,
    texts: Vec<String>,
    /// What a line that is no fact may not hold.
    names: Vec<String>,
}

impl<'a> Wanted<'a> {
    fn of(what: &[Erase<'a>]) -> Self {
        let mut wanted = Self::default();
        for erase in what {
            match *erase {
                Erase::Entries { session, ids } => {
                    wanted.entries.entry(session).or_default().push(ids);
                    wanted.names.extend(ids.iter().map(|id| format!("\"{id}\"")));
                }
                Erase::Session(session) => {
                    wanted.sessions.insert(session);
                    wanted.names.push(format!("\"{session}\""));
                }
                Erase::Matching(text) => wanted.texts.push(without_case(text)),
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
            || is_named()
            || !self.texts.is_empty() && holds()
    }

    /// Whether a line stays that is no fact this version knows. What it says is unknown, and escapes
    /// may hide a text.
    fn keeps(&self, line: &str) -> bool {
        self.texts.is_empty() && !self.names.iter().any(|name| line.contains(name.as_str()))
    }
}
