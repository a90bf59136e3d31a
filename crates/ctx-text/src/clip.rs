//! Display width, and clipping to it.

use ctx_core::text::Slice;

use crate::is_cjk;

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

/// Whether a character is an emoji.
#[must_use]
pub fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2600}'..='\u{27BF}' | '\u{2B00}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}')
}

/// Whether a character is displayed in two columns.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff60}' | '\u{20000}'..='\u{3ffff}')
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
    let room = max.saturating_sub(2);
    let (mut sentence, mut clause, mut word) = ((0, 0), (0, 0), (0, 0));
    let mut used = 0;
    let mut last = ' ';
    for (at, c) in text.char_indices() {
        let border = c.is_whitespace();
        if border || is_wide(c) || is_wide(last) {
            let here = (at, used);
            if matches!(last, '。' | '！' | '？') || (border && matches!(last, '.' | '!' | '?'))
            {
                sentence = here;
            }
            if matches!(last, '，' | '；' | '：')
                || (border && matches!(last, ',' | ';' | ':' | ')' | '—' | '-'))
            {
                clause = here;
            }
            word = here;
        }
        used += width_of(c);
        if used > room {
            break;
        }
        last = c;
    }
    let good = |(_, used): (usize, usize)| used * 2 >= room;
    let (at, ends) = if good(sentence) {
        (sentence.0, true)
    } else if good(clause) {
        (clause.0, false)
    } else {
        (word.0, false)
    };
    let kept = text.slice(..at).trim_end();
    let kept = balanced(kept);
    match (kept.is_empty(), ends) {
        (true, _) => String::new(),
        (false, true) => format!("{kept} …"),
        (false, false) => {
            format!("{} …", kept.trim_end_matches([',', ';', ':', '-', '，', '；', '：', ' ']))
        }
    }
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
    fn a_character_of_chinese_and_an_emoji_say_as_much_as_two_letters() {
        let check = |text: &str, expected: usize| assert_eq!(width(text), expected, "{text}");
        check("张三", 4);
        check("好", 2);
        check("🦀", 2);
        check("👍🏽", 2);
        check("❤\u{FE0F}", 2);
        check("日本a", 5);
        check("한글", 4);
    }

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
}
