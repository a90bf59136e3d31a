//! Cleans the blocks of one message for a provider.

use std::borrow::Cow;

use ctx_core::{Block, Image, Message, RawJson, Role, ToolCall};

use super::{Rules, Thoughts};
use crate::json::{Object, ObjectWriter, relaxed, string, value};
use crate::openai_chat::names_a_field;
use crate::shape::block_text;

/// The text of an empty result: some providers refuse empty ones.
const NO_OUTPUT: &str = "(no output)";

/// Maximum length of a tool name.
const LONGEST_NAME: usize = 64;

/// Anthropic block types that are passed through in answers of the same or an unknown model.
const ANTHROPIC_OWN: [&str; 7] = [
    "redacted_thinking",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
];

/// Anthropic block types that are passed through in user messages.
const ANTHROPIC_USER: [&str; 3] = ["document", "search_result", "container_upload"];

/// Removes the parts of a message that the provider would refuse. `in_turn`: whether the message
/// comes after the last user message.
pub(super) fn clean<'m>(
    message: Cow<'m, Message>,
    rules: &Rules,
    in_turn: bool,
) -> Cow<'m, Message> {
    let mut message = message;
    let has_name = message.meta.name.is_some() || message.meta.custom_type.is_some();
    if has_name && !(rules.names && message.meta.name.as_deref().is_none_or(is_name)) {
        let meta = &mut message.to_mut().meta;
        meta.name = None;
        meta.custom_type = None;
    }
    let own = BlockCleaner { is_foreign: is_foreign(&message, rules), in_turn, rules };
    let kept: Vec<_> = message.blocks.iter().map(|block| own.block(&message.role, block)).collect();
    let mut blocks: Vec<_> = kept.into_iter().flatten().collect();
    // If the content after reasoning was dropped, the reasoning is dropped too.
    if message.role == Role::Assistant {
        while blocks.last().is_some_and(|block| is_thought(block)) {
            blocks.pop();
        }
    }
    let is_same = blocks.len() == message.blocks.len()
        && blocks.iter().all(|block| matches!(block, Cow::Borrowed(_)));
    if is_same {
        drop(blocks);
        return message;
    }
    let blocks = blocks.into_iter().map(Cow::into_owned).collect();
    message.to_mut().blocks = blocks;
    message
}

/// Whether a message is known to be an answer of another model.
fn is_foreign(message: &Message, rules: &Rules) -> bool {
    let differs = |name: Option<&str>, own: &str| {
        name.is_some_and(|name| name != "unknown" && !name.eq_ignore_ascii_case(own))
    };
    let meta = &message.meta;
    differs(meta.api.as_deref(), &rules.api)
        || differs(meta.provider.as_deref(), &rules.provider)
        || differs(meta.model.as_deref(), &rules.model)
}

fn is_thought(block: &Block) -> bool {
    match block {
        Block::Thinking { .. } => true,
        Block::Opaque { json } => kind(json).as_deref() == Some("redacted_thinking"),
        _ => false,
    }
}

struct BlockCleaner<'r> {
    is_foreign: bool,
    in_turn: bool,
    rules: &'r Rules,
}

