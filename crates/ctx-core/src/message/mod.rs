//! Messages and their blocks, independent of the provider or agent that wrote them.

mod bash_run;
mod block_json;
mod tool;

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::RawJson;

pub use bash_run::BashRun;
pub use tool::{CallId, CallSpelling, ToolCall, ToolResult};

/// Milliseconds since the Unix epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl From<SystemTime> for Timestamp {
    /// A time before 1970 becomes 1970.
    fn from(at: SystemTime) -> Self {
        let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The role of a message, named as in pi's session format.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Instructions; always kept.
    System,
    /// The user, or a host acting for the user.
    User,
    /// The model.
    Assistant,
    /// The output of tools.
    ToolResult,
    /// A command that the user ran outside the model; the model sees it as user text.
    BashExecution,
    /// A message injected by an extension; the model sees it as user text.
    Custom,
    /// A summary that replaces compacted history; the model sees it as user text.
    CompactionSummary,
    /// A summary of an abandoned branch; the model sees it as user text.
    BranchSummary,
    /// A role unknown to this version. It is preserved.
    #[serde(untagged)]
    Other(Arc<str>),
}

impl Role {
    /// Returns the name that pi uses.
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

    /// Returns the role with that name; unknown names become [`Role::Other`].
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

/// An image, inline or by reference.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// For example `image/png`; empty if the transcript does not record it.
    pub mime_type: String,
    /// Base64 data, or a URL when `is_url`.
    pub data: Arc<str>,
    /// Whether `data` is a URL.
    #[serde(default)]
    pub is_url: bool,
}

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", try_from = "block_json::BlockFields")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's reasoning.
    Thinking {
        /// The reasoning; empty if it is encrypted.
        thinking: String,
        /// The provider's signature of the reasoning.
        signature: Option<String>,
    },
    /// A request to run a tool.
    ToolCall(ToolCall),
    /// The output of a tool.
    ToolResult(ToolResult),
    /// An image.
    Image(Image),
    /// A command that the user ran.
    Bash(BashRun),
    /// A block of a kind unknown to this version, as recorded.
    Opaque {
        /// The block's JSON.
        json: RawJson,
    },
}

impl Block {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// The tokens that a provider reported for one answer.
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
    /// The part of `cache_write` cached for an hour: Anthropic charges twice the price of fresh
    /// tokens for it.
    pub cache_write_hour: u64,
    /// The total reported by the provider, if any.
    pub total_tokens: Option<u64>,
}

impl Usage {
    /// The highest plausible number of tokens; a larger report is an error.
    pub const MAX: u64 = 10_000_000;

    /// Whether it can be the usage of a real request: some clients write zeros, and a damaged file
    /// may contain any number.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        (1..=Self::MAX).contains(&self.prompt())
    }

    /// Returns the tokens of the answer, if the reported number is plausible.
    #[must_use]
    pub fn answer(&self) -> Option<u64> {
        Some(self.output).filter(|output| (1..=Self::MAX).contains(output))
    }

    /// Returns the prompt tokens: fresh, read and written.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Returns the reported total, or the sum of the parts.
    #[must_use]
    pub fn total(&self) -> u64 {
        match self.total_tokens {
            Some(total) if total > 0 => total,
            _ => self.prompt().saturating_add(self.output),
        }
    }
}

/// The metadata of a message. All fields are optional.
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
    /// The usage that the provider reported.
    pub usage: Option<Usage>,
    /// The reason why the answer ended: `stop`, `length`, `toolUse`, `error`, `aborted`.
    pub stop_reason: Option<String>,
    /// The error text of the provider.
    pub error_message: Option<String>,
    /// The name of the speaker, if several share one role.
    pub name: Option<String>,
    /// For [`Role::Custom`]: the extension's own type. For [`Role::System`]: `developer` if the
    /// transcript uses that name for the role.
    pub custom_type: Option<String>,
    /// For [`Role::Custom`]: whether the host hides it from the user. The model sees it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Whether the message must stay in each request: it replaces messages that ctx does not see.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// For [`Role::CompactionSummary`]: the tokens that it replaces.
    pub tokens_before: Option<u64>,
    /// For [`Role::CompactionSummary`]: details of the compaction method, as recorded.
    pub details: Option<RawJson>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    /// The role.
    pub role: Role,
    /// The content.
    pub blocks: Vec<Block>,
    /// The metadata from the transcript.
    #[serde(default)]
    pub meta: Meta,
}

impl Message {
    /// Creates a message of `role` with `blocks` and without metadata.
    #[must_use]
    pub fn new(role: Role, blocks: Vec<Block>) -> Self {
        Self { role, blocks, meta: Meta::default() }
    }

    /// Creates a text message.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, vec![Block::text(text)])
    }

    /// Creates a message with one tool result for `call_id`.
    pub fn tool_result(call_id: impl Into<CallId>, text: impl Into<String>) -> Self {
        let result = ToolResult {
            call_id: call_id.into(),
            name: None,
            content: vec![Block::text(text)],
            is_error: false,
        };
        Self::new(Role::ToolResult, vec![Block::ToolResult(result)])
    }

    /// Returns the tool calls of the message.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|b| match b {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the tool results of the message.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.blocks.iter().filter_map(|b| match b {
            Block::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// Returns the message with new content for the tool results that `change` replaces; `None` if
    /// it replaces none. `change` receives each result with its index.
    #[must_use]
    pub fn with_results(
        &self,
        mut change: impl FnMut(usize, &ToolResult) -> Option<Vec<Block>>,
    ) -> Option<Self> {
        let results = self.tool_results().enumerate();
        let changes: Vec<_> = results.map(|(index, result)| change(index, result)).collect();
        changes.iter().any(Option::is_some).then(|| {
            let mut changes = changes.into_iter();
            let changed = |block: &Block| match block {
                Block::ToolResult(result) => Block::ToolResult(ToolResult {
                    call_id: result.call_id.clone(),
                    name: result.name.clone(),
                    content: changes.next().flatten().unwrap_or_else(|| result.content.clone()),
                    is_error: result.is_error,
                }),
                block => block.clone(),
            };
            let blocks = self.blocks.iter().map(changed).collect();
            Self { role: self.role.clone(), blocks, meta: self.meta.clone() }
        })
    }

    /// Returns the text blocks of the message itself, without its tool results, joined by line
    /// breaks.
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

    /// Whether the message is visible to the model: a command that the user excluded is not sent.
    #[must_use]
    pub fn in_model_context(&self) -> bool {
        !self.blocks.iter().any(|b| matches!(b, Block::Bash(run) if run.exclude_from_context))
    }
}
