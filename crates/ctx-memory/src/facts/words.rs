//! The words of a text, as facts are compared and found by.

use std::borrow::Cow;

use crate::text::{TermKind, Terms};

/// Chinese words that only hold a sentence together: a run of characters is split at them.
const CJK_STOP: &[&str] = &[
    "为什么",
    "什么",
    "怎么",
    "哪个",
    "哪些",
    "多少",
    "我们",
    "你们",
    "他们",
    "这个",
    "那个",
    "的",
    "了",
    "吗",
    "呢",
    "吧",
    "是",
    "在",
    "和",
    "把",
    "被",
    "我",
    "你",
];

/// The [terms](crate::text) of a text that say what it is about, each once, sorted.
pub(crate) fn word_set(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    Terms::default().each(&without_cjk_stops(text), |term| {
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
        for stop in CJK_STOP {
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
