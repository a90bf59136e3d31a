//! The identifier policy `anonymize`, enforced whatever a model writes.

use std::collections::HashMap;

use ctx_text::{SpanKind, spans};

/// The kinds of identifiers, as used in their names.
const KINDS: [&str; 3] = ["path", "url", "id"];

/// Neutral names for the identifiers of one compaction, such as `[path-1]`; one name per
/// identifier.
///
/// The identifiers behind the names in an earlier summary are unknown. Those names are kept, and
/// new numbers continue after them, so that no name changes its meaning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pseudonyms {
    names: HashMap<String, String>,
    counts: [u32; KINDS.len()],
}

impl Pseudonyms {
    /// Continues the numbering of the names in an earlier summary.
    pub(crate) fn after(previous: Option<&str>) -> Self {
        let mut names = Self::default();
        for (_, kind, number) in previous.into_iter().flat_map(given) {
            names.counts[kind] = names.counts[kind].max(number);
        }
        names
    }

    /// Replaces every path, URL and id in the text. Citations stay: they name entries of the
    /// session and nothing outside of it.
    pub(crate) fn apply(&mut self, text: &str) -> String {
        let known: Vec<_> = given(text).map(|(range, ..)| range).collect();
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for token in spans(text) {
            let kind = match token.kind {
                SpanKind::Path => 0,
                SpanKind::Url => 1,
                SpanKind::Id if !token.text.starts_with("[e:") => 2,
                _ => continue,
            };
            // Ranges are in order, and few texts contain any.
            let at = known.partition_point(|range| range.end <= token.range.start);
            let is_name = known.get(at).is_some_and(|range| range.start < token.range.end);
            if token.range.start < done || is_name {
                continue;
            }
            out.push_str(&text[done..token.range.start]);
            out.push_str(self.name(token.text, kind));
            done = token.range.end;
        }
        out.push_str(&text[done..]);
        out
    }

    fn name(&mut self, identifier: &str, kind: usize) -> &str {
        let counts = &mut self.counts;
        self.names.entry(identifier.to_owned()).or_insert_with(|| {
            counts[kind] = counts[kind].saturating_add(1);
            format!("[{}-{}]", KINDS[kind], counts[kind])
        })
    }
}

/// Returns the names in a text: range, kind, and number.
fn given(text: &str) -> impl Iterator<Item = (std::ops::Range<usize>, usize, u32)> {
    text.match_indices('[').filter_map(|(start, _)| {
        let inner = text[start + 1..].split(']').next()?;
        let (kind, number) = inner.split_once('-')?;
        let kind = KINDS.iter().position(|known| *known == kind)?;
        let end = start + 1 + inner.len() + 1;
        (end <= text.len()).then_some((start..end, kind, number.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_get_names_and_citations_stay() {
        let text = "Edit src/main.rs as https://example.com/a says; src/main.rs is short [e:0a]";
        let expected = "Edit [path-1] as [url-1] says; [path-1] is short [e:0a]";
        assert_eq!(Pseudonyms::default().apply(text), expected);
    }

    #[test]
    fn a_name_keeps_its_meaning_through_the_next_compaction() {
        let previous = "Never delete [path-2]. See [url-1].";
        let mut names = Pseudonyms::after(Some(previous));
        let text = format!("{previous} Edit src/beta.rs.");
        assert_eq!(names.apply(&text), format!("{previous} Edit [path-3]."));
        assert_eq!(names.apply(&names.clone().apply(&text)), names.apply(&text));
    }
}
