//! How much a text says, and whether two texts are the same but for how they are set.

use super::fold::is_cjk;

/// How much a text says, by letters of Latin script: a character of Chinese, Japanese or Korean, or an
/// emoji, says as much as two. What only changes how a character looks says nothing.
#[must_use]
pub fn weight(text: &str) -> usize {
    let of = |c: char| match c {
        '\u{200D}' | '\u{FE00}'..='\u{FE0F}' | '\u{1F3FB}'..='\u{1F3FF}' => 0,
        c if is_cjk(c) || is_emoji(c) => 2,
        _ => 1,
    };
    text.trim().chars().map(of).sum()
}

/// Whether a character is a picture.
#[must_use]
pub fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2600}'..='\u{27BF}' | '\u{2B00}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}')
}

/// A text whatever the case of its letters, as Unicode folds it (`Straße` is `STRASSE`), and however it
/// is broken into lines.
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
                // Its capital is that of another letter.
                'ı' => out.push(c),
                // The capital of some is one letter, that of their small one is two.
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
