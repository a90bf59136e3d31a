//! Finds the messages that facts of memory were extracted from.

use std::path::Path;
use std::sync::Arc;

use ctx_core::{Entry, Result};
use ctx_facts::CitedMessage;
use ctx_memory::facts::Fact;
use ctx_session::Transcript;
use serde::Serialize;

use super::provenance::{SourceMessage, folded};
use super::{Lookup, find_session};
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
    /// The messages it was extracted from.
    pub sources: Vec<SourceMessage>,
    /// The source entries that no known transcript contains.
    pub missing: Vec<String>,
}

impl Lookup {
    /// Returns the facts with this id, or with a prefix of it of at least 8 characters; else those
    /// with these words in `session`, a name in memory, or without a name in any session.
    ///
    /// # Errors
    ///
    /// If the sessions of the agent cannot be read.
    pub fn fact_origins(&self, text: &str, session: Option<&str>) -> Result<Vec<FactOrigin>> {
        let Some(facts) = &self.facts else { return Ok(Vec::new()) };
        let known: Vec<Fact> = locked(facts).facts().cloned().collect();
        let with = |fits: &dyn Fn(&Fact) -> bool| -> Vec<Fact> {
            known.iter().filter(|fact| fits(fact)).cloned().collect()
        };
        let of_session = |fact: &Fact| session.is_none_or(|session| fact.session_id == session);
        let wanted = folded(text.trim()).0;
        let is_id = |fact: &Fact| fact.id.to_string().starts_with(&wanted);
        let mut found = if wanted.len() < ID_PREFIX { Vec::new() } else { with(&is_id) };
        if found.is_empty() {
            found = with(&|fact| of_session(fact) && folded(&fact.content).0 == wanted);
        }
        let origin = |fact: Fact| {
            let (sources, missing) = self.sources(&fact)?;
            let superseded_by =
                known.iter().find(|one| Some(one.id) == fact.superseded_by).cloned();
            let supersedes = with(&|one| one.superseded_by == Some(fact.id));
            Ok(FactOrigin { fact, supersedes, superseded_by, sources, missing })
        };
        found.into_iter().map(origin).collect()
    }

    /// Returns the messages that a fact was extracted from, and the entries that were not found.
    fn sources(&self, fact: &Fact) -> Result<(Vec<SourceMessage>, Vec<String>)> {
        let stored = find_session(&self.home, &self.agent, &fact.session_id)?;
        let path = stored.and_then(|stored| stored.path);
        let path = path.or_else(|| self.transcript(&fact.session_id));
        let open = |path: &Path| ctx_session::open(&self.home, path).ok();
        let transcript = path.as_deref().and_then(open);
        let all = transcript.as_ref().map(Transcript::all_messages).unwrap_or_default();
        let (mut sources, mut missing) = (Vec::new(), Vec::new());
        let words = [vec![fact.content.clone()], vec![fact.context.clone()]];
        for id in &fact.source_entry_ids {
            let entry = all.iter().find(|entry| **entry.id() == **id);
            let message = entry.and_then(|entry: &Arc<Entry>| {
                Some(CitedMessage {
                    id: entry.id().clone(),
                    message: entry.message().ok()?,
                    pinned: false,
                })
            });
            match (message, &transcript) {
                (Some(message), Some(transcript)) => {
                    let mut source = SourceMessage::of(&message, &words);
                    source.find_place(transcript);
                    sources.push(source);
                }
                _ => missing.push(id.clone()),
            }
        }
        Ok((sources, missing))
    }
}
