//! Finds the messages that facts of memory were extracted from.

use ctx_core::Result;
use ctx_facts::CitedMessage;
use ctx_memory::facts::Fact;
use ctx_session::{Transcript, find_session};
use serde::Serialize;

use super::Lookup;
use super::cited::expand;
use super::provenance::{SourceMessage, folded};
use crate::sync::locked;

/// The shortest prefix of an id by which a fact is found.
const ID_PREFIX: usize = 8;

/// A fact of memory and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FactOrigin {
    /// The fact.
    pub fact: Fact,
    /// The facts that it superseded.
    pub supersedes: Vec<Fact>,
    /// The fact that superseded it.
    pub superseded_by: Option<Fact>,
    /// The messages it was extracted from, of those that are still in a known transcript.
    pub sources: Vec<SourceMessage>,
}

impl Lookup {
    /// Returns the facts with this id, or with a prefix of it of at least 8 characters, and those
    /// with these words: of the `given` session, by its name in memory, or of any session.
    ///
    /// # Errors
    ///
    /// If the sessions of the agent cannot be read.
    pub fn fact_origins(
        &self,
        text: &str,
        given: Option<(&str, &Transcript)>,
    ) -> Result<Vec<FactOrigin>> {
        let Some(facts) = &self.facts else { return Ok(Vec::new()) };
        let known: Vec<Fact> = locked(facts).facts().cloned().collect();
        let wanted = folded(text.trim()).0;
        let fits = |fact: &&Fact| {
            let is_id = wanted.len() >= ID_PREFIX && fact.id.to_string().starts_with(&wanted);
            let of_session = given.is_none_or(|(session, _)| fact.session_id == session);
            is_id || (of_session && folded(&fact.content).0 == wanted)
        };
        let origin = |fact: &Fact| {
            let supersedes = known.iter().filter(|one| one.superseded_by == Some(fact.id));
            let superseded_by = known.iter().find(|one| Some(one.id) == fact.superseded_by);
            Ok(FactOrigin {
                fact: fact.clone(),
                supersedes: supersedes.cloned().collect(),
                superseded_by: superseded_by.cloned(),
                sources: self.sources(fact, given)?,
            })
        };
        known.iter().filter(fits).map(origin).collect()
    }

    fn sources(
        &self,
        fact: &Fact,
        given: Option<(&str, &Transcript)>,
    ) -> Result<Vec<SourceMessage>> {
        let given = given.filter(|(session, _)| fact.session_id == *session);
        let stored = find_session(&self.home, &self.agent, &fact.session_id)?;
        let path = stored.and_then(|stored| stored.path);
        let path = path.or_else(|| self.transcript(&fact.session_id));
        let known = path.and_then(|path| ctx_session::open(&self.home, &path).ok());
        let transcript = given.map(|(_, transcript)| transcript).or(known.as_ref());
        let Some(transcript) = transcript else { return Ok(Vec::new()) };
        let words = [vec![fact.content.clone()], vec![fact.context.clone()]];
        let found = fact.source_entry_ids.iter().filter_map(|id| expand(transcript, &[id]).ok());
        let sources = found.flatten().filter_map(|entry| {
            let (id, message) = (entry.id().clone(), entry.message().ok()?);
            let said = CitedMessage { id, message, pinned: false };
            let mut source = SourceMessage::of(&said, &words);
            source.find_place(transcript);
            Some(source)
        });
        Ok(sources.collect())
    }
}
