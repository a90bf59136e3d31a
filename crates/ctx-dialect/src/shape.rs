//! Message transformations shared by several dialects.

use std::borrow::Cow;
use std::collections::HashMap;

use ctx_core::{Block, CallId, Message, Role};

/// Splits a message into messages of at most one tool result each: results first, then the rest. A
/// message without results, or with just one result, is returned unchanged.
#[must_use]
pub(crate) fn split_results(message: &Message) -> Vec<Cow<'_, Message>> {
    let results = message.tool_results().count();
    if results == 0 || (results == 1 && message.blocks.len() == 1) {
        let as_result = results == 1 && message.role != Role::ToolResult;
        let mut message = Cow::Borrowed(message);
        if as_result {
            message.to_mut().role = Role::ToolResult;
        }
        return vec![message];
    }
    let (results, rest): (Vec<_>, Vec<_>) =
        message.blocks.iter().cloned().partition(|b| matches!(b, Block::ToolResult(_)));
    let with = |role: Role, blocks: Vec<Block>| {
        Cow::Owned(Message { role, blocks, meta: message.meta.clone() })
    };
    let mut out: Vec<_> =
        results.into_iter().map(|block| with(Role::ToolResult, vec![block])).collect();
    if !rest.is_empty() {
        let role = match &message.role {
            Role::ToolResult => Role::User,
            role => role.clone(),
        };
        out.push(with(role, rest));
    }
    out
}

/// Returns what a model sees of a message, split into messages of at most one tool result each.
pub(crate) fn parts(message: &Message) -> Vec<Cow<'_, Message>> {
    match as_user_text(message) {
        None => Vec::new(),
        Some(Cow::Borrowed(message)) => split_results(message),
        Some(Cow::Owned(message)) => {
            let owned = |part: Cow<'_, Message>| Cow::Owned(part.into_owned());
            split_results(&message).into_iter().map(owned).collect()
        }
    }
}

/// Moves each result right after the newest preceding message with its call; results of one message
/// keep their order. A result without a call stays in place.
pub(crate) fn results_after_calls(parts: Vec<Cow<'_, Message>>) -> Vec<Cow<'_, Message>> {
    let mut callers: HashMap<CallId, usize> = HashMap::new();
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); parts.len()];
    let mut moved = vec![false; parts.len()];
    for (at, part) in parts.iter().enumerate() {
        callers.extend(part.tool_calls().map(|call| (call.id.clone(), at)));
        if part.role != Role::ToolResult {
            continue;
        }
        let caller = part.tool_results().next().and_then(|result| callers.get(&result.call_id));
        if let Some(results) = caller.and_then(|&caller| after.get_mut(caller)) {
            results.push(at);
            moved[at] = true;
        }
    }
    let mut parts: Vec<_> = parts.into_iter().map(Some).collect();
    let mut out = Vec::with_capacity(parts.len());
    for at in 0..parts.len() {
        if !moved[at] {
            out.extend(parts[at].take());
            out.extend(after[at].iter().filter_map(|&result| parts[result].take()));
        }
    }
    out
}

/// Converts a message whose role no provider knows: commands, extension messages and summaries
/// become user text, as in pi. Messages of other roles are returned unchanged. Returns `None` for a
/// command that its author excluded from the context.
#[must_use]
pub(crate) fn as_user_text(message: &Message) -> Option<Cow<'_, Message>> {
    if !message.in_model_context() {
        return None;
    }
    let user = |text: String| {
        Some(Cow::Owned(Message {
            role: Role::User,
            blocks: vec![Block::text(text)],
            meta: message.meta.clone(),
        }))
    };
    match &message.role {
        Role::CompactionSummary => user(format!(
            "The conversation history before this point was compacted into the following \
             summary:\n\n<summary>\n{}\n</summary>",
            message.plain_text()
        )),
        Role::BranchSummary => user(format!(
            "The following is a summary of a branch that this conversation came back from:\
             \n\n<summary>\n{}</summary>",
            message.plain_text()
        )),
        Role::BashExecution => {
            let texts: Vec<_> = message.blocks.iter().map(block_text).collect();
            user(texts.join("\n"))
        }
        Role::Custom | Role::Other(_) => {
            let mut message = message.clone();
            message.role = Role::User;
            Some(Cow::Owned(message))
        }
        Role::System | Role::User | Role::Assistant | Role::ToolResult => {
            Some(Cow::Borrowed(message))
        }
    }
}

/// Returns a block as plain text, for places that can contain only text.
pub(crate) fn block_text(block: &Block) -> String {
    match block {
        Block::Text { text } => text.clone(),
        Block::Thinking { thinking, .. } => thinking.clone(),
        Block::ToolCall(call) => format!("{}({})", call.name, call.arguments.as_str()),
        Block::ToolResult(result) => texts(&result.content),
        Block::Image(image) if image.is_url => format!("[image: {}]", image.data),
        Block::Image(image) if !image.mime_type.is_empty() => {
            format!("[image: {}]", image.mime_type)
        }
        Block::Image(_) => "[image]".to_owned(),
        Block::Bash(run) => run.as_text(),
        Block::Opaque { json } => json.as_str().to_owned(),
    }
}

/// Returns the text of several blocks other than results, one per line.
pub(crate) fn texts(blocks: &[Block]) -> String {
    let parts: Vec<_> = blocks
        .iter()
        .map(|block| match block {
            // Parsers never nest results; this limits the depth to two in any case.
            Block::ToolResult(result) => format!("[result of {}]", result.call_id),
            block => block_text(block),
        })
        .collect();
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use ctx_core::BashRun;

    use super::*;

    #[test]
    fn results_come_first_and_alone() {
        let mut message = Message::text(Role::User, "and now?");
        message.blocks.extend(Message::tool_result("a", "1").blocks);
        message.blocks.extend(Message::tool_result("b", "2").blocks);
        let roles: Vec<_> = split_results(&message).iter().map(|m| m.role.clone()).collect();
        assert_eq!(roles, [Role::ToolResult, Role::ToolResult, Role::User]);
    }

    #[test]
    fn commands_read_as_pi_words_them() {
        let run = BashRun { command: "ls".into(), exit_code: Some(2), ..BashRun::default() };
        let message = Message::new(Role::BashExecution, vec![Block::Bash(run.clone())]);
        let text = as_user_text(&message).unwrap().plain_text();
        assert_eq!(text, "Ran `ls`\n(no output)\n\nCommand exited with code 2");
        let hidden = BashRun { exclude_from_context: true, ..run };
        let message = Message::new(Role::BashExecution, vec![Block::Bash(hidden)]);
        assert!(as_user_text(&message).is_none());
    }
}
