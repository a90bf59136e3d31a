//! Weights for scripts that `chars/4` undercounts.

/// Returns the size of `text` in quarter tokens: a UTF-16 unit counts as one quarter, a common CJK
/// character as one token, a rare one as two, and one outside the basic plane as three (rare
/// ideographs) or two (emoji).
pub(super) fn quarter_tokens(text: &str) -> u64 {
    if text.is_ascii() {
        return text.len() as u64;
    }
    text.chars().map(weight).sum()
}

fn weight(c: char) -> u64 {
    match c {
        '\u{0}'..='\u{2E7F}' => 1,
        // Kana, Hangul, unified ideographs, CJK punctuation, full-width forms.
        '\u{3000}'..='\u{30FF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}'
        | '\u{FF00}'..='\u{FFEF}' => 4,
        // Radicals, bopomofo, extension A, compatibility ideographs.
        '\u{2E80}'..='\u{2FFF}' | '\u{3100}'..='\u{4DFF}' | '\u{F900}'..='\u{FAFF}' => 8,
        // Extension B and later.
        '\u{20000}'..='\u{3FFFF}' => 12,
        '\u{10000}'.. => 8,
        _ => 1,
    }
}
