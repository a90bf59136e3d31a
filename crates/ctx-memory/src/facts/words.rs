//! The words by which facts are compared and indexed.

use ctx_text::{TermKind, WordList, each_term};
use std::borrow::Cow;

/// Chinese function words: a run of characters is split at them.
static CJK_STOP: WordList = WordList::new("stop_anywhere");

/// Returns the content [terms](ctx_text) of a text, deduplicated and sorted.
pub(crate) fn word_set(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_term(&without_cjk_stops(text), |term| {
        if term.kind != TermKind::Stop {
            words.push(term.text.to_owned());
        }
    });
    words.sort_unstable();
    words.dedup();
    words
}

fn without_cjk_stops(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if !text.is_ascii() {
        for stop in CJK_STOP.iter() {
            if text.contains(stop) {
                text = Cow::Owned(text.replace(stop, " "));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_prose_code_and_chinese() {
        for (text, expected) in [
            ("We stopped the ports", "port stop"),
            ("数据库是用什么", "据库 数据 用"),
            ("端口３０００", "3000 端口"),
            ("the of", ""),
            ("", ""),
        ] {
            assert_eq!(word_set(text).join(" "), expected, "{text}");
        }
    }
}
