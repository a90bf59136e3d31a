//! Emoji, and text comparison without case and line breaks.

/// Whether a character is an emoji.
#[must_use]
pub fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2600}'..='\u{27BF}' | '\u{2B00}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}')
}

/// Normalises a text for comparison without case, as Unicode folds it (`Straße` is `STRASSE`), and
/// without line breaks.
#[must_use]
pub fn without_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        for c in word.chars() {
            match c {
                _ if c.is_ascii() => out.push(c.to_ascii_lowercase()),
                // Its capital, `I`, is also that of `i`.
                'ı' => out.push(c),
                // `ẞ` needs all three steps to become `ss`, as `ß` does: `ß`, `SS`, `ss`.
                _ => {
                    let small = c.to_lowercase().flat_map(char::to_uppercase);
                    out.extend(small.flat_map(char::to_lowercase));
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_of_chinese_and_an_emoji_say_as_much_as_two_letters() {
        let check =
            |text: &str, expected: usize| assert_eq!(crate::width(text), expected, "{text}");
        check("张三", 4);
        check("好", 2);
        check("🦀", 2);
        check("👍🏽", 2);
        check("❤\u{FE0F}", 2);
        check("日本a", 5);
        check("한글", 4);
    }

    #[test]
    fn letters_are_folded_as_unicode_does() {
        for (one, other) in [
            ("STRASSE", "Straße"),
            ("STRAẞE", "strasse"),
            ("ΟΔΟΣ", "οδος"),
            ("οδός", "ΟΔΌΣ"),
            ("ﬁle", "FILE"),
            ("Ünal\n  Öz", "ÜNAL ÖZ"),
        ] {
            assert_eq!(without_case(one), without_case(other), "{one}, {other}");
        }
        assert_ne!(without_case("sık"), without_case("sik"));
        assert_eq!(without_case(" \n"), "");
    }
}
