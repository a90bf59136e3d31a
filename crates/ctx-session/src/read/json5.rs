//! JSON5 made JSON: whole, or as far as a torn text goes.

/// The deepest nesting that is handed to the JSON5 reader, which recurses.
const DEEPEST: usize = 100;

/// The depth at which the elements of `{messages: [..]}` end.
const ELEMENT_DEPTH: usize = 2;

/// The text as JSON, if it is JSON5.
pub(super) fn whole(text: &str) -> Option<String> {
    if Brackets::of(text).deepest > DEEPEST {
        return None;
    }
    to_json(text)
}

/// The text up to its last whole message as JSON, if that is JSON5. A text that strict JSON can
/// deal with is left to it.
pub(super) fn torn(text: &str) -> Option<String> {
    let inner = text.trim_start().trim_start_matches(['{', '[']).trim_start();
    if inner.starts_with(['"', '{', '[']) {
        return None;
    }
    let brackets = Brackets::of(text);
    if brackets.deepest > DEEPEST {
        return None;
    }
    let (end, open) = brackets.last_element?;
    let mut mended = text.get(..end)?.to_owned();
    mended.extend(open.iter().rev().map(|&bracket| if bracket == b'[' { ']' } else { '}' }));
    to_json(&mended)
}

fn to_json(text: &str) -> Option<String> {
    let value: serde_json::Value = json5::from_str(text).ok()?;
    serde_json::to_string(&value).ok()
}

/// What a scan over the brackets finds. Comments are not told apart: a bracket in one makes the
/// depth larger, never smaller than the reader will see, and at worst a torn text stays unread.
struct Brackets {
    deepest: usize,
    /// Where the last element ends, and which brackets are open there.
    last_element: Option<(usize, Vec<u8>)>,
}

impl Brackets {
    fn of(text: &str) -> Self {
        let mut found = Self { deepest: 0, last_element: None };
        let mut open: Vec<u8> = Vec::new();
        let mut quote = None;
        let mut escaped = false;
        for (at, byte) in text.bytes().enumerate() {
            match (quote, byte) {
                (Some(_), _) if escaped => escaped = false,
                (Some(_), b'\\') => escaped = true,
                (Some(mark), _) if mark == byte => quote = None,
                // An apostrophe in a comment begins no string: the line's end is the end of it.
                (Some(_), b'\n') => quote = None,
                (None, b'"' | b'\'') => quote = Some(byte),
                (_, b'[' | b'{') => open.push(byte),
                (None, b']' | b'}') => {
                    open.pop();
                    if open.len() == ELEMENT_DEPTH {
                        found.last_element = Some((at + 1, open.clone()));
                    }
                }
                _ => {}
            }
            found.deepest = found.deepest.max(open.len());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_never_underestimated() {
        assert_eq!(Brackets::of("{a:[1,{b:2}]}").deepest, 3);
        assert_eq!(Brackets::of("{a:'[[[['}").deepest, 5);
        assert!(whole(&"[".repeat(100_000)).is_none());
        assert!(torn(&"{a:[".repeat(100_000)).is_none());
    }

    #[test]
    fn a_torn_text_keeps_its_whole_elements() {
        let text = "{messages: [{role: 'user', content: 'a}'}, {role: 'user', con";
        assert_eq!(torn(text).unwrap(), r#"{"messages":[{"role":"user","content":"a}"}]}"#);
        assert!(torn("{messages: [{role: 'us").is_none());
    }
}
