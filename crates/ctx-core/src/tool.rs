//! Calls of tools, and what tools gave back.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Block, Chars, IMAGE_TOKENS, RawJson};

/// The id that ties a tool call to its result.
pub type CallId = Arc<str>;

/// How a tool call block names itself. All four are in real transcripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CallSpelling {
    /// `tool_use`: Anthropic.
    #[serde(rename = "tool_use")]
    ToolUse,
    /// `toolUse`: Bedrock and older agents.
    #[serde(rename = "toolUse")]
    ToolUseCamel,
    /// `toolCall`: pi.
    #[default]
    #[serde(rename = "toolCall")]
    ToolCall,
    /// `functionCall`: Gemini.
    #[serde(rename = "functionCall")]
    FunctionCall,
}

impl CallSpelling {
    /// The value of the block's `type`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolUse => "tool_use",
            Self::ToolUseCamel => "toolUse",
            Self::ToolCall => "toolCall",
            Self::FunctionCall => "functionCall",
        }
    }

    /// The spelling of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "tool_use" => Some(Self::ToolUse),
            "toolUse" => Some(Self::ToolUseCamel),
            "toolCall" => Some(Self::ToolCall),
            "functionCall" => Some(Self::FunctionCall),
            _ => None,
        }
    }
}

/// A request of the model to run a tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolCall {
    /// Ties the call to its result.
    pub id: CallId,
    /// The tool.
    pub name: String,
    /// The arguments, as the JSON text that was recorded.
    pub arguments: RawJson,
    /// How the block names itself.
    #[serde(default)]
    pub spelling: CallSpelling,
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call this answers.
    pub call_id: CallId,
    /// The tool, where the transcript says so.
    pub name: Option<String>,
    /// Text, images, and blocks of unknown kinds.
    pub content: Vec<Block>,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
}

impl ToolResult {
    /// All text blocks, joined by line breaks.
    #[must_use]
    pub fn plain_text(&self) -> Cow<'_, str> {
        let mut texts = self.content.iter().filter_map(|b| match b {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let Some(first) = texts.next() else { return Cow::Borrowed("") };
        let mut all = Cow::Borrowed(first);
        for text in texts {
            let all = all.to_mut();
            all.push('\n');
            all.push_str(text);
        }
        all
    }

    /// Its size in UTF-16 units: text, the JSON of unknown blocks, and what an image's tokens are
    /// worth at four characters a token.
    #[must_use]
    pub fn chars(&self) -> u64 {
        let size = |block: &Block| match block {
            Block::Text { text } => u64::from(Chars::of(text).0),
            Block::Image(_) => u64::from(IMAGE_TOKENS) * 4,
            Block::Opaque { json } => json.stringified_chars(),
            _ => 0,
        };
        self.content.iter().map(size).sum()
    }
}
