//! The messages of a job as they are shown to one model.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ctx_core::text::without_middle;
use ctx_core::{Block, Counter, MIDDLE_OMITTED_NOTICE, Message, RawJson, Tokens};

use crate::prompts::without_markers;
use crate::{
    Job, SAFETY_MARGIN, Said, SerializeOptions, chunk_by_max_tokens, is_oversized_for_summary,
    oversized_note, serialize,
};

/// What is sent of each message.
pub(crate) struct Material {
    texts: Vec<String>,
    sizes: Vec<Tokens>,
    groups: Vec<u32>,
    /// Whether each message is sent: not one that is too large, nor one that says nothing.
    sent: Vec<bool>,
    /// What stands for messages that are too large.
    pub(crate) omitted: Vec<String>,
}

impl Material {
    /// What a model with a window of that size is shown.
    pub(crate) fn of(job: &Job, window: Tokens) -> Self {
        let options = SerializeOptions {
            thinking: job.config.serialize_thinking,
            citations: true,
            // More could not be sent in any case; it bounds the work on a giant.
            text_chars: Some(job.counter.most_chars(window)),
            ..SerializeOptions::default()
        };
        let len = job.said.len();
        let mut material = Self {
            texts: Vec::with_capacity(len),
            sizes: Vec::with_capacity(len),
            groups: if job.groups.len() == len { job.groups.clone() } else { Vec::new() },
            sent: Vec::with_capacity(len),
            omitted: Vec::new(),
        };
        for (at, said) in job.said.iter().enumerate() {
            let size = job.sizes.get(at).copied();
            let size = size.unwrap_or_else(|| job.counter.message(&said.message));
            let text = if is_oversized_for_summary(size, window) {
                let note = oversized_note(&said.message.role, size);
                material.omitted.push(note.clone());
                material.sent.push(false);
                note
            } else {
                let text = serialize(&[disarmed(said)], &options);
                material.sent.push(!text.is_empty());
                text
            };
            material.sizes.push(size_of(&text, &job.counter));
            material.texts.push(text);
        }
        material
    }

    pub(crate) fn sizes(&self) -> &[Tokens] {
        &self.sizes
    }

    pub(crate) fn groups(&self, range: Range<usize>) -> &[u32] {
        self.groups.get(range).unwrap_or_default()
    }

    /// Whether there is anything to summarise in a range.
    pub(crate) fn says_something(&self, range: Range<usize>) -> bool {
        self.sent.get(range).unwrap_or_default().contains(&true)
    }

    /// Bounds each message, so that none is larger than `max` with its margin.
    pub(crate) fn bound(&mut self, max: Tokens, counter: &Counter) {
        let max = max.scale(1.0 / SAFETY_MARGIN);
        for (text, size) in self.texts.iter_mut().zip(&mut self.sizes) {
            if *size > max {
                *text = without_middle(text, MIDDLE_OMITTED_NOTICE, max - Tokens(1), counter);
                *size = size_of(text, counter);
            }
        }
    }

    /// Chunks of `range` of at most `max` tokens each, margin included. A call stays with its
    /// results unless they alone are more.
    pub(crate) fn chunks(&self, range: Range<usize>, max: Tokens) -> Vec<Range<usize>> {
        let sizes = self.sizes.get(range.clone()).unwrap_or_default();
        let groups = self.groups(range.clone());
        let mut chunks = Vec::new();
        for chunk in chunk_by_max_tokens(sizes, groups, max) {
            let sizes = sizes.get(chunk.clone()).unwrap_or_default();
            let start = range.start + chunk.start;
            let size: Tokens = sizes.iter().copied().sum();
            if size.scale(SAFETY_MARGIN) <= max || chunk.len() == 1 {
                chunks.push(start..start + chunk.len());
            } else {
                let parts = chunk_by_max_tokens(sizes, &[], max);
                chunks.extend(parts.into_iter().map(|part| start + part.start..start + part.end));
            }
        }
        chunks
    }

