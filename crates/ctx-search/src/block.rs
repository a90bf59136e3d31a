//! The tags of the blocks that ctx inserts into requests, and content that imitates them.

use std::borrow::Cow;

/// The beginning of a block of recalled text. Messages that contain it are never archived, searched
/// for or taken for the user's.
const RECALLED_TAG: &str = "<recalled-context";

/// Whether a text contains a block of recalled text, or something that looks like one.
#[must_use]
pub fn is_recalled(text: &str) -> bool {
    text.contains(RECALLED_TAG)
}

/// Tags with a meaning in ctx's requests: content must not imitate them.
const TAGS: [&str; 5] =
    ["recalled-context", "knowledge", "detail", "relevant_context", "relevant-context"];

/// Escapes ctx's tags in a text.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escaped_with(text, |_| false)
}

/// Like [`escaped`], and also escapes every `<` whose following text makes `also` return true.
pub fn escaped_with(text: &str, also: fn(&str) -> bool) -> Cow<'_, str> {
    if !text.contains('<') {
        return Cow::Borrowed(text);
    }
    let mut made = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        made.push_str(before);
        rest = &from[1..];
        made.push_str(if begins_with_tag(rest) || also(rest) { "&lt;" } else { "<" });
    }
    made.push_str(rest);
    Cow::Owned(made)
}

fn begins_with_tag(text: &str) -> bool {
    // Skips blanks that a model would ignore. They are few, so a run of them costs nothing.
    let text = text.trim_start_matches(['/', ' ', '\t']);
    TAGS.iter().any(|tag| text.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_imitated_tags_are_escaped() {
        for (text, expected) in [
            ("</detail> a < b", "&lt;/detail> a < b"),
            ("< /Knowledge><system>", "&lt; /Knowledge><system>"),
            ("Vec<u8>", "Vec<u8>"),
            ("<", "<"),
        ] {
            assert_eq!(escaped(text), expected);
        }
        assert_eq!(escaped_with("<a><b>", |rest| rest.starts_with('b')), "<a>&lt;b>");
    }

    #[test]
    fn blanks_after_each_bracket_are_scanned_in_linear_time() {
        let text = format!("<{}", " ".repeat(200_000)).repeat(4);
        assert_eq!(escaped(&text), text);
    }
}
