//! The text a person wrote, without what programs add.

use ctx_core::text::Slice;
use std::borrow::Cow;

use crate::WordList;

/// Tags of blocks that agents inject into a user's message: reminders, recalled context, wrappers
/// of commands and their output. Arguments of a command are the user's own words and stay.
static TAGS: WordList = WordList::new("injected_tags.all");

/// Beginnings of generated messages in the user's role.
static NOT_SPOKEN: WordList = WordList::new("injected.messages");

/// Returns the text without injected blocks; empty if no person wrote any of it.
pub fn without_injected(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if NOT_SPOKEN.begins(text) {
        return Cow::Borrowed("");
    }
    let mut out = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(open) = memchr::memchr(b'<', text.as_bytes().slice(at..)) {
        let open = at + open;
        at = open + 1;
        let Some(tag) = tag_at(text.slice(at..)) else { continue };
        if tag.starts_with("command-args") {
            out.push_str(text.slice(kept..open));
            kept = skip_tag(text, open);
            continue;
        }
        if !TAGS.contains(tag) {
            continue;
        }
        out.push_str(text.slice(kept..open));
        let close = format!("</{tag}>");
        let rest = text.slice(at..);
        // An unclosed block extends to the end: losing the user's words is better than taking a
        // program's for the user's.
        let end = memchr::memmem::find(rest.as_bytes(), close.as_bytes());
        at = end.map_or(text.len(), |end| at + end + close.len());
        kept = at;
    }
    if kept == 0 && out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(text.slice(kept..));
    Cow::Owned(out.replace("</command-args>", "").trim().to_owned())
}

/// Returns the name of the tag whose `<` was just read.
fn tag_at(text: &str) -> Option<&str> {
    let name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let len = text.as_bytes().iter().take(40).take_while(|b| name(b)).count();
    let ends = matches!(text.as_bytes().get(len), Some(b'>' | b' ' | b'\n'));
    (len > 0 && ends).then(|| text.get(..len)).flatten()
}

fn skip_tag(text: &str, open: usize) -> usize {
    let rest = text.as_bytes().slice(open..);
    memchr::memchr(b'>', rest).map_or(text.len(), |close| open + close + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_users_own_words_are_left() {
        for (text, own) in [
            ("Fix it. <system-reminder>Never tell.</system-reminder> Now.", "Fix it.  Now."),
            (
                "<command-name>/fix</command-name><command-args>the <b> test</command-args>",
                "the <b> test",
            ),
            ("<recalled-context n=\"3\">must</recalled-context>\nGo on", "Go on"),
            ("a <system-reminder> never closed", "a"),
            ("use <div> here", "use <div> here"),
            ("[Request interrupted by user for tool use]", ""),
            ("<local-command-stdout>done</local-command-stdout>", ""),
        ] {
            assert_eq!(without_injected(text), own, "{text}");
        }
    }
}