    /// The text of a range.
    pub(crate) fn text(&self, range: Range<usize>) -> String {
        let texts = self.texts.get(range).unwrap_or_default();
        texts
            .iter()
            .filter(|text| !text.is_empty())
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("\n\n")
    }
}

/// The text's tokens with the blank line behind it.
fn size_of(text: &str, counter: &Counter) -> Tokens {
    if text.is_empty() { Tokens::ZERO } else { counter.text(text) + Tokens(1) }
}

/// The message with nothing in it that could pass for another message.
fn disarmed(said: &Said) -> Said {
    let mut said = said.clone();
    if said.id.contains(|c: char| c.is_control() || c.is_whitespace() || "[]<>".contains(c)) {
        let plain = |c: &char| !c.is_control() && !c.is_whitespace() && !"[]<>".contains(*c);
        said.id = said.id.chars().filter(plain).collect::<String>().into();
    }
    if said.message.blocks.iter().any(|block| matches!(disarmed_block(block), Cow::Owned(_))) {
        let blocks = said.message.blocks.iter().map(|b| disarmed_block(b).into_owned()).collect();
        let message = Message { blocks, ..Message::clone(&said.message) };
        said.message = Arc::new(message);
    }
    said
}

fn disarmed_block(block: &Block) -> Cow<'_, Block> {
    let changed = match block {
        Block::Text { text } => without_markers(text).map(|text| Block::Text { text }),
        Block::Thinking { thinking, signature } => without_markers(thinking)
            .map(|thinking| Block::Thinking { thinking, signature: signature.clone() }),
        Block::Bash(run) => {
            let (command, output) = (without_markers(&run.command), without_markers(&run.output));
            (command.is_some() || output.is_some()).then(|| {
                let mut run = run.clone();
                run.command = command.unwrap_or(run.command);
                run.output = output.unwrap_or(run.output);
                Block::Bash(run)
            })
        }
        Block::ToolCall(call) => {
            let name = without_markers(&call.name);
            let arguments = plain_arguments(&call.arguments);
            (name.is_some() || arguments.is_some()).then(|| {
                let mut call = call.clone();
                call.name = name.unwrap_or(call.name);
                call.arguments = arguments.unwrap_or(call.arguments);
                Block::ToolCall(call)
            })
        }
        Block::ToolResult(result) => {
            let texts: Vec<_> = result.content.iter().map(disarmed_text).collect();
            texts.iter().any(|text| matches!(text, Cow::Owned(_))).then(|| {
                let mut result = result.clone();
                result.content = texts.into_iter().map(Cow::into_owned).collect();
                Block::ToolResult(result)
            })
        }
        _ => None,
    };
    changed.map_or(Cow::Borrowed(block), Cow::Owned)
}

/// A block within a tool result: only text counts there, so that nothing has to be followed further
/// down.
fn disarmed_text(block: &Block) -> Cow<'_, Block> {
    match block {
        Block::Text { text } => match without_markers(text) {
            Some(text) => Cow::Owned(Block::Text { text }),
            None => Cow::Borrowed(block),
        },
        _ => Cow::Borrowed(block),
    }
}

/// Arguments whose keys hold line breaks, as one JSON string: written out key by key they could
/// begin a line. The same for arguments that are no JSON.
fn plain_arguments(arguments: &RawJson) -> Option<RawJson> {
    let text = arguments.as_str();
    let marked = without_markers(text);
    let keys = || {
        let fields: Result<indexmap::IndexMap<String, serde::de::IgnoredAny>, _> =
            serde_json::from_str(text);
        fields.is_ok_and(|fields| fields.keys().any(|key| key.contains(char::is_control)))
    };
    if marked.is_none() && !(text.contains('\\') && keys()) {
        return None;
    }
    let quoted = serde_json::to_string(marked.as_deref().unwrap_or(text)).ok()?;
    Some(RawJson::from_text(quoted))
}
