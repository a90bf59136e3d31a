//! Foreign text, made fit for people to read.

/// A text from elsewhere on one line: whatever could move the cursor, colour the screen or turn the
/// reading direction is spelled out.
#[must_use]
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) || c.is_ascii_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// A text of several lines, each of them [`harmless`].
#[must_use]
pub fn harmless_lines(text: &str) -> String {
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A piece of a longer text, in which nothing moves the cursor but ends of lines: all of them stay.
#[must_use]
pub fn harmless_piece(text: &str) -> String {
    let lines = text.split('\n').map(|text| line(text.trim_end_matches('\r')));
    lines.collect::<Vec<_>>().join("\n")
}

fn line(text: &str) -> String {
    harmless(&text.replace('\t', "    "))
}

/// [`harmless`], and its middle left out where it is longer than `most` characters.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
    let harmless = harmless(text);
    let length = harmless.chars().count();
    if length <= most {
        return harmless;
    }
    let head: String = harmless.chars().take(most / 2).collect();
    let tail: String = harmless.chars().skip(length - most / 2).collect();
    format!("{head}…{tail}")
}

/// Control characters beyond ASCII, and marks that turn the reading direction.
#[must_use]
pub fn is_harmful(c: char) -> bool {
    matches!(c,
        '\u{7F}'..='\u{9F}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// `1234567` as `1,234,567`.
#[must_use]
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
    fn pieces_keep_their_lines_and_nothing_else_that_terminals_obey() {
        assert_eq!(harmless_piece("a\n\tb \r\n\u{1b}[2J"), "a\n    b \n\\u{1b}[2J");
        assert_eq!(harmless_piece("\n"), "\n");
    }
}
