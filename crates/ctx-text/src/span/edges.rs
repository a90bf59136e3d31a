//! Word boundaries and their surroundings.

use std::sync::LazyLock;

use regex::Regex;

use crate::pattern::pattern;

static ROUTE_GROUP: LazyLock<Regex> = LazyLock::new(|| pattern("route_group"));

/// Whether a character cannot be part of an identifier.
pub(super) fn ends_word(c: char) -> bool {
    c.is_whitespace()
        || if c.is_ascii() {
            r#""'`<>|{}()[],;=&?!"#.contains(c)
        } else {
            !c.is_alphanumeric() && !"€£¥￥µ％".contains(c)
        }
}

/// Returns the length of leading punctuation to strip from a word.
pub(super) fn leading(word: &str) -> usize {
    let mut at = 0;
    let bytes = word.as_bytes();
    while let Some(&b) = bytes.get(at) {
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        let passed = match b {
            b'*' => {
                let stars = bytes.iter().skip(at).take_while(|b| **b == b'*').count();
                !matches!(bytes.get(at + stars), Some(b'.' | b'/'))
            }
            b'-' => next != b'-' && !(at > 0 && bytes.get(at - 1) == Some(&b'-')),
            b'+' | b'^' | b':' | b'!' | b'%' => true,
            b'~' => next != b'/',
            b'.' => !(matches!(next, b'/' | b'.' | b'\\') || next.is_ascii_lowercase()),
            b'\\' => next != b'\\',
            _ => false,
        };
        if !passed {
            break;
        }
        at += 1;
    }
    at
}

/// Returns the length of `()` after a name, or of a group in a route: `/(auth)/`, `/[id]`.
pub(super) fn group_len(rest: &str, previous: char) -> Option<usize> {
    if rest.starts_with("()") && (previous.is_ascii_alphanumeric() || previous == '_') {
        return Some(2);
    }
    let group = ROUTE_GROUP.captures(rest).filter(|_| previous == '/')?;
    Some(group.get(1)?.len())
}

/// Whether text in backticks is a command or an expression, and not a sentence.
pub(super) fn is_command(text: &str) -> bool {
    let text = text.trim();
    text.len() <= 100
        && text.starts_with(|c: char| {
            c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '$' | '-' | '@' | '_')
        })
        && text.is_ascii()
        && text.split(' ').count() <= 12
        && !text.ends_with(['.', '?'])
}
