//! The next message of a conversation.

use async_trait::async_trait;
use ctx_core::{
    Block, ChatModel, ChatRequest, ChatStop, Deltas, Error, ErrorKind, Message, Meta, ModelCard,
    Reply, Result, Role, Usage,
};
use ctx_dialect::hygiene::Ids;

use super::asking::Asking;
use super::limits::Limits;
use super::parts::LONGER;
use super::reading::{self, Reading};
use super::{HttpModel, SHORTEST_ANSWER, Stop};
use crate::failure::Asked;

/// What an answer may be of a model whose limits nobody knows.
const LONGEST_ANSWER: u32 = 131_072;

#[async_trait]
impl ChatModel for HttpModel {
    fn card(&self) -> &ModelCard {
        &self.card
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        Self::cost(self, usage)
    }

    async fn answer(&self, request: ChatRequest, deltas: Deltas<'_>) -> Result<Reply> {
        let (headers, secrets) = self.endpoint.headers()?;
        let asked = self.asked(&secrets);
        let most = self.facts.max_output.map_or(u32::MAX, |most| most.0);
        let max_tokens = request.max_tokens.map(|wanted| wanted.0.min(most).max(SHORTEST_ANSWER));
        let asking = Asking {
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
            ..self.asking()
        };
        let mut response = self.send(asking, headers, &asked).await?;
        let limits = Limits::for_answer(max_tokens.unwrap_or(most.min(LONGEST_ANSWER)));
        let api = self.endpoint.api();
        let reading = reading::read(api, &mut response, limits, &asked, deltas).await?;
        let sent = chars(&request);
        self.reply(reading, sent, &asked).map_err(Error::billed)
    }
}

impl HttpModel {
    /// The message of an answer that has come to its end.
    fn reply(&self, reading: Reading<'_>, sent: u64, asked: &Asked<'_>) -> Result<Reply> {
        let Reading { parts, stop, usage, id, .. } = reading;
        let stop = stop.unwrap_or(Stop::End);
        let cut = matches!(stop, Stop::Length | Stop::Window);
        // Calls of servers that name none must be told apart over the whole conversation, in which
        // no answer follows on as much as another.
        let name_call = |at: usize| {
            let prompt = usage.as_ref().map_or(sent, Usage::prompt);
            let seed = format!("{}:{sent}:{prompt}:{at}", id.as_deref().unwrap_or_default());
            format!("call_{}", Ids::Letters { exactly: 9 }.fit(&seed))
        };
        let is_empty = parts.is_empty();
        let blocks = if is_empty {
            Vec::new()
        } else {
            parts.into_blocks(name_call, cut).map_err(|e| e.with("model", asked.name))?
        };
        let is_said = |block: &Block| match block {
            Block::Text { text } => !text.trim().is_empty(),
            Block::ToolCall(_) => true,
            _ => false,
        };
        let is_empty = !blocks.iter().any(is_said);
        // Of a window that is but a guess nobody can say that it was full.
        let window = match self.facts.window_is_assumed {
            true => 0,
            false => self.facts.window.get(),
        };
        self.check(asked, stop, is_empty, usage.as_ref(), sent, window)?;
        if is_empty {
            return Err(nothing_said(&blocks, cut).with("model", asked.name));
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

/// As transcripts say it.
fn stop_reason(stop: ChatStop) -> &'static str {
    match stop {
        ChatStop::ToolUse => "toolUse",
        ChatStop::Length => "length",
        _ => "stop",
    }
}

fn nothing_said(blocks: &[Block], cut: bool) -> Error {
    if cut {
        return Error::new(ErrorKind::Upstream, "the answer reached its limit before it began")
            .with("thought", blocks.iter().any(|b| matches!(b, Block::Thinking { .. })))
            .hint(format!("{LONGER}; a model that thinks needs room for that"));
    }
    Error::new(ErrorKind::Upstream, "the answer is empty").retryable().hint("try again")
}

/// The characters of a prompt, images aside.
fn chars(request: &ChatRequest) -> u64 {
    let text = |text: &str| text.chars().count() as u64;
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let said: u64 = blocks.map(block_chars).sum();
    said + request.system.as_deref().map_or(0, text)
}

fn block_chars(block: &Block) -> u64 {
    let text = |text: &str| text.chars().count() as u64;
    match block {
        Block::Text { text: said } => text(said),
        Block::ToolCall(call) => text(call.arguments.as_str()),
        Block::ToolResult(result) => {
            let texts = result.content.iter().filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            });
            texts.map(text).sum()
        }
        // What is left out on the way, or may be, counts for nothing: this finds prompts of which
        // much too little was read.
        _ => 0,
    }
}
