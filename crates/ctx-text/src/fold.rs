//! Folds characters that have several forms.

use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Passes the folded form of `c` to `each`: full-width forms and ligatures decomposed, accents
/// dropped. Case is preserved, because it shows where the parts of a name begin.
pub(crate) fn fold(c: char, mut each: impl FnMut(char)) {
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

/// Whether the script does not separate words by spaces, or not only by spaces: Han, kana and
/// Hangul. Decomposing these characters is not useful.
#[must_use]
pub fn is_cjk(c: char) -> bool {
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
