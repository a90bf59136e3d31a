//! What must be kept of messages that are about to be replaced by a summary.

use std::collections::HashSet;

use ctx_core::Role;

use crate::text::{marks, sentences, tokens};
use crate::{Fact, FactKind, Said};

/// What must be kept of these messages, most important first. Deterministic.
#[must_use]
pub fn facts(said: &[Said]) -> Vec<Fact> {
    let mut out: Vec<Fact> = Vec::new();
    let mut seen = HashSet::new();
    for one in said.iter().rev() {
        let text = one.message.plain_text();
        let mut add = |kind, text: &str| {
            if seen.insert((kind, text.to_owned())) {
                out.push(Fact { kind, text: text.to_owned(), entry: one.id.clone(), weight: 0.5 });
            }
        };
        for token in tokens(&text) {
            add(token.kind, token.text);
        }
        for sentence in sentences(&text) {
            if one.pinned {
                add(FactKind::Pinned, sentence);
            } else if one.message.role == Role::User && marks(sentence).constraint {
                add(FactKind::Constraint, sentence);
            }
        }
    }
    out.sort_by_key(|fact| fact.kind);
    out
}
