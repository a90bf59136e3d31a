//! The identifier policy `anonymize`, kept whatever a model wrote.

use std::collections::HashMap;

use crate::FactKind;
use crate::text::tokens;

/// Gives every path, URL and id of a text a neutral name, the same one each time: `[path-1]`.
/// Citations stay: they name entries of the session, and nothing outside of it.
#[must_use]
pub(crate) fn anonymize(text: &str) -> String {
    let mut names: HashMap<&str, String> = HashMap::new();
    let mut counts: HashMap<&str, u32> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for token in tokens(text) {
        let kind = match token.kind {
            FactKind::Path => "path",
            FactKind::Url => "url",
            FactKind::Id if !token.text.starts_with("[e:") => "id",
            _ => continue,
        };
        if token.range.start < done {
            continue;
        }
        let name = names.entry(token.text).or_insert_with(|| {
            let count = counts.entry(kind).or_default();
            *count += 1;
            format!("[{kind}-{count}]")
        });
        out.push_str(&text[done..token.range.start]);
        out.push_str(name);
        done = token.range.end;
    }
    out.push_str(&text[done..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_get_names_and_citations_stay() {
        let text =
            "Edit src/main.rs as https://example.com/a says; src/main.rs is short [e:0000000a]";
        let expected = "Edit [path-1] as [url-1] says; [path-1] is short [e:0000000a]";
        assert_eq!(anonymize(text), expected);
    }
}
