//! Foreign text and numbers for a reader: control characters escaped, digits grouped.

/// Returns foreign text on one line, with control characters (cursor, colour, text direction)
/// escaped.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if needs_escape(c) || c.is_ascii_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns a text of several lines, each of them [`escaped`].
pub fn escaped_lines(text: &str) -> String {
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns a part of a longer text with control characters escaped, except line breaks.
pub fn escaped_piece(text: &str) -> String {
    let lines = text.split('\n').map(|text| line(text.trim_end_matches('\r')));
    lines.collect::<Vec<_>>().join("\n")
}

fn line(text: &str) -> String {
    escaped(&text.replace('\t', "    "))
}

/// Like [`escaped`], but cuts out the middle of a text longer than `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    let escaped = escaped(text);
    let length = escaped.chars().count();
    if length <= most {
        return escaped;
    }
    let head: String = escaped.chars().take(most / 2).collect();
    let tail: String = escaped.chars().skip(length - most / 2).collect();
    format!("{head}…{tail}")
}

/// Whether a character is a control character beyond ASCII or changes the text direction.
pub fn needs_escape(c: char) -> bool {
    matches!(c,
        '\u{7F}'..='\u{9F}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// Formats `1234567` as `1,234,567`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_lose_their_middle() {
        assert_eq!(shortened("abcdefgh", 8), "abcdefgh");
        assert_eq!(shortened("abcdefghi", 4), "ab…hi");
    }

    #[test]
    fn escaped_pieces_keep_only_their_line_breaks() {
        assert_eq!(escaped_piece("a\n\tb \r\n\u{1b}[2J"), "a\n    b \n\\u{1b}[2J");
        assert_eq!(escaped_piece("\n"), "\n");
    }
}
