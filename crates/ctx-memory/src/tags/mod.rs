//! Tags a text by rules: topics by its words, entities (files, URLs and others) by their form.

mod entities;
mod topics;

use ctx_core::text::head_bytes;

use ctx_search::Metadata;

/// The number of bytes examined; a text's topic is usually clear from its beginning.
const LOOKED_AT: usize = 64 << 10;

/// Returns the topics and entities of a text, in linear time.
pub(crate) fn of(text: &str) -> Metadata {
    let text = head_bytes(text, LOOKED_AT);
    Metadata { topics: topics::find(text), entities: entities::find(text), call: None }
}
