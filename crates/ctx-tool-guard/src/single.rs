//! Bounds one result.

use ctx_core::{Block, Chars, Counter, IMAGE_TOKENS, Message, Role, Tokens, ToolResult};

use crate::cut::{cut, kept_parts};
use crate::limits::{ResultLimit, ResultLimits};
use crate::notice::{
    CONTEXT_LIMIT_TRUNCATION_NOTICE, PREEMPTIVE_TOOL_RESULT_COMPACTION_PLACEHOLDER, preserved_at,
};
use crate::replacement::Replacement;

/// Whether the model is still waiting for a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallStatus {
    /// The model has not seen it. It must see a part of it, or it calls the tool again forever.
    InProgress,
    /// The model has continued since.
    Past,
}

/// A size in characters and in tokens.
#[derive(Clone, Copy, Default)]
struct TextSize {
    chars: u64,
    tokens: Tokens,
}

impl TextSize {
    fn of_text(text: &str, counter: &Counter) -> Self {
        Self { chars: u64::from(Chars::of(text).0), tokens: counter.text(text) }
    }

    /// Returns the size of a non-text block: an image, or a block of an unknown kind.
    fn of_attachment(block: &Block, counter: &Counter) -> Self {
        match block {
            Block::Image(_) => {
                Self { chars: u64::from(IMAGE_TOKENS) * 4, tokens: Tokens(IMAGE_TOKENS) }
            }
            Block::Opaque { json } => {
                Self { chars: json.stringified_chars(), tokens: counter.text(json.as_str()) }
            }
            other => {
                let tokens = counter.message(&Message::new(Role::ToolResult, vec![other.clone()]));
                Self { chars: tokens.get() * 4, tokens }
            }
        }
    }

    fn plus(self, other: Self) -> Self {
        Self { chars: self.chars + other.chars, tokens: self.tokens + other.tokens }
    }

    fn is_within(self, cap: ResultLimit) -> bool {
        self.chars <= u64::from(cap.chars.0) && self.tokens <= cap.tokens
    }
}

/// Whether a message of `tokens` tokens is too small to contain a result over a cap.
pub(crate) fn is_surely_small(tokens: Tokens, limits: &ResultLimits, counter: &Counter) -> bool {
    // An image counts four characters per token, independent of the counter's ratio for text.
    let most = counter.most_chars(tokens).max(Chars(tokens.0.saturating_mul(4)));
    limits.single.is_none_or(|cap| tokens <= cap.tokens && most <= cap.chars)
        && limits.preemptive.is_none_or(|cap| tokens <= cap)
}

/// Returns the new content of a result, if it is too large. `preserve` may first store the whole
/// text; it returns the path.
pub(crate) fn bound(
    result: &ToolResult,
    limits: &ResultLimits,
    counter: &Counter,
    status: CallStatus,
    preserve: impl FnOnce(&str) -> Option<String>,
) -> Option<Replacement> {
    let text = result.plain_text();
    let text_size = TextSize::of_text(&text, counter);
    let attached: Vec<(&Block, TextSize)> = result
        .content
        .iter()
        .filter(|block| !matches!(block, Block::Text { .. }))
        .map(|block| (block, TextSize::of_attachment(block, counter)))
        .collect();
    let size = attached.iter().fold(text_size, |sum, (_, size)| sum.plus(*size));

    let cap = match (limits.preemptive.filter(|most| size.tokens > *most), status) {
        (Some(most), CallStatus::Past) => {
            let mut notice = PREEMPTIVE_TOOL_RESULT_COMPACTION_PLACEHOLDER.to_owned();
            if let Some(path) = preserve(&text) {
                notice.push('\n');
                notice.push_str(&preserved_at(&path));
            }
            let reason = format!("one result of {} tokens, more than {most}", size.tokens);
            return changed(result, vec![Block::text(notice)], reason);
        }
        (Some(most), CallStatus::InProgress) => limits.limit_within(most),
        (None, _) => limits.single?,
    };
    if size.is_within(cap) {
        return None;
    }
    let (kept, left) = keep_attached(&attached, text_size, cap);
    let mut suffix = CONTEXT_LIMIT_TRUNCATION_NOTICE.to_owned();
    let a_quarter = ResultLimit { chars: Chars(cap.chars.0 / 4), tokens: Tokens(cap.tokens.0 / 4) };
    if let Some(path) = preserve(&text).map(|path| preserved_at(&path))
        && TextSize::of_text(&path, counter).is_within(a_quarter)
    {
        suffix = format!("{suffix}\n{path}");
    }
    let removed = attached.len() - kept.len();
    if removed > 0 {
        suffix = format!("[{removed} of {} attachments removed]\n{suffix}", attached.len());
    }
    let cut_text = cut(&text, left, kept_parts(&text, result.is_error), &suffix, counter);
    let mut content = vec![Block::text(cut_text)];
    content.extend(kept.into_iter().cloned());
    let reason = if size.chars > u64::from(cap.chars.0) {
        format!("one result of {} characters, truncated to {}", size.chars, cap.chars)
    } else {
        format!("one result of {} tokens, truncated to {}", size.tokens, cap.tokens)
    };
    changed(result, content, reason)
}

/// Returns the attachments that stay, in order, and the cap left for the text. Half of the cap is
/// reserved for text.
fn keep_attached<'a>(
    attached: &[(&'a Block, TextSize)],
    text: TextSize,
    cap: ResultLimit,
) -> (Vec<&'a Block>, ResultLimit) {
    let budget = TextSize {
        chars: u64::from(cap.chars.0) - text.chars.min(u64::from(cap.chars.0 / 2)),
        tokens: cap.tokens - text.tokens.min(Tokens(cap.tokens.0 / 2)),
    };
    // Notices need budget beside attachments as well.
    let budget = ResultLimit {
        chars: Chars((budget.chars as u32).saturating_sub(crate::limits::MIN_CHARS.0)),
        tokens: budget.tokens - Tokens(crate::limits::MIN_CHARS.0),
    };
    let mut taken = TextSize::default();
    let mut kept = Vec::new();
    for (block, size) in attached {
        let with = taken.plus(*size);
        if with.is_within(budget) {
            taken = with;
            kept.push(*block);
        }
    }
    let left = ResultLimit {
        chars: Chars(cap.chars.0 - taken.chars as u32),
        tokens: cap.tokens - taken.tokens,
    };
    (kept, left)
}

fn changed(result: &ToolResult, content: Vec<Block>, reason: String) -> Option<Replacement> {
    (content != result.content).then(|| Replacement { content, reason: reason.into() })
}
