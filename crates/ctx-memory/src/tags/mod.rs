//! Tags a text by rules: topics by its words, entities (files, URLs and others) by their form.

mod topics;

use ctx_core::text::head_bytes;
use ctx_search::Metadata;
use ctx_text::{SpanKind, spans};

/// The number of bytes examined; a text's topic is usually clear from its beginning.
const LOOKED_AT: usize = 64 << 10;

/// The maximum number of entities, and the length of one.
const MOST: usize = 32;
const LONGEST: usize = 120;

/// Returns the topics and entities of a text, in linear time.
pub(crate) fn of(text: &str) -> Metadata {
    let text = head_bytes(text, LOOKED_AT);
    Metadata { topics: topics::find(text), entities: entities(text), call: None }
}

/// Returns the files, URLs, ids, error codes and names in code, each once.
fn entities(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for span in spans(text).into_iter().filter(|span| span.kind != SpanKind::Number) {
        let is_new = span.text.len() <= LONGEST && !found.iter().any(|known| known == span.text);
        if is_new && found.len() < MOST {
            found.push(span.text.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_found_by_their_form_limited_and_listed_once() {
        let text = "See https://example.com/a?b=1, src/lib.rs: parse_line() gave E0425 in 30 s. \
                    HttpClient, in src/支付.rs, is in src/lib.rs.";
        let found = entities(text);
        for entity in ["https://example.com/a?b=1", "src/lib.rs", "parse_line", "E0425"] {
            assert_eq!(found.iter().filter(|one| *one == entity).count(), 1, "{found:?}");
        }
        assert!(!found.iter().any(|one| one.contains("30")), "{found:?}");
        let many: String = (0..1_000).map(|n| format!("file_{n}.rs ")).collect();
        assert_eq!(entities(&many).len(), MOST);
        assert_eq!(entities("just words"), [] as [&str; 0]);
    }
}
