//! Extracts facts by rules: no model, no network.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use ctx_core::text::head;
use ctx_core::{Chars, Message, Result, Role};
use ctx_facts::{CitedMessage, FactLedger, chosen_option};
use ctx_text::{marks, without_injected};

use super::clauses::stating_clauses;
use super::lasting::lasting;
use super::{Extraction, Extractor, SourceMessage};
use crate::facts::{Fact, FactCandidate, FactKind};

/// Whether a text holds a secret.
pub type IsSecret = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The maximum number of facts per message.
const PER_MESSAGE: usize = 8;

/// The number of characters read from one message.
const MESSAGE_MAX: Chars = Chars(200_000);

/// A longer clause does not state a single fact.
const CLAUSE_MAX: usize = 400;

/// Finds facts in what the user says, by rules: the passages that compaction keeps too, as far as
/// they hold beyond the current step. Precision comes before recall. What the agent says, tool
/// results and recalled text are no source, except for an offered option that the user chooses.
#[derive(Clone)]
pub struct Rules {
    is_secret: IsSecret,
}

ctx_core::partial_debug!(Rules, it);

impl Rules {
    /// Rules that skip texts for which `is_secret` returns true.
    #[must_use]
    pub(crate) fn new(is_secret: IsSecret) -> Self {
        Self { is_secret }
    }

    /// Returns the facts in these messages, session by session, in order, without duplicates.
    #[must_use]
    pub fn find(&self, said: &[SourceMessage<'_>]) -> Vec<FactCandidate> {
        let mut sessions: Vec<&str> = Vec::new();
        for one in said {
            if !sessions.contains(&one.session) {
                sessions.push(one.session);
            }
        }
        let of = |session: &str| -> Vec<FactCandidate> {
            let own: Vec<_> = said.iter().filter(|one| one.session == session).collect();
            self.in_session(&own)
        };
        sessions.into_iter().flat_map(of).collect()
    }

    fn in_session(&self, said: &[&SourceMessage<'_>]) -> Vec<FactCandidate> {
        let mut found: Vec<(usize, FactKind, String, String)> = Vec::new();
        let mut ledger = FactLedger::default();
        let mut offer = "";
        for (at, one) in said.iter().enumerate() {
            match one.role {
                Role::Assistant => offer = head(one.text, MESSAGE_MAX),
                Role::User | Role::Other(_) => {
                    let text = without_injected(head(one.text, MESSAGE_MAX));
                    if let Some(chosen) = chosen_option(offer, &text) {
                        found.push((at, FactKind::Decision, chosen, text.to_string()));
                    }
                    let message = Message::text(Role::User, text.as_ref()).into();
                    let id = at.to_string().into();
                    ledger.read(&CitedMessage { id, message, pinned: false });
                    offer = "";
                }
                _ => {}
            }
        }
        for (at, sentence) in passages(&ledger) {
            let clauses = stating_clauses(&sentence).into_iter().filter(|c| c.len() <= CLAUSE_MAX);
            for clause in clauses {
                let Some(kind) = lasting(clause) else { continue };
                let more = sentence.len() > clause.len() + 12;
                let context = if more { sentence.clone() } else { String::new() };
                found.push((at, kind, clause.to_owned(), context));
            }
        }
        found.sort_by_key(|(at, ..)| *at);
        self.candidates(said, found)
    }

    fn candidates(
        &self,
        said: &[&SourceMessage<'_>],
        found: Vec<(usize, FactKind, String, String)>,
    ) -> Vec<FactCandidate> {
        let mut out = Vec::new();
        let (mut seen, mut counts) = (HashSet::new(), vec![0; said.len()]);
        for (at, kind, content, context) in found {
            let (Some(one), Some(count)) = (said.get(at), counts.get_mut(at)) else { continue };
            if *count == PER_MESSAGE || (self.is_secret)(&content) || (self.is_secret)(&context) {
                continue;
            }
            let candidate = FactCandidate {
                kind,
                content,
                context,
                timestamp: one.timestamp,
                source_entry_ids: vec![one.entry.to_owned()],
                session_id: one.session.to_owned(),
            };
            let candidate = candidate.bounded().filter(|c| seen.insert(c.content.clone()));
            *count += usize::from(candidate.is_some());
            out.extend(candidate);
        }
        out
    }
}

impl Default for Rules {
    /// Rules that skip what the [built-in redactor](ctx_redact::Redactor) would redact.
    fn default() -> Self {
        Self::new(Arc::new(|text| ctx_redact::Redactor::builtin().redact(text).found > 0))
    }
}

#[async_trait]
impl Extractor for Rules {
    async fn extract(&self, said: &[SourceMessage<'_>], _known: &[Fact]) -> Result<Extraction> {
        Ok(Extraction { candidates: self.find(said), ..Extraction::default() })
    }
}

/// Returns the passages of the user, each with the index of its message, in order. Passages that a
/// later one replaces are among them, as the store supersedes them; withdrawn ones are not.
fn passages(ledger: &FactLedger) -> Vec<(usize, String)> {
    let facts = ledger.facts();
    let replaced = facts.superseded.into_iter().filter(|old| !marks(&old.by).revokes);
    let all = facts.required.into_iter().chain(replaced.map(|old| old.fact));
    let mut all: Vec<_> = all.filter(|fact| fact.kind.is_passage() && fact.by_user).collect();
    all.sort_by_key(|fact| fact.order);
    let place =
        |fact: ctx_facts::RequiredFact| Some((fact.entry.to_string().parse().ok()?, fact.text));
    all.into_iter().filter_map(place).collect()
}
