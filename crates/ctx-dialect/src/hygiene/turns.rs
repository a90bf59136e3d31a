//! Puts messages into the order of roles that a provider requires.

use std::borrow::Cow;

use ctx_core::{Block, Message, Role};

use super::Rules;
use crate::anthropic::DROPPED_PLACEHOLDER;

/// The user message inserted after a final answer of the model.
const GO_ON: &str = "Go on.";

/// The model message inserted between tool results and a user message.
const SEEN: &str = "I have seen the results.";

/// The text before images taken from tool results.
const PICTURES: &str = "Images from the tool results above:";

/// Puts messages into the order that the provider requires.
pub(super) fn order<'m>(
    messages: impl Iterator<Item = Cow<'m, Message>>,
    rules: &Rules,
) -> Vec<Cow<'m, Message>> {
    let mut order = TurnOrder { rules, out: Vec::new(), images: Vec::new() };
    for message in messages.filter(|message| !message.blocks.is_empty()) {
        order.push(message);
    }
    order.show_images();
    let speaks = |message: &&Cow<'_, Message>| message.role != Role::System;
    let says = |text: &str| Cow::Owned(Message::text(Role::User, text));
    let first = order.out.iter().position(|message| speaks(&message));
    if rules.user_first
        && let Some(first) = first.filter(|at| order.out[*at].role != Role::User)
    {
        order.out.insert(first, says(DROPPED_PLACEHOLDER));
    }
    if rules.model_not_last
        && order.out.last().is_some_and(|message| message.role == Role::Assistant)
    {
        order.out.push(says(GO_ON));
    }
    order.out
}

struct TurnOrder<'m, 'r> {
    rules: &'r Rules,
    out: Vec<Cow<'m, Message>>,
    /// Images of the preceding tool results.
    images: Vec<Block>,
}

impl<'m> TurnOrder<'m, '_> {
    fn push(&mut self, mut message: Cow<'m, Message>) {
        if message.role != Role::ToolResult {
            self.show_images();
        } else if self.rules.merges || self.rules.model_after_tools {
            self.take_images(&mut message);
        }
        let has_begun = self.out.iter().any(|message| message.role != Role::System);
        if message.role == Role::System && has_begun && self.rules.merges {
            message.to_mut().role = Role::User;
        }
        self.say(message);
    }

    fn say(&mut self, message: Cow<'m, Message>) {
        let after_tools = self.out.last().is_some_and(|last| last.role == Role::ToolResult);
        if self.rules.model_after_tools && after_tools && message.role == Role::User {
            self.out.push(Cow::Owned(Message::text(Role::Assistant, SEEN)));
        }
        match self.out.last_mut() {
            Some(last)
                if self.rules.merges
                    && last.role == message.role
                    && message.role != Role::ToolResult =>
            {
                last.to_mut().blocks.extend(message.into_owned().blocks);
            }
            _ => self.out.push(message),
        }
    }

    /// Takes the images out of tool results: tool messages contain only text. The user message that
    /// the writer would add for the images is not accepted by these providers.
    fn take_images(&mut self, message: &mut Cow<'m, Message>) {
        let is_picture = |block: &Block| matches!(block, Block::Image(_));
        if !message.tool_results().any(|result| result.content.iter().any(is_picture)) {
            return;
        }
        for block in &mut message.to_mut().blocks {
            if let Block::ToolResult(result) = block {
                for block in &mut result.content {
                    if is_picture(block) {
                        let word = Block::text("[image: see below]");
                        self.images.push(std::mem::replace(block, word));
                    }
                }
            }
        }
    }

    fn show_images(&mut self) {
        if !self.images.is_empty() {
            let mut blocks = vec![Block::text(PICTURES)];
            blocks.append(&mut self.images);
            self.say(Cow::Owned(Message::new(Role::User, blocks)));
        }
    }
}
