//! Replacements for one stale result.

use std::borrow::Cow;

use ctx_core::text::{head, tail};
use ctx_core::{Block, Chars, Counter, IMAGE_TOKENS, Message, Role, Tokens, ToolResult};

use crate::SoftTrim;

/// Replaces an image of a trimmed result.
const IMAGE_REMOVED_NOTICE: &str = "[image removed during context pruning]";

/// An upper bound on the characters of a trimmed result besides its two ends: the notice, with
/// three numbers of ten digits, and line breaks.
const NOTICE_CHARS: u32 = 128;

/// Trims the content of a result to its two ends and removes images; `None` if it is short.
pub(crate) fn soft_trimmed(result: &ToolResult, settings: &SoftTrim) -> Option<Vec<Block>> {
    let (first, last) = (settings.head_chars, settings.tail_chars);
    let ends = first.0.saturating_add(last.0).saturating_add(NOTICE_CHARS);
    let text = text_of(result);
    let length = Chars::of(&text);
    let has_images = result.content.iter().any(|b| matches!(b, Block::Image(_)));
    let shown = if length.0 > settings.max_chars.0.max(ends) {
        format!(
            "{}\n...\n{}\n\n[Tool result trimmed: kept first {first} chars and last {last} chars of \
             {length} chars.]",
            head(&text, first),
            tail(&text, last),
        )
    } else if has_images {
        text.into_owned()
    } else {
        return None;
    };
    let mut content = vec![Block::text(shown)];
    let others =
        result.content.iter().filter(|b| !matches!(b, Block::Text { .. } | Block::Image(_)));
    content.extend(others.cloned());
    Some(content)
}

/// Whether a message of `tokens` tokens is too small to contain a result that soft trimming
/// changes.
pub(crate) fn is_surely_short(tokens: Tokens, settings: &SoftTrim, counter: &Counter) -> bool {
    counter.most_chars(tokens) <= settings.max_chars && tokens < Tokens(IMAGE_TOKENS)
}

/// Returns the maximum number of characters in a message of `tokens` tokens. An image counts four
/// characters per token, independent of the counter's ratio for text.
pub(crate) fn most_chars(tokens: Tokens, counter: &Counter) -> u64 {
    u64::from(counter.most_chars(tokens).0).max(tokens.get() * 4)
}

/// Returns the content of a cleared result; `None` if it is already cleared.
pub(crate) fn cleared(result: &ToolResult, placeholder: &str) -> Option<Vec<Block>> {
    let content = vec![Block::text(placeholder)];
    (result.content != content).then_some(content)
}

/// Returns the tokens of a result.
pub(crate) fn tokens_of(result: &ToolResult, counter: &Counter) -> Tokens {
    let alone = Block::ToolResult(result.clone());
    counter.message(&Message::new(Role::ToolResult, vec![alone]))
}

/// Returns all text of a result, with a notice for each image, joined by line breaks.
fn text_of(result: &ToolResult) -> Cow<'_, str> {
    if !result.content.iter().any(|b| matches!(b, Block::Image(_))) {
        return result.plain_text();
    }
    let parts: Vec<&str> = result
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::Image(_) => Some(IMAGE_REMOVED_NOTICE),
            _ => None,
        })
        .collect();
    parts.join("\n").into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ctx_core::Image;

    use super::*;

    fn result(content: Vec<Block>) -> ToolResult {
        ToolResult { call_id: "c".into(), name: None, content, is_error: false }
    }

    fn image() -> Block {
        Block::Image(Image {
            mime_type: "image/png".into(),
            data: Arc::from("AA=="),
            is_url: false,
        })
    }

    #[test]
    fn both_ends_are_kept_in_openclaws_words() {
        let long = result(vec![Block::text(format!("{}{}", "a".repeat(3_000), "z".repeat(3_000)))]);
        let content = soft_trimmed(&long, &SoftTrim::default()).unwrap();
        let expected = format!(
            "{}\n...\n{}\n\n[Tool result trimmed: kept first 1500 chars and last 1500 chars of 6000 \
             chars.]",
            "a".repeat(1_500),
            "z".repeat(1_500)
        );
        assert_eq!(content, [Block::text(expected)]);
        assert_eq!(soft_trimmed(&result(content), &SoftTrim::default()), None);
    }

    #[test]
    fn a_short_result_loses_only_its_images() {
        let short = result(vec![Block::text("x".repeat(4_000))]);
        assert_eq!(soft_trimmed(&short, &SoftTrim::default()), None);
        let seen = result(vec![Block::text("a chart:"), image()]);
        let content = soft_trimmed(&seen, &SoftTrim::default()).unwrap();
        assert_eq!(content, [Block::text("a chart:\n[image removed during context pruning]")]);
    }

    #[test]
    fn a_trimmed_result_is_not_trimmed_again_with_any_settings() {
        let settings =
            SoftTrim { max_chars: Chars(0), head_chars: Chars(100), tail_chars: Chars(0) };
        let long = result(vec![Block::text("😀".repeat(400))]);
        let content = soft_trimmed(&long, &settings).unwrap();
        assert_eq!(soft_trimmed(&result(content), &settings), None);
        let huge = SoftTrim { head_chars: Chars(u32::MAX), ..settings };
        assert_eq!(soft_trimmed(&long, &huge), None);
    }
}
