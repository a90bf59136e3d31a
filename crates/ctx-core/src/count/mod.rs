//! Counting tokens.

mod cjk;
#[cfg(feature = "o200k")]
mod o200k;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Block, Chars, Error, ErrorKind, Message, Profile, Role, Tokens};

/// Tokens of one image: 4,800 characters at 4 a token, as pi counts.
pub const IMAGE_TOKENS: u32 = 1_200;

/// What PonyBunny adds for the structure of each tool call.
pub const PONYBUNNY_CALL_TOKENS: u32 = 50;

/// How text is turned into a number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CounterKind {
    /// UTF-16 units / 4, rounded up per message, as pi. On real sessions 23-30 % below what
    /// providers report, and 2-4 times too low on Chinese.
    #[default]
    Chars4,
    /// UTF-16 units / 3, rounded up per message: the conservative middle that profile
    /// `memory-context` counts by.
    Chars3,
    /// As `chars4`, but a common CJK character is one token and a rare one two or three.
    Cjk,
    /// OpenAI's o200k vocabulary. Exact for GPT-4o and later, close for others.
    O200k,
}

impl CounterKind {
    /// All kinds that this build can count with.
    pub const ALL: &'static [Self] = &[
        Self::Chars4,
        Self::Chars3,
        Self::Cjk,
        #[cfg(feature = "o200k")]
        Self::O200k,
    ];

    /// The name used in config files and on the command line.
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

/// Counts messages. Two equal counters give equal counts, so a count can be kept with its counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counter {
    kind: CounterKind,
    per_call: u32,
    free_user_images: bool,
}

impl Counter {
    /// A counter of `kind`, with 1,200 tokens an image and nothing extra for a tool call.
    #[must_use]
    pub fn new(kind: CounterKind) -> Self {
        Self { kind, per_call: 0, free_user_images: false }
    }

    /// The counter a profile's system used.
    #[must_use]
    pub fn for_profile(profile: Profile) -> Self {
        Self::new(match profile {
            Profile::MemoryContext => CounterKind::Chars3,
            Profile::Openclaw | Profile::Ponybunny | Profile::Copaw | Profile::Pi => {
                CounterKind::Chars4
            }
        })
        .with_profile_rules(profile)
    }

    /// Applies a profile's extras (PonyBunny's 50 tokens a call; pi counts no images in user
    /// messages) to a counter of any kind.
    #[must_use]
    pub fn with_profile_rules(mut self, profile: Profile) -> Self {
        self.per_call = if profile == Profile::Ponybunny { PONYBUNNY_CALL_TOKENS } else { 0 };
        self.free_user_images = profile == Profile::Pi;
        self
    }

    /// How text is turned into tokens.
    #[must_use]
    pub fn kind(&self) -> CounterKind {
        self.kind
    }

    /// Tokens of a text on its own.
    #[must_use]
    pub fn text(&self, text: &str) -> Tokens {
        let mut size = Size::default();
        size.text(self.kind, text);
        size.total(self.kind)
    }

    /// The most UTF-16 units that text of `tokens` tokens can have. It tells from a known count that
    /// a text is short enough, without reading it.
    #[must_use]
    pub fn most_chars(&self, tokens: Tokens) -> Chars {
        let per_token = match self.kind {
            CounterKind::Chars3 => 3,
            CounterKind::Chars4 | CounterKind::Cjk => 4,
            // The longest entries of the vocabulary are runs of 128 blanks.
            CounterKind::O200k => 128,
        };
        Chars(tokens.0.saturating_mul(per_token))
    }

    /// Tokens of a JSON value on its own, as `JSON.stringify` prints it.
    #[must_use]
    pub fn json(&self, json: &crate::RawJson) -> Tokens {
        let mut size = Size::default();
        size.json(self.kind, json);
        size.total(self.kind)
    }

    /// Tokens of a message: its text, thinking, tool calls (name and arguments as
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

    fn block(&self, block: &Block, free_images: bool, size: &mut Size) {
        match block {
            Block::Text { text } => size.text(self.kind, text),
            Block::Thinking { thinking, .. } => size.text(self.kind, thinking),
            Block::ToolCall(call) => {
                size.text(self.kind, &call.name);
                size.json(self.kind, &call.arguments);
                size.tokens += u64::from(self.per_call);
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

/// A size being added up: quarter tokens for the character counters, whole tokens for the rest.
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

    fn json(&mut self, kind: CounterKind, json: &crate::RawJson) {
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

/// Without the vocabulary the kind cannot be parsed from a name; a caller that builds it by hand
/// gets the CJK-aware estimate, never a zero.
#[cfg(not(feature = "o200k"))]
fn vocabulary_tokens(text: &str) -> u64 {
    cjk::quarter_tokens(text).div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RawJson, ToolCall};

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
    fn common_cjk_is_one_token_a_character() {
        assert_eq!(count(CounterKind::Cjk, "上下文窗口"), 5);
        assert_eq!(count(CounterKind::Cjk, "abcd"), 1);
    }

    #[test]
    fn ponybunny_charges_fifty_a_call() {
        let call = ToolCall {
            id: "c".into(),
            name: "read".into(),
            arguments: RawJson::from_text(r#"{"path":"a.rs"}"#),
            spelling: Default::default(),
        };
        let message = Message::new(Role::Assistant, vec![Block::ToolCall(call)]);
        assert_eq!(Counter::for_profile(Profile::Openclaw).message(&message), Tokens(5));
        assert_eq!(Counter::for_profile(Profile::Ponybunny).message(&message), Tokens(55));
    }

    #[cfg(feature = "o200k")]
    #[test]
    fn o200k_is_a_real_vocabulary() {
        assert_eq!(count(CounterKind::O200k, "hello world"), 2);
        assert_eq!(count(CounterKind::O200k, &"a".repeat(80_000)), 10_000);
    }
}
