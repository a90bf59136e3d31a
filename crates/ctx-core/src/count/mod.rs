//! Counting tokens.

mod cjk;
mod middle;
#[cfg(feature = "o200k")]
mod o200k;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::json::{decoded_chars, stringified_chars};
use crate::{Block, Chars, Error, ErrorKind, IMAGE_TOKENS, Message, RawJson, Role, Tokens};

/// How tokens are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CounterKind {
    /// UTF-16 units / 4, rounded up per message, as in pi. On real sessions, it counts 23-30 % less
    /// than providers do; on Chinese text, 2-4 times less.
    #[default]
    Chars4,
    /// UTF-16 units / 3, rounded up per message: a conservative estimate.
    Chars3,
    /// Like `chars4`, but a common CJK character is one token and a rare one two or three.
    Cjk,
    /// OpenAI's o200k vocabulary. Exact for GPT-4o and later, close for other models.
    O200k,
}

impl CounterKind {
    /// All kinds that this build supports.
    pub const ALL: &'static [Self] = &[
        Self::Chars4,
        Self::Chars3,
        Self::Cjk,
        #[cfg(feature = "o200k")]
        Self::O200k,
    ];

    /// Returns the name used in config files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chars4 => "chars4",
            Self::Chars3 => "chars3",
            Self::Cjk => "cjk",
            Self::O200k => "o200k",
        }
    }
}

impl fmt::Display for CounterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for CounterKind {
    type Err = Error;
    fn from_str(s: &str) -> Result<Self, Error> {
        if let Some(kind) = Self::ALL.iter().copied().find(|k| k.name() == s) {
            return Ok(kind);
        }
        let known: Vec<_> = Self::ALL.iter().map(|k| k.name()).collect();
        let error = Error::new(
            ErrorKind::InvalidInput,
            format!("unknown counter '{s}' (known: {})", known.join(", ")),
        );
        Err(match s {
            "o200k" => error.hint("build with the cargo feature `o200k`"),
            _ => error,
        })
    }
}

/// Counts the tokens of messages. Equal counters give equal counts, so counts can be cached. An
/// image has 1,200 tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Counter {
    /// How tokens are counted.
    pub kind: CounterKind,
    /// Tokens added to each tool call for its structure.
    pub call_tokens: u32,
    /// Whether images in user messages are not counted.
    pub free_user_images: bool,
}

impl Counter {
    /// Creates a counter of `kind` that adds nothing to a tool call and counts all images.
    #[must_use]
    pub fn new(kind: CounterKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Counts the tokens of a text on its own.
    #[must_use]
    pub fn text(&self, text: &str) -> Tokens {
        let mut size = Size::default();
        size.text(self.kind, text);
        size.total(self.kind)
    }

    /// Returns an upper bound of the UTF-16 units in a text of `tokens` tokens. A caller that knows
    /// the count of a text need not measure its length.
    #[must_use]
    pub fn most_chars(&self, tokens: Tokens) -> Chars {
        let per_token = match self.kind {
            CounterKind::Chars3 => 3,
            CounterKind::Chars4 | CounterKind::Cjk => 4,
            // The longest entries of the vocabulary are runs of 128 spaces.
            CounterKind::O200k => 128,
        };
        Chars(tokens.0.saturating_mul(per_token))
    }

    /// Counts the tokens of a JSON value on its own, as `JSON.stringify` prints it.
    #[must_use]
    pub(crate) fn json(&self, json: &RawJson) -> Tokens {
        let mut size = Size::default();
        size.json(self.kind, json);
        size.total(self.kind)
    }

    /// Counts the tokens of a message: its text, thinking, tool calls (name and arguments as
    /// `JSON.stringify` prints them), results and images; rounded up once.
    #[must_use]
    pub fn message(&self, message: &Message) -> Tokens {
        let mut size = Size::default();
        let free_images = self.free_user_images && message.role == Role::User;
        for block in &message.blocks {
            self.block(block, free_images, &mut size);
        }
        size.total(self.kind)
    }

    /// Starts to count a message whose strings are not decoded; `None` if this counter needs their text.
    #[must_use]
    pub fn undecoded(&self) -> Option<UndecodedCount> {
        let is_chars = matches!(self.kind, CounterKind::Chars4 | CounterKind::Chars3);
        is_chars.then(|| UndecodedCount { counter: *self, size: Size::default() })
    }

    fn block(&self, block: &Block, free_images: bool, size: &mut Size) {
        match block {
            Block::Text { text } => size.text(self.kind, text),
            Block::Thinking { thinking, .. } => size.text(self.kind, thinking),
            Block::ToolCall(call) => {
                size.text(self.kind, &call.name);
                size.json(self.kind, &call.arguments);
                size.tokens += u64::from(self.call_tokens);
            }
            Block::ToolResult(result) => {
                for block in &result.content {
                    self.block(block, false, size);
                }
            }
            Block::Image(_) if free_images => {}
            Block::Image(_) => size.tokens += u64::from(IMAGE_TOKENS),
            Block::Bash(run) => {
                size.text(self.kind, &run.command);
                size.text(self.kind, &run.output);
            }
            Block::Opaque { json } => size.json(self.kind, json),
        }
    }
}

/// Counts a message from the JSON of its parts, as [`Counter::message`] counts the message.
pub struct UndecodedCount {
    counter: Counter,
    size: Size,
}

impl UndecodedCount {
    /// Adds a text, given as a JSON string.
    pub fn text(&mut self, json: &str) {
        self.size.units += decoded_chars(json);
    }

