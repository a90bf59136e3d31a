//! Messages and their blocks, whatever provider or agent wrote them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{BashRun, CallId, RawJson, ToolCall, ToolResult};

/// Milliseconds since the Unix epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// Who speaks. Names are those of pi's session format.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Instructions; always kept.
    System,
    /// The person, or a host acting for them.
    User,
    /// The model.
    Assistant,
    /// The output of tools.
    ToolResult,
    /// A command the person ran beside the model; the model sees it as user text.
    BashExecution,
    /// A message injected by an extension; the model sees it as user text.
    Custom,
    /// A summary that stands for compacted history; the model sees it as user text.
    CompactionSummary,
    /// A summary of a branch that was left; the model sees it as user text.
    BranchSummary,
    /// A role this version does not know. It is carried through.
    #[serde(untagged)]
    Other(Arc<str>),
}

impl Role {
    /// The name as pi writes it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::ToolResult => "toolResult",
            Self::BashExecution => "bashExecution",
            Self::Custom => "custom",
            Self::CompactionSummary => "compactionSummary",
            Self::BranchSummary => "branchSummary",
            Self::Other(name) => name,
        }
    }

    /// The role of that name; unknown names become [`Role::Other`].
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "system" | "developer" => Self::System,
            "user" => Self::User,
            "assistant" | "model" => Self::Assistant,
            "toolResult" | "tool" | "function" => Self::ToolResult,
            "bashExecution" => Self::BashExecution,
            "custom" | "hookMessage" => Self::Custom,
            "compactionSummary" => Self::CompactionSummary,
            "branchSummary" => Self::BranchSummary,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A picture, inline or by reference.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// For example `image/png`; empty when the transcript does not say.
    pub mime_type: String,
    /// Base64 data, or a URL when `is_url`.
    pub data: Arc<str>,
    /// Whether `data` is a URL.
    #[serde(default)]
    pub is_url: bool,
}

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", try_from = "crate::block_json::BlockFields")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's reasoning.
    Thinking {
        /// The reasoning; empty when it came encrypted.
        thinking: String,
        /// The provider's proof that it wrote it.
        signature: Option<String>,
    },
    /// A request to run a tool.
    ToolCall(ToolCall),
    /// What a tool gave back.
    ToolResult(ToolResult),
    /// A picture.
    Image(Image),
    /// A command the person ran.
    Bash(BashRun),
    /// A block of a kind this version does not know, as recorded.
    Opaque {
        /// The block's JSON.
        json: RawJson,
    },
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// What a provider reported for one answer, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to the cache.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Prompt tokens read from the cache.
    pub cache_read: u64,
    /// Prompt tokens written to the cache.
    pub cache_write: u64,
    /// Those of them that are kept for an hour: Anthropic charges twice the price of fresh tokens.
    pub cache_write_hour: u64,
    /// The provider's own sum, where it gives one.
    pub total_tokens: Option<u64>,
}

impl Usage {
    /// More tokens than that are a fault of who reported them.
    pub const MOST: u64 = 10_000_000;

    /// Whether it can be the report of a request: some clients write zeros, and a damaged file any
    /// number.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        (1..=Self::MOST).contains(&self.prompt())
    }

    /// Tokens of the answer, where the report of it can be one.
    #[must_use]
    pub fn answer(&self) -> Option<u64> {
        Some(self.output).filter(|output| (1..=Self::MOST).contains(output))
    }

    /// Prompt tokens: fresh, read and written.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// The reported total, or the sum of the parts.
    #[must_use]
    pub fn total(&self) -> u64 {
        match self.total_tokens {
            Some(total) if total > 0 => total,
            _ => self.prompt().saturating_add(self.output),
        }
    }
}

/// What a transcript says about a message besides its content. All of it is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// When it was written.
    pub timestamp: Option<Timestamp>,
    /// The API family that answered, for example `anthropic-messages`.
    pub api: Option<String>,
    /// The provider that answered.
    pub provider: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The provider's id of the answer.
    pub response_id: Option<String>,
    /// What the provider reported.
    pub usage: Option<Usage>,
    /// Why the answer ended: `stop`, `length`, `toolUse`, `error`, `aborted`.
    pub stop_reason: Option<String>,
    /// The provider's error text.
    pub error_message: Option<String>,
    /// The speaker's name, where several speak in one role.
    pub name: Option<String>,
    /// For [`Role::Custom`]: the extension's own type. For [`Role::System`]: `developer` where the
    /// transcript calls the role so.
    pub custom_type: Option<String>,
    /// For [`Role::CompactionSummary`]: the tokens it stands for.
    pub tokens_before: Option<u64>,
    /// For [`Role::CompactionSummary`]: what its method had to say of itself, as recorded.
    pub details: Option<RawJson>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub blocks: Vec<Block>,
    /// What the transcript says about it.
    #[serde(default)]
    pub meta: Meta,
}

impl Message {
    /// A message of `role` with `blocks` and nothing else known about it.
    #[must_use]
    pub fn new(role: Role, blocks: Vec<Block>) -> Self {
        Self { role, blocks, meta: Meta::default() }
    }

    /// A text message.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, vec![Block::text(text)])
    }

    /// A result for `call_id`, as a message of its own.
    pub fn tool_result(call_id: impl Into<CallId>, text: impl Into<String>) -> Self {
        let result = ToolResult {
            call_id: call_id.into(),
            name: None,
            content: vec![Block::text(text)],
            is_error: false,
        };
        Self::new(Role::ToolResult, vec![Block::ToolResult(result)])
    }

    /// The tool calls in it.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|b| match b {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The tool results in it.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.blocks.iter().filter_map(|b| match b {
            Block::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// All text blocks of the message itself (not of its tool results), joined by line breaks.
    #[must_use]
    pub fn plain_text(&self) -> String {
        let mut out = String::new();
        for block in &self.blocks {
            if let Block::Text { text } = block {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(text);
            }
        }
        out
    }

    /// Whether the model sees it at all: a command excluded by its author is not sent.
    #[must_use]
    pub fn in_model_context(&self) -> bool {
        !self.blocks.iter().any(|b| matches!(b, Block::Bash(run) if run.exclude_from_context))
    }
}
