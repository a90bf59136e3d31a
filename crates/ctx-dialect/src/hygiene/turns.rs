//! Who speaks when.

use std::borrow::Cow;

use ctx_core::{Block, Message, Role};

use super::Rules;
use crate::anthropic::LEFT_OUT;

/// What the user says where the model has spoken last, and is asked again.
const GO_ON: &str = "Go on.";

/// What the model says between its tools and the user.
const SEEN: &str = "I have seen the results.";

/// What the user says before pictures that tools gave back.
const PICTURES: &str = "Images from the tool results above:";

/// Puts messages in the order in which the provider wants to hear them.
pub(super) fn order<'m>(
    messages: impl Iterator<Item = Cow<'m, Message>>,
    rules: &Rules,
) -> Vec<Cow<'m, Message>> {
    let mut order = Order { rules, out: Vec::new(), pictures: Vec::new() };
    for message in messages.filter(|message| !message.blocks.is_empty()) {
        order.push(message);
    }
    order.show_pictures();
    let speaks = |message: &&Cow<'_, Message>| message.role != Role::System;
    let says = |text: &str| Cow::Owned(Message::text(Role::User, text));
    let first = order.out.iter().position(|message| speaks(&message));
    if rules.user_first
        && let Some(first) = first.filter(|at| order.out[*at].role != Role::User)
    {
        order.out.insert(first, says(LEFT_OUT));
    }
    if rules.model_not_last
        && order.out.last().is_some_and(|message| message.role == Role::Assistant)
    {
        order.out.push(says(GO_ON));
    }
    order.out
}

struct Order<'m, 'r> {
    rules: &'r Rules,
    out: Vec<Cow<'m, Message>>,
    /// Pictures of the tools that have just run.
    pictures: Vec<Block>,
}

impl<'m> Order<'m, '_> {
    fn push(&mut self, mut message: Cow<'m, Message>) {
        if message.role != Role::ToolResult {
            self.show_pictures();
        } else if self.rules.merges || self.rules.model_after_tools {
            self.take_pictures(&mut message);
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

    /// Messages of tools hold text only, and the writer's own way to show pictures after them is
    /// for providers that let the user speak there.
    fn take_pictures(&mut self, message: &mut Cow<'m, Message>) {
        let is_picture = |block: &Block| matches!(block, Block::Image(_));
        if !message.tool_results().any(|result| result.content.iter().any(is_picture)) {
            return;
        }
        for block in &mut message.to_mut().blocks {
            if let Block::ToolResult(result) = block {
                for block in &mut result.content {
                    if is_picture(block) {
                        let word = Block::text("[image: see below]");
                        self.pictures.push(std::mem::replace(block, word));
                    }
                }
            }
        }
    }

    fn show_pictures(&mut self) {
        if !self.pictures.is_empty() {
            let mut blocks = vec![Block::text(PICTURES)];
            blocks.append(&mut self.pictures);
            self.say(Cow::Owned(Message::new(Role::User, blocks)));
        }
    }
}
