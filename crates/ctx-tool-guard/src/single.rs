//! Bounding one result.

use std::borrow::Cow;

use ctx_core::{Block, Chars, Counter, IMAGE_TOKENS, Message, Role, Tokens, ToolResult};

use crate::cut::{cut, shown_of};
use crate::limits::{Limits, Single};
use crate::notice::{
    CONTEXT_LIMIT_TRUNCATION_NOTICE, PREEMPTIVE_TOOL_RESULT_COMPACTION_PLACEHOLDER, preserved_at,
};

/// Whether the model still waits for a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has not seen it. It must see some of it, or it asks for it for ever.
    InProgress,
    /// It has gone on since.
    Past,
}

/// What becomes of a result that is too large.
pub(crate) struct Bounded {
    pub(crate) content: Vec<Block>,
    pub(crate) reason: Cow<'static, str>,
}

/// A size by both measures.
#[derive(Clone, Copy, Default)]
struct Size {
    chars: u64,
    tokens: Tokens,
}

impl Size {
    fn of_text(text: &str, counter: &Counter) -> Self {
        Self { chars: u64::from(Chars::of(text).0), tokens: counter.text(text) }
    }

    /// Of anything that is not text: an image, a block of an unknown kind.
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

    fn is_within(self, cap: Single) -> bool {
        self.chars <= u64::from(cap.chars.0) && self.tokens <= cap.tokens
    }
}

/// Whether a message of so many tokens can hold no result that is too large.
pub(crate) fn is_surely_small(tokens: Tokens, limits: &Limits, counter: &Counter) -> bool {
    // An image is worth four characters a token, whatever the counter makes of text.
    let most = counter.most_chars(tokens).max(Chars(tokens.0.saturating_mul(4)));
    limits.single.is_none_or(|cap| tokens <= cap.tokens && most <= cap.chars)
        && limits.preemptive.is_none_or(|cap| tokens <= cap)
}

/// The content to show instead of a result's, if it is too large. `preserve` may put the whole text
/// away before, and says where.
pub(crate) fn bound(
    result: &ToolResult,
    limits: &Limits,
    counter: &Counter,
    standing: Standing,
    preserve: impl FnOnce(&str) -> Option<String>,
) -> Option<Bounded> {
    let text = result.plain_text();
    let text_size = Size::of_text(&text, counter);
    let attached: Vec<(&Block, Size)> = result
        .content
        .iter()
        .filter(|block| !matches!(block, Block::Text { .. }))
        .map(|block| (block, Size::of_attachment(block, counter)))
        .collect();
    let size = attached.iter().fold(text_size, |sum, (_, size)| sum.plus(*size));

    let cap = match (limits.preemptive.filter(|most| size.tokens > *most), standing) {
        (Some(most), Standing::Past) => {
            let mut notice = PREEMPTIVE_TOOL_RESULT_COMPACTION_PLACEHOLDER.to_owned();
            if let Some(path) = preserve(&text) {
                notice.push('\n');
                notice.push_str(&preserved_at(&path));
            }
            let reason = format!("one result of {} tokens, more than {most}", size.tokens);
            return changed(result, vec![Block::text(notice)], reason);
        }
        (Some(most), Standing::InProgress) => limits.single_within(most),
        (None, _) => limits.single?,
    };
    if size.is_within(cap) {
        return None;
    }
    let (kept, left) = keep_attached(&attached, text_size, cap);
    let mut suffix = CONTEXT_LIMIT_TRUNCATION_NOTICE.to_owned();
    let a_quarter = Single { chars: Chars(cap.chars.0 / 4), tokens: Tokens(cap.tokens.0 / 4) };
    if let Some(path) = preserve(&text).map(|path| preserved_at(&path))
        && Size::of_text(&path, counter).is_within(a_quarter)
    {
        suffix = format!("{suffix}\n{path}");
    }
    let removed = attached.len() - kept.len();
    if removed > 0 {
        suffix = format!("[{removed} of {} attachments removed]\n{suffix}", attached.len());
    }
    let cut_text = cut(&text, left, shown_of(&text, result.is_error), &suffix, counter);
    let mut content = vec![Block::text(cut_text)];
    content.extend(kept.into_iter().cloned());
    let reason = if size.chars > u64::from(cap.chars.0) {
        format!("one result of {} characters, cut to {}", size.chars, cap.chars)
    } else {
        format!("one result of {} tokens, cut to {}", size.tokens, cap.tokens)
    };
    changed(result, content, reason)
}

/// The attachments that stay, in their order, and the cap that is left for the text. Text has a
/// claim to half of the cap.
fn keep_attached<'a>(
    attached: &[(&'a Block, Size)],
    text: Size,
    cap: Single,
) -> (Vec<&'a Block>, Single) {
    let room = Size {
        chars: u64::from(cap.chars.0) - text.chars.min(u64::from(cap.chars.0 / 2)),
        tokens: cap.tokens - text.tokens.min(Tokens(cap.tokens.0 / 2)),
    };
    // Notices need their place beside attachments as well.
    let room = Single {
        chars: Chars((room.chars as u32).saturating_sub(crate::limits::MIN_CHARS.0)),
        tokens: room.tokens - Tokens(crate::limits::MIN_CHARS.0),
    };
    let mut taken = Size::default();
    let mut kept = Vec::new();
    for (block, size) in attached {
        let with = taken.plus(*size);
        if with.is_within(room) {
            taken = with;
            kept.push(*block);
        }
    }
    let left = Single {
        chars: Chars(cap.chars.0 - taken.chars as u32),
        tokens: cap.tokens - taken.tokens,
    };
    (kept, left)
}

fn changed(result: &ToolResult, content: Vec<Block>, reason: String) -> Option<Bounded> {
    (content != result.content).then(|| Bounded { content, reason: reason.into() })
}
