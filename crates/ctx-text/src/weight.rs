//! The weight of a text, and text comparison without case and line breaks.

use crate::fold::is_cjk;

/// Returns the length of a text in Latin letters: a Chinese, Japanese or Korean character or an
/// emoji counts as two. Characters that only change how another looks count as zero.
#[must_use]
pub fn weight(text: &str) -> usize {
    let of = |c: char| match c {
        '\u{200D}' | '\u{FE00}'..='\u{FE0F}' | '\u{1F3FB}'..='\u{1F3FF}' => 0,
        c if is_cjk(c) || is_emoji(c) => 2,
        _ => 1,
    };
    text.trim().chars().map(of).sum()
}

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
        let check = |text: &str, expected: usize| assert_eq!(weight(text), expected, "{text}");
        check(" ok ", 2);
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