impl BlockCleaner<'_> {
    fn block<'b>(&self, role: &Role, block: &'b Block) -> Option<Cow<'b, Block>> {
        let is_model = *role == Role::Assistant;
        match block {
            Block::Text { text } => (!text.trim().is_empty()).then_some(Cow::Borrowed(block)),
            Block::Thinking { signature, .. } => {
                let keeps =
                    is_model && !self.is_foreign && self.takes_thought(signature.as_deref());
                keeps.then_some(Cow::Borrowed(block))
            }
            Block::ToolCall(call) if is_model => Some(
                mend_call(call)
                    .map_or(Cow::Borrowed(block), |call| Cow::Owned(Block::ToolCall(call))),
            ),
            Block::ToolResult(result) if *role == Role::ToolResult => {
                let content: Vec<_> =
                    result.content.iter().filter_map(|block| self.inner(block)).collect();
                let is_same = content.len() == result.content.len()
                    && !content.is_empty()
                    && content.iter().all(|block| matches!(block, Cow::Borrowed(_)));
                if is_same {
                    return Some(Cow::Borrowed(block));
                }
                let mut content: Vec<_> = content.into_iter().map(Cow::into_owned).collect();
                if content.is_empty() {
                    content.push(Block::text(NO_OUTPUT));
                }
                let result = ctx_core::ToolResult { content, ..result.clone() };
                Some(Cow::Owned(Block::ToolResult(result)))
            }
            Block::ToolCall(_) | Block::ToolResult(_) | Block::Bash(_) => text_of(block),
            Block::Image(image) if is_model || *role == Role::System => as_text(image),
            Block::Image(image) => self.image(block, image),
            Block::Opaque { json } => self.opaque(block, json, is_model),
        }
    }

    /// Cleans a block inside a result.
    fn inner<'b>(&self, block: &'b Block) -> Option<Cow<'b, Block>> {
        match block {
            Block::Text { text } => (!text.trim().is_empty()).then_some(Cow::Borrowed(block)),
            Block::Image(image) => self.image(block, image),
            Block::Opaque { json } if kind(json).is_some_and(|kind| self.is_document(&kind)) => {
                Some(Cow::Borrowed(block))
            }
            block => text_of(block),
        }
    }

    fn takes_thought(&self, signature: Option<&str>) -> bool {
        let Some(signature) = signature else { return false };
        match self.rules.thoughts {
            Thoughts::None => false,
            Thoughts::Proved => !signature.is_empty() && !names_a_field(signature),
            Thoughts::Named => names_a_field(signature),
            Thoughts::NamedThisTurn => self.in_turn && names_a_field(signature),
        }
    }

    fn image<'b>(&self, block: &'b Block, image: &Image) -> Option<Cow<'b, Block>> {
        if !self.rules.images {
            return as_text(image);
        }
        if image.is_url {
            let is_web = ["http://", "https://"].iter().any(|web| image.data.starts_with(web));
            return if is_web { Some(Cow::Borrowed(block)) } else { as_text(image) };
        }
        match form(&image.data) {
            // An image with a wrong MIME type is refused.
            Some(form) if form == image.mime_type => Some(Cow::Borrowed(block)),
            Some(form) => {
                let image = Image { mime_type: form.to_owned(), ..image.clone() };
                Some(Cow::Owned(Block::Image(image)))
            }
            None => as_text(image),
        }
    }

    fn opaque<'b>(
        &self,
        block: &'b Block,
        json: &RawJson,
        is_model: bool,
    ) -> Option<Cow<'b, Block>> {
        let kind = kind(json);
        let is = |known: &[&str]| kind.as_deref().is_some_and(|kind| known.contains(&kind));
        let is_own = !self.is_foreign && self.rules.thoughts != Thoughts::None;
        match self.rules.api.as_str() {
            "anthropic-messages" if is_model => {
                (is_own && is(&ANTHROPIC_OWN)).then_some(Cow::Borrowed(block))
            }
            "openai-responses" if is_model => is_own.then_some(Cow::Borrowed(block)),
            _ if is_model => None,
            "anthropic-messages" if is(&ANTHROPIC_USER) => Some(Cow::Borrowed(block)),
            "anthropic-messages" => text_of(block),
            // The writers of the other dialects decide which opaque parts they keep.
            _ => Some(Cow::Borrowed(block)),
        }
    }

    fn is_document(&self, kind: &str) -> bool {
        self.rules.api == "anthropic-messages" && matches!(kind, "document" | "search_result")
    }
}

fn kind(json: &RawJson) -> Option<String> {
    Object::parse(json.as_str()).ok()?.owned("type")
}

fn text_of<'b>(block: &Block) -> Option<Cow<'b, Block>> {
    let text = block_text(block);
    (!text.trim().is_empty()).then(|| Cow::Owned(Block::text(text)))
}

/// Replaces an image by text, without its URL: an image that is not sent is not disclosed.
fn as_text<'b>(image: &Image) -> Option<Cow<'b, Block>> {
    let word = match image.mime_type.as_str() {
        "" => "[image]".to_owned(),
        form => format!("[image: {}]", form.chars().take(40).collect::<String>()),
    };
    Some(Cow::Owned(Block::text(word)))
}

/// Returns the MIME type of a base64 image, from its first bytes; `None` if no provider accepts it.
fn form(data: &str) -> Option<&'static str> {
    let is_base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    if !data.bytes().all(is_base64) {
        return None;
    }
    let forms = [
        ("iVBOR", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        ("UklGR", "image/webp"),
    ];
    forms.iter().find(|(start, _)| data.starts_with(start)).map(|(_, form)| *form)
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(fits)
}

/// Returns the call with a valid name and arguments; `None` if both are valid already.
fn mend_call(call: &ToolCall) -> Option<ToolCall> {
    let arguments = mend_arguments(&call.arguments);
    if is_name(&call.name) && arguments.is_none() {
        return None;
    }
    let mut call = call.clone();
    if !is_name(&call.name) {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let mended = call.name.chars().map(|c| if fits(c) { c } else { '_' });
        call.name = mended.take(LONGEST_NAME).collect();
        if call.name.is_empty() {
            call.name.push_str("unnamed");
        }
    }
    call.arguments = arguments.unwrap_or(call.arguments);
    Some(call)
}

/// Returns the arguments as an object; `None` if they already are one. Text that parses as an
/// object becomes one; anything else is wrapped under `arguments`.
fn mend_arguments(arguments: &RawJson) -> Option<RawJson> {
    let text = arguments.as_str().trim();
    let object = |text: &str| text.starts_with('{') && value(text).is_ok();
    if object(text) {
        return None;
    }
    let raw = value(text).ok();
    let inner = raw.and_then(string);
    let inner = inner.as_deref().unwrap_or(text);
    let mended = match inner.trim() {
        "" | "null" => "{}".to_owned(),
        inner if object(inner) => inner.to_owned(),
        inner => match relaxed(inner).filter(|mended| object(mended)) {
            Some(mended) => mended,
            None if raw.is_some() => ObjectWriter::new().raw("arguments", text).end(),
            None => ObjectWriter::new().text("arguments", text).end(),
        },
    };
    Some(RawJson::from_text(mended))
}
