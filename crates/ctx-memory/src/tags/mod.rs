//! What a text is about, by rules: topics from words, entities from forms.

mod entities;
mod topics;

use crate::Metadata;

/// So much of a text is looked at; what it is about stands at its beginning as a rule.
const LOOKED_AT: usize = 64 << 10;

/// The topics and entities of a text, in time linear in it.
#[must_use]
pub fn of(text: &str) -> Metadata {
    let mut end = text.len().min(LOOKED_AT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text.get(..end).unwrap_or_default();
    Metadata { topics: topics::find(text), entities: entities::find(text) }
}
