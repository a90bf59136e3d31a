//! Extracts facts by rules: no model, no network.

use std::collections::HashSet;

use ctx_core::text::head;
use ctx_core::{Chars, Message, Role};
use ctx_facts::{CitedMessage, FactLedger, chosen_option};
use ctx_redact::Redactor;
use ctx_text::{marks, without_injected};

use super::SourceMessage;
use super::clauses::stating_clauses;
use super::lasting::lasting;
use crate::facts::{FactCandidate, FactKind};

/// The maximum number of facts per message.
const PER_MESSAGE: usize = 8;

/// The number of characters read from one message.
const MESSAGE_MAX: Chars = Chars(200_000);

/// Whether a text holds a secret.
pub(crate) fn is_secret(text: &str) -> bool {
    Redactor::builtin().redact(text).found > 0
}

/// Finds facts in what the user says, by rules: the passages that compaction keeps too, as far as
/// they hold beyond the current step. Precision comes before recall. What the agent says, tool
/// results and recalled text are not used, except for an offered option that the user chooses.
///
/// The messages are those of one session. Returns the facts in their order, without duplicates and
/// without secrets.
#[must_use]
pub fn find_facts(said: &[SourceMessage<'_>]) -> Vec<FactCandidate> {
    let mut found = Vec::new();
    let mut ledger = FactLedger::default();
    let mut offer = "";
    for (at, one) in said.iter().enumerate() {
        match one.role {
            Role::Assistant => offer = head(one.text, MESSAGE_MAX),
            Role::User | Role::Other(_) => {
                let text = without_injected(head(one.text, MESSAGE_MAX));
                // A quotation is not what the user says.
                let own = text.split_inclusive('\n').filter(|line| !line.starts_with('>'));
                let text: String = own.collect();
                if let Some(chosen) = chosen_option(offer, &text) {
                    found.push((at, FactKind::Decision, chosen, text.clone()));
                }
                let message = Message::text(Role::User, text).into();
                ledger.read(&CitedMessage { id: at.to_string().into(), message, pinned: false });
                offer = "";
            }
            _ => {}
        }
    }
    for (at, sentence) in passages(&ledger) {
        for clause in stating_clauses(&sentence) {
            let Some(kind) = lasting(clause) else { continue };
            let context = if sentence.len() > clause.len() + 12 { &*sentence } else { "" };
            found.push((at, kind, clause.to_owned(), context.to_owned()));
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    candidates(said, found)
}

fn candidates(
    said: &[SourceMessage<'_>],
    found: Vec<(usize, FactKind, String, String)>,
) -> Vec<FactCandidate> {
    let mut out = Vec::new();
    let (mut seen, mut counts) = (HashSet::new(), vec![0; said.len()]);
    for (at, kind, content, context) in found {
        let one = &said[at];
        if counts[at] == PER_MESSAGE || is_secret(&content) || is_secret(&context) {
            continue;
        }
        let candidate = FactCandidate {
            kind,
            content,
            context,
            timestamp: one.timestamp,
            source_entry_ids: vec![one.entry.to_string()],
            session_id: one.session.to_owned(),
        };
        let candidate = candidate.bounded().filter(|c| seen.insert(c.content.clone()));
        counts[at] += usize::from(candidate.is_some());
        out.extend(candidate);
    }
    out
}

/// Returns the passages of the user, each with the index of its message, in order. Passages that a
/// later one replaces are among them, as the store supersedes them; withdrawn ones are not.
fn passages(ledger: &FactLedger) -> Vec<(usize, String)> {
    let facts = ledger.facts();
    let replaced = facts.superseded.into_iter().filter(|old| !marks(&old.by).revokes);
    let all = facts.required.into_iter().chain(replaced.map(|old| old.fact));
    let mut all: Vec<_> = all.filter(|fact| fact.kind.is_passage() && fact.by_user).collect();
    all.sort_by_key(|fact| fact.order);
    all.into_iter()
        .filter_map(|fact| Some((fact.entry.to_string().parse().ok()?, fact.text)))
        .collect()
}
