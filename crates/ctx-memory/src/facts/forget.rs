//! Taking facts away, from the disk as well.

use std::collections::HashMap;

use ctx_core::{Error, ErrorKind, Result, Timestamp};

use super::{Fact, FactId, FactStore};

/// What is to be forgotten.
#[derive(Clone, Copy, Debug)]
pub enum Erase<'a> {
    /// What was drawn from these entries of a session, alone or together with others.
    Entries {
        /// The session. Ids of entries are unique within it alone.
        session: &'a str,
        /// The entries.
        ids: &'a [&'a str],
    },
    /// All that was said in a session.
    Session(&'a str),
    /// What holds this text, whatever the case of its letters.
    Matching(&'a str),
}

impl FactStore {
    /// The facts that [`forget`](Self::forget) would take away.
    pub fn would_forget(&self, what: Erase<'_>) -> Vec<&Fact> {
        let wanted = wanted(what);
        self.facts.iter().filter(|fact| wanted(fact)).collect()
    }

    /// Takes facts away, from the disk as well: the file is written anew without them and without
    /// what they said before they were last told. What an erased fact had superseded holds again,
    /// as if that had never been said. Returns the facts that are gone.
    ///
    /// # Errors
    ///
    /// Where the text to match is empty, or the file cannot be locked, read or written; nothing has
    /// changed then.
    pub fn forget(&mut self, what: Erase<'_>) -> Result<Vec<Fact>> {
        if matches!(what, Erase::Matching(text) if text.trim().is_empty()) {
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
        let wanted = wanted(what);
        let (gone, mut kept): (Vec<Fact>, Vec<Fact>) =
            self.facts.iter().cloned().partition(|fact| wanted(fact));
        let erased: HashMap<FactId, &Fact> = gone.iter().map(|fact| (fact.id, fact)).collect();
        for fact in &mut kept {
            relink(fact, &erased, |id| self.get(id).map(|fact| fact.valid_from));
        }
        let (needles, all): (Vec<String>, bool) = match what {
            Erase::Entries { ids, .. } => {
                (ids.iter().map(|id| format!("\"{id}\"")).collect(), false)
            }
            Erase::Session(session) => (vec![format!("\"{session}\"")], false),
            // What a line of another version says is unknown, and escapes may hide it.
            Erase::Matching(_) => (Vec::new(), true),
        };
        let keep = |line: &str| !all && !needles.iter().any(|needle| line.contains(needle));
        self.file.rewrite(&lock, kept.iter(), keep)?;
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

fn wanted<'a>(what: Erase<'a>) -> impl Fn(&Fact) -> bool + 'a {
    let lower = match what {
        Erase::Matching(text) => text.trim().to_lowercase(),
        _ => String::new(),
    };
    move |fact| match what {
        Erase::Entries { session, ids } => {
            fact.session_id == session
                && fact.source_entry_ids.iter().any(|id| ids.contains(&id.as_str()))
        }
        Erase::Session(session) => fact.session_id == session,
        Erase::Matching(_) => {
            !lower.is_empty()
                && (fact.content.to_lowercase().contains(&lower)
                    || fact.context.to_lowercase().contains(&lower))
        }
    }
}
