//! The input of a format's writer in a conversion, and the omissions of a conversion.

use std::sync::Arc;

use ctx_core::{Block, Entry, Message, Result, Role};
use serde_json::value::RawValue;

use crate::formats::Format;

/// A conversation without the entries around its messages.
#[derive(Default)]
pub(crate) struct Conversation {
    pub(crate) system: Option<String>,
    /// The tool schemas, as JSON.
    pub(crate) tools: Option<String>,
    /// Summaries, each with the number of messages that it replaces.
    pub(crate) summaries: Vec<(Arc<Entry>, Option<usize>)>,
    pub(crate) entries: Vec<Arc<Entry>>,
}

impl Conversation {
    /// Returns the messages of a request to a provider, and their number without system messages.
    pub(super) fn request(
        &self,
        to: Format,
        omissions: &mut Omissions,
    ) -> Result<(Vec<Message>, usize)> {
        let system = self.system.as_ref().map(|text| Message::text(Role::System, text));
        let mut messages: Vec<Message> = system.into_iter().collect();
        let summaries = self.summaries.iter().map(|(entry, _)| entry);
        for entry in summaries.chain(&self.entries) {
            messages.push(entry.message()?.as_ref().clone());
        }
        let counted = || messages.iter().filter(|message| message.role != Role::System);
        counted().for_each(|message| omissions.of_message(message, to));
        let count = counted().count();
        Ok((messages, count))
    }

    /// Returns the tools as `convert` writes them.
    pub(super) fn written_tools(
        &self,
        convert: fn(&RawValue) -> (String, Vec<&str>),
        omissions: &mut Omissions,
    ) -> Option<String> {
        let (written, others) = convert(serde_json::from_str(self.tools.as_ref()?).ok()?);
        if !others.is_empty() {
            omissions.add(format!("{} tools that are not functions", others.len()));
        }
        (written != "[]").then_some(written)
    }
}

/// What a conversion omits: one sentence for each kind, with a count.
#[derive(Debug, Default)]
pub(crate) struct Omissions {
    sentences: Vec<String>,
    thinking: usize,
    blocks: usize,
    images: usize,
    meta: usize,
}

impl Omissions {
    /// Counts the parts of a message that the target cannot represent.
    pub(crate) fn of_message(&mut self, message: &Message, to: Format) {
        let results = message.tool_results().flat_map(|result| &result.content);
        for block in message.blocks.iter().chain(results) {
            match block {
                _ if (to.0.keeps)(&message.role, block) => {}
                Block::Thinking { .. } => self.thinking += 1,
                Block::Image(_) => self.images += 1,
                _ => self.blocks += 1,
            }
        }
        let meta = &message.meta;
        let has_meta = meta.timestamp.is_some() || meta.usage.is_some() || meta.model.is_some();
        self.meta += usize::from(has_meta && !to.0.keeps_meta);
    }

    /// Adds a sentence.
    pub(crate) fn add(&mut self, sentence: String) {
        self.sentences.push(sentence);
    }

    /// Adds a sentence with a count, unless that is 0.
    pub(crate) fn count(&mut self, count: usize, what: &str, which: &str) {
        match (count, what.strip_suffix('y')) {
            (0, _) => {}
            (1, _) => self.add(format!("1 {what} {which}")),
            (_, Some(stem)) => self.add(format!("{count} {stem}ies {which}")),
            (_, None) => self.add(format!("{count} {what}s {which}")),
        }
    }

    pub(crate) fn into_sentences(mut self) -> Vec<String> {
        self.count(self.thinking, "thinking block", "that the target would refuse");
        self.count(self.blocks, "block", "of kinds unknown to the target format");
        self.count(self.images, "image", "replaced by a note");
        if self.meta > 0 {
            self.add(format!("time, model and usage of {} messages", self.meta));
        }
        self.sentences
    }
}
