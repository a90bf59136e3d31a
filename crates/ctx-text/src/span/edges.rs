//! Word boundaries and their surroundings.

/// Whether a character cannot be part of an identifier.
pub(super) fn ends_word(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '\''
                | '`'
                | '<'
                | '>'
                | '|'
                | '{'
                | '}'
                | '('
                | ')'
                | '['
                | ']'
                | ','
                | ';'
                | '='
                | '&'
                | '?'
                | '!'
        )
        || (!c.is_ascii()
            && !c.is_alphanumeric()
            && !matches!(c, '€' | '£' | '¥' | '￥' | 'µ' | '％'))
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
            b'.' => !(next == b'/' || next == b'.' || next.is_ascii_lowercase()),
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

/// Whether a word is directly enclosed in quotation marks.
pub(super) fn is_between_quotes(before: &str, after: &str) -> bool {
    let pair = (before.chars().next_back(), after.chars().next());
    matches!(
        pair,
        (Some('"'), Some('"'))
            | (Some('\''), Some('\''))
            | (Some('“'), Some('”'))
            | (Some('‘'), Some('’'))
            | (Some('「'), Some('」'))
            | (Some('『'), Some('』'))
            | (Some('《'), Some('》'))
            | (Some('`'), Some('`'))
    )
}

/// Returns the length of `()` after a name, or of a group in a route: `/(auth)/`, `/[id]`.
pub(super) fn group_len(rest: &str, previous: char) -> Option<usize> {
    if rest.starts_with("()") && (previous.is_ascii_alphanumeric() || previous == '_') {
        return Some(2);
    }
    if previous != '/' {
        return None;
    }
    let inner = rest.bytes().skip(1).take(40);
    let len =
        inner.take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')).count();
    let close = rest.get(1 + len..)?;
    let closed = close.starts_with(')') || close.starts_with(']');
    let next = close.get(1..)?.chars().next();
    (len > 0 && closed && next.is_none_or(|c| matches!(c, '/' | '.' | ' ' | '`' | '\n' | '"')))
        .then_some(len + 2)
}

/// Whether a word is a date like `2026-03-15`, with or without a time.
pub(super) fn is_date(word: &str) -> bool {
    let Some((day, rest)) = word.split_at_checked(10) else { return false };
    let date = day.bytes().enumerate().all(|(at, b)| match at {
        4 | 7 => matches!(b, b'-' | b'/'),
        _ => b.is_ascii_digit(),
    });
    date && (rest.is_empty() || rest.starts_with(['T', ' ']))
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
