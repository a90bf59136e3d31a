//! Requests for the next message of a conversation.

use async_trait::async_trait;
use ctx_core::{
    Block, ChatModel, ChatRequest, ChatStop, Deltas, Error, ErrorKind, Message, Meta, ModelCard,
    Reply, Result, Role, Usage,
};
use ctx_dialect::hygiene::CallIdFormat;

use super::answer_reader::{self, AnswerReader};
use super::limits::AnswerLimits;
use super::parts::LONGER;
use super::request::ModelRequest;
use super::{HttpModel, SHORTEST_ANSWER, Stop};
use crate::failure::ErrorContext;

/// Maximum answer length for a model with unknown limits.
const LONGEST_ANSWER: u32 = 131_072;

#[async_trait]
impl ChatModel for HttpModel {
    fn card(&self) -> &ModelCard {
        &self.card
    }

    async fn answer(&self, request: ChatRequest, deltas: Deltas<'_>) -> Result<Reply> {
        let (headers, secrets) = self.endpoint.headers()?;
        let context = self.error_context(&secrets);
        let most = self.facts.max_output.map_or(u32::MAX, |most| most.0);
        let max_tokens = request.max_tokens.map(|wanted| wanted.0.min(most).max(SHORTEST_ANSWER));
        let model_request = ModelRequest {
            system: request.system.as_deref().filter(|system| !system.trim().is_empty()),
            messages: &request.messages,
            tools: &request.tools,
            max_tokens,
            session_id: request.session_id.as_deref(),
            thinking: request
                .thinking
                .as_deref()
                .map(|level| if level == "off" { "none" } else { level }),
            is_conversation: true,
            ..self.base_request()
        };
        let mut response = self.send(model_request, headers, &context).await?;
        let limits = AnswerLimits::for_answer(max_tokens.unwrap_or(most.min(LONGEST_ANSWER)));
        let api = self.endpoint.api();
        let reader = answer_reader::read(api, &mut response, limits, &context, deltas).await?;
        let sent = chars(&request);
        self.reply(reader, sent, &context).map_err(Error::billed)
    }
}

impl HttpModel {
    /// Builds the message from a complete answer.
    fn reply(
        &self,
        reader: AnswerReader<'_>,
        sent: u64,
        context: &ErrorContext<'_>,
    ) -> Result<Reply> {
        let AnswerReader { parts, stop, usage, id, .. } = reader;
        let stop = stop.unwrap_or(Stop::End);
        let cut = matches!(stop, Stop::Length | Stop::Window);
        // The id generated for a call must be unique in the whole conversation. No two of its
        // answers follow a prompt of the same size.
        let name_call = |at: usize| {
            let prompt = usage.as_ref().map_or(sent, Usage::prompt);
            let seed = format!("{}:{sent}:{prompt}:{at}", id.as_deref().unwrap_or_default());
            format!("call_{}", CallIdFormat::Letters { exactly: 9 }.fit(&seed))
        };
        let blocks =
            parts.into_blocks(name_call, cut).map_err(|e| e.with("model", context.name))?;
        let is_content = |block: &Block| match block {
            Block::Text { text } => !text.trim().is_empty(),
            Block::ToolCall(_) => true,
            _ => false,
        };
        let is_empty = !blocks.iter().any(is_content);
        // If the window is only assumed, a full window cannot be detected.
        let window = if self.facts.window_is_assumed { 0 } else { self.facts.window.get() };
        self.check(context, stop, is_empty, usage.as_ref(), sent, window)?;
        if is_empty {
            return Err(empty_answer(&blocks, cut).with("model", context.name));
        }
        let calls = blocks.iter().any(|block| matches!(block, Block::ToolCall(_)));
        let stop = match cut {
            _ if calls => ChatStop::ToolUse,
            true => ChatStop::Length,
            false => ChatStop::End,
        };
        let meta = Meta {
            api: Some(self.card.api.clone()),
            provider: Some(self.card.provider.clone()),
            model: Some(self.card.id.clone()),
            response_id: id,
            usage,
            stop_reason: Some(stop_reason(stop).to_owned()),
            ..Meta::default()
        };
        Ok(Reply { message: Message { role: Role::Assistant, blocks, meta }, stop })
    }
}

/// Returns the stop reason as written in transcripts.
fn stop_reason(stop: ChatStop) -> &'static str {
    match stop {
        ChatStop::ToolUse => "toolUse",
        ChatStop::Length => "length",
        _ => "stop",
    }
}

fn empty_answer(blocks: &[Block], cut: bool) -> Error {
    if cut {
        return Error::new(ErrorKind::Upstream, "the answer reached its limit before it began")
            .with("thought", blocks.iter().any(|b| matches!(b, Block::Thinking { .. })))
            .hint(format!("{LONGER}; a model that thinks needs tokens for its thinking"));
    }
    Error::new(ErrorKind::Upstream, "the answer is empty").retryable().hint("try again")
}

/// Returns the number of characters of a prompt, without images.
fn chars(request: &ChatRequest) -> u64 {
    let text = |text: &str| text.chars().count() as u64;
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let message_chars: u64 = blocks.map(block_chars).sum();
    message_chars + request.system.as_deref().map_or(0, text)
}

fn block_chars(block: &Block) -> u64 {
    let text = |text: &str| text.chars().count() as u64;
    match block {
        Block::Text { text: content } => text(content),
        Block::ToolCall(call) => text(call.arguments.as_str()),
        Block::ToolResult(result) => {
            let texts = result.content.iter().filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            });
            texts.map(text).sum()
        }
        // Content that may be dropped before sending is not counted: the result is used to detect
        // servers that read only a small part of the prompt.
        _ => 0,
    }
}
