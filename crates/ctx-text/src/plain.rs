//! Texts on one line, and for comparison without case.

/// Returns a text with each run of white space as one space, and none at its ends.
#[must_use]
pub fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
