//! What a text is about, by rules: topics from words, entities from forms.

mod entities;
mod topics;

use ctx_core::text::head_bytes;

use crate::Metadata;

/// So much of a text is looked at; what it is about stands at its beginning as a rule.
const LOOKED_AT: usize = 64 << 10;

/// The topics and entities of a text, in time linear in it.
#[must_use]
pub fn of(text: &str) -> Metadata {
    let text = head_bytes(text, LOOKED_AT);
    Metadata { topics: topics::find(text), entities: entities::find(text) }
}