    /// Adds a tool call, given its name as a JSON string and its arguments as JSON.
    pub fn call(&mut self, name: &str, arguments: &str) {
        self.size.units += decoded_chars(name) + stringified_chars(arguments);
        self.size.tokens += u64::from(self.counter.call_tokens);
    }

    /// Adds an image.
    pub fn image(&mut self, in_user_message: bool) {
        if !(self.counter.free_user_images && in_user_message) {
            self.size.tokens += u64::from(IMAGE_TOKENS);
        }
    }

    /// Returns the tokens of the message.
    #[must_use]
    pub fn total(&self) -> Tokens {
        self.size.total(self.counter.kind)
    }
}

/// A running size. `units` are UTF-16 units for `chars4` and `chars3`, quarter tokens for `cjk`;
/// `tokens` are the tokens of `o200k`, images and tool calls.
#[derive(Default)]
struct Size {
    units: u64,
    tokens: u64,
}

impl Size {
    fn text(&mut self, kind: CounterKind, text: &str) {
        match kind {
            CounterKind::Chars4 | CounterKind::Chars3 => {
                self.units += u64::from(Chars::of(text).0);
            }
            CounterKind::Cjk => self.units += cjk::quarter_tokens(text),
            CounterKind::O200k => self.tokens += vocabulary_tokens(text),
        }
    }

    fn json(&mut self, kind: CounterKind, json: &RawJson) {
        match kind {
            CounterKind::Chars4 | CounterKind::Chars3 => self.units += json.stringified_chars(),
            CounterKind::Cjk | CounterKind::O200k => self.text(kind, json.as_str()),
        }
    }

    fn total(&self, kind: CounterKind) -> Tokens {
        let divisor = if kind == CounterKind::Chars3 { 3 } else { 4 };
        Tokens::saturating_from(self.units.div_ceil(divisor).saturating_add(self.tokens))
    }
}

#[cfg(feature = "o200k")]
fn vocabulary_tokens(text: &str) -> u64 {
    o200k::tokens(text)
}

/// Without the vocabulary, `FromStr` refuses this kind. A caller that constructs or deserialises it
/// gets the CJK-aware estimate, never zero.
#[cfg(not(feature = "o200k"))]
fn vocabulary_tokens(text: &str) -> u64 {
    cjk::quarter_tokens(text).div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolCall;

    fn count(kind: CounterKind, text: &str) -> u32 {
        Counter::new(kind).text(text).0
    }

    #[test]
    fn characters_are_utf16_units_rounded_up() {
        assert_eq!(count(CounterKind::Chars4, ""), 0);
        assert_eq!(count(CounterKind::Chars4, "abcde"), 2);
        assert_eq!(count(CounterKind::Chars4, "😀😀😀"), 2);
        assert_eq!(count(CounterKind::Chars3, "abcd"), 2);
    }

    #[test]
    fn no_text_has_more_characters_than_its_tokens_can_have() {
        let texts = ["a".repeat(999), " ".repeat(4_097), "上下文".repeat(99), "😀é\n".repeat(99)];
        for &kind in CounterKind::ALL {
            let counter = Counter::new(kind);
            for text in &texts {
                assert!(Chars::of(text) <= counter.most_chars(counter.text(text)), "{kind}");
            }
        }
    }

    #[test]
    fn a_common_cjk_character_is_one_token() {
        assert_eq!(count(CounterKind::Cjk, "上下文窗口"), 5);
        assert_eq!(count(CounterKind::Cjk, "abcd"), 1);
    }

    #[test]
    fn the_tokens_per_call_are_added() {
        let call = ToolCall::new("c", "read", RawJson::from_text(r#"{"path":"a.rs"}"#));
        let message = Message::new(Role::Assistant, vec![Block::ToolCall(call)]);
        assert_eq!(Counter::default().message(&message), Tokens(5));
        let charged = Counter { call_tokens: 50, ..Counter::default() };
        assert_eq!(charged.message(&message), Tokens(55));
    }

    #[cfg(feature = "o200k")]
    #[test]
    fn o200k_is_a_real_vocabulary() {
        assert_eq!(count(CounterKind::O200k, "hello world"), 2);
        assert_eq!(count(CounterKind::O200k, &"a".repeat(80_000)), 10_000);
    }
}
