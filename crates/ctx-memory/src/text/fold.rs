//! One form for characters that are written in several.

use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Gives `each` what `c` is compared as: full-width forms and ligatures taken apart, accents
/// dropped. Case stays, because it shows where the parts of a name begin.
pub(super) fn fold(c: char, mut each: impl FnMut(char)) {
    if c.is_ascii() || is_cjk(c) {
        each(c);
    } else {
        decompose_compatible(c, |part| {
            if !is_combining_mark(part) {
                each(part);
            }
        });
    }
}

/// Whether words of the script are not told apart by spaces, or not by spaces alone: Han, kana and
/// Hangul. They do not decompose into anything of use.
pub(super) fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30A1}'..='\u{30FA}'
        | '\u{30FC}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7A3}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut out = String::new();
        text.chars().for_each(|c| fold(c, |part| out.push(part)));
        out
    }

    #[test]
    fn full_width_forms_ligatures_and_accents_become_plain() {
        assert_eq!(folded("ＡＢＣ１２３"), "ABC123");
        assert_eq!(folded("café ﬁle Zoë"), "cafe file Zoe");
    }

    #[test]
    fn scripts_without_spaces_stay_as_they_are() {
        assert_eq!(folded("图书館がパ한글"), "图书館がパ한글");
    }
}
