//! Display width, and clipping to it.

use ctx_core::text::{Slice, head_chars};

use crate::{is_cjk, is_emoji};

/// Returns the display width of a text in Latin letters: a CJK character or an emoji counts as two,
/// and a character that only changes how another looks as zero.
#[must_use]
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(width_of).sum() }
}

fn width_of(c: char) -> usize {
    match c {
        '\u{200D}' | '\u{FE00}'..='\u{FE0F}' | '\u{1F3FB}'..='\u{1F3FF}' => 0,
        c if is_cjk(c) || is_emoji(c) => 2,
        _ => 1,
    }
}

/// Whether a character is displayed in two columns.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff60}' | '\u{20000}'..='\u{3ffff}')
}

/// Clips a sentence to at most `max` characters: after a sentence or a clause if that is at least half
/// of them, else after a word.
pub fn clip(sentence: &str, max: usize) -> &str {
    let head = head_chars(sentence, max);
    if head.len() == sentence.len() {
        return sentence;
    }
    let (kept, _) = cut(sentence, max, |_| 1);
    if kept.is_empty() { head } else { kept.trim_end_matches(PUNCTUATION) }
}

/// Clips a text to width `max`: after the last sentence, else the last clause, if that fills at least
/// half of it; else after a word. `…` marks the cut. Words are never split, as a
/// truncated identifier would name something else. The result is empty if not even the first word
/// fits.
pub fn clip_to_width(text: &str, max: usize) -> String {
    let text = text.trim();
    if text.len() <= max || width(text) <= max {
        return text.to_owned();
    }
    let (kept, is_sentence) = cut(text, max.saturating_sub(2), width_of);
    let kept = balanced(kept);
    let kept = if is_sentence { kept } else { kept.trim_end_matches(PUNCTUATION) };
    if kept.is_empty() { String::new() } else { format!("{kept} …") }
}

/// What is removed at the end of a clause.
const PUNCTUATION: [char; 9] = [',', ';', ':', '-', '，', '；', '：', '、', ' '];

/// Returns the beginning of a text within `room`, and whether it ends with a sentence.
fn cut(text: &str, room: usize, size: impl Fn(char) -> usize) -> (&str, bool) {
    let (mut sentence, mut clause, mut word) = ((0, 0), (0, 0), 0);
    let (mut used, mut last) = (0, ' ');
    for (at, c) in text.char_indices() {
        let border = c.is_whitespace();
        if border || is_wide(c) || is_wide(last) {
            match last {
                '。' | '！' | '？' => sentence = (at, used),
                '.' | '!' | '?' if border => sentence = (at, used),
                '，' | '；' | '：' => clause = (at, used),
                ',' | ';' | ':' | ')' | '—' | '-' if border => clause = (at, used),
                _ => {}
            }
            word = at;
        }
        used += size(c);
        if used > room {
            break;
        }
        last = c;
    }
    let is_long = |(_, used): (usize, usize)| used * 2 >= room;
    let at = [sentence, clause].into_iter().find(|end| is_long(*end)).map_or(word, |end| end.0);
    (text.slice(..at).trim_end(), at > 0 && at == sentence.0)
}

/// Removes a trailing code name or emphasis that lost its end.
fn balanced(text: &str) -> &str {
    let mut text = text;
    if text.matches('`').count() % 2 == 1
        && let Some(at) = text.rfind('`')
    {
        text = text.slice(..at).trim_end();
    }
    if text.matches("**").count() % 2 == 1
        && let Some(at) = text.rfind("**")
        && text.get(at..).is_some_and(|tail| tail.len() < 40)
    {
        text = text.slice(..at).trim_end();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_borders_and_words_stay_whole() {
        for (text, max, expected) in [
            ("short", 10, "short"),
            ("One two three. Four five six.", 20, "One two three. …"),
            ("first clause, second clause goes on", 20, "first clause …"),
            ("alpha beta gamma delta", 14, "alpha beta …"),
            ("averyveryverylongword", 10, ""),
            ("修好了登录的问题，测试也都通过了", 20, "修好了登录的问题 …"),
            ("看 src/auth/login.rs 的问题", 16, "看 …"),
            ("use `one two` and `three four`", 24, "use `one two` and …"),
        ] {
            let cut = clip_to_width(text, max);
            assert_eq!(cut, expected);
            assert!(width(&cut) <= max);
        }
    }

    #[test]
    fn a_clip_ends_with_a_clause_or_a_word() {
        for (text, max, expected) in [
            ("short", 10, "short"),
            ("keep this part, and then some more", 20, "keep this part"),
            ("edit src/main.rs:12 now", 18, "edit"),
            ("edit the src/main.rs:12 now", 20, "edit the"),
            ("不要修改配置文件", 4, "不要修改"),
        ] {
            let clipped = clip(text, max);
            assert_eq!(clipped, expected);
            assert!(clipped.chars().count() <= max);
        }
    }
}
