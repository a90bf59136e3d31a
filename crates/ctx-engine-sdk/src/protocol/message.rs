//! A message, as engines see it.

use serde::{Deserialize, Serialize};

/// One block of a message. A block of an unknown kind is passed through unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
#[non_exhaustive]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A request to run a tool.
    #[serde(rename_all = "camelCase")]
    ToolCall {
        /// Ties the call to its result.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        #[serde(default)]
        arguments: serde_json::Value,
    },
    /// The result of a tool call.
    #[serde(rename_all = "camelCase")]
    ToolResult {
        /// The call this answers.
        call_id: String,
        /// Text and other blocks.
        content: Vec<Block>,
        /// Whether the tool failed.
        #[serde(default)]
        is_error: bool,
    },
    /// Anything else: thinking, images, commands.
    #[serde(untagged)]
    Other(serde_json::Value),
}

/// A message: a role and its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, `toolResult`, or another one of the transcript.
    pub role: String,
    /// The content.
    pub blocks: Vec<Block>,
}

impl Message {
    /// A text message.
    pub fn text(role: impl Into<String>, text: impl Into<String>) -> Self {
        Self { role: role.into(), blocks: vec![Block::Text { text: text.into() }] }
    }

    /// Returns all text of the message, including text of tool results, joined by line breaks.
    #[must_use]
    pub fn plain_text(&self) -> String {
        let mut texts = Vec::new();
        for block in &self.blocks {
            match block {
                Block::Text { text } => texts.push(text.as_str()),
                Block::ToolResult { content, .. } => {
                    texts.extend(content.iter().filter_map(|block| match block {
                        Block::Text { text } => Some(text.as_str()),
                        _ => None,
                    }));
                }
                _ => {}
            }
        }
        texts.join("\n")
    }
}
