//! What a conversion has no place for, in words.

use std::collections::HashSet;

use ctx_core::{Block, Message, Role};
use ctx_dialect::{anthropic, openai_chat};

use crate::entry::{Audience, Detail, EntryKind};
use crate::format::Format;
use crate::load::Recipe;
use crate::transcript::Transcript;

/// Fields of a request body that are written in the place the target has for them.
const PLACED: [&str; 2] = ["system", "tools"];

/// One sentence a kind, with its number.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    said: Vec<String>,
    thinking: usize,
    blocks: usize,
    images: usize,
    meta: usize,
}

impl LeftOut {
    /// What of the transcript is on no message of the main line.
    pub(crate) fn around(&mut self, transcript: &Transcript, to: Format) {
        self.entries(transcript, to);
        self.fields(transcript, to);
        self.lost(transcript);
    }

    /// What cannot be read.
    pub(crate) fn lost(&mut self, transcript: &Transcript) {
        let bytes: u64 = transcript.lost.iter().map(|span| u64::from(span.len)).sum();
        if bytes > 0 {
            self.say(format!("{bytes} bytes that cannot be read are left out"));
        }
    }

    fn entries(&mut self, transcript: &Transcript, to: Format) {
        let line: HashSet<usize> = transcript.path(None).unwrap_or_default().into_iter().collect();
        let (mut branches, mut shown, mut summaries, mut beside) = (0, 0, 0, 0);
        let mut kinds: Vec<&str> = Vec::new();
        let mut others = 0;
        for (index, entry) in transcript.entries.iter().enumerate() {
            let summary = matches!(entry.detail.as_deref(), Some(Detail::Compaction { .. }));
            let answer = entry.role == Some(Role::Assistant);
            match entry.kind {
                EntryKind::SystemPrompt => {}
                _ if entry.is_overlay() => beside += usize::from(summary && to != Format::Ctx),
                _ if entry.recipe == Recipe::PonyBunnySummary => {}
                _ if summary => summaries += usize::from(!to.is_pi()),
                _ if entry.is_message() && !line.contains(&index) => {
                    branches += usize::from(entry.head.is_none());
                }
                _ if entry.is_message() && entry.audience == Audience::People => {
                    shown += usize::from(!to.is_pi() || !answer);
                }
                _ if entry.is_message() => {}
                _ => {
                    others += 1;
                    let kind = entry.kind.name();
                    if kinds.len() < 4 && !kinds.contains(&kind) {
                        kinds.push(kind);
                    }
                }
            }
        }
        let branch = match transcript.format {
            Format::ClaudeCode => "of sidechains (subagents)",
            _ => "on other branches",
        };
        self.count(branches, "message", branch);
        self.count(shown, "message", "that the agent showed to people only");
        self.count(summaries, "summary", "of compactions; what they stand for is written");
        self.count(beside, "compaction", "that ctx keeps beside the file");
        self.count(others, "entry", &format!("that hold no message ({})", kinds.join(", ")));
    }

    fn fields(&mut self, transcript: &Transcript, to: Format) {
        // What a session has instead of a request's settings goes into the header or the answers.
        let placed = |key: &str| {
            PLACED.contains(&key) || (to.is_pi() && matches!(key, "model" | "sessionId" | "id"))
        };
        let keys = transcript.body.iter().map(|(key, _)| key.as_str());
        let keys: Vec<_> = keys.filter(|key| !placed(key)).collect();
        if !keys.is_empty() {
            self.say(format!("fields that {to} has no place for: {}", keys.join(", ")));
        }
    }

    /// What of a message the target cannot hold.
    pub(crate) fn of_message(&mut self, message: &Message, to: Format) {
        let results = message.tool_results().flat_map(|result| &result.content);
        for block in message.blocks.iter().chain(results) {
            let kept = match to {
                Format::Anthropic => anthropic::keeps(block),
                Format::OpenAiChat => openai_chat::keeps(&message.role, block),
                Format::PonyBunny => !matches!(block, Block::Image(_)),
                _ => true,
            };
            match block {
                _ if kept => {}
                Block::Thinking { .. } => self.thinking += 1,
                Block::Image(_) => self.images += 1,
                _ => self.blocks += 1,
            }
        }
        let meta = &message.meta;
        let said = meta.timestamp.is_some() || meta.usage.is_some() || meta.model.is_some();
        let bare = matches!(to, Format::Anthropic | Format::OpenAiChat);
        self.meta += usize::from(said && bare);
    }

    /// A sentence of its own.
    pub(crate) fn say(&mut self, sentence: String) {
        self.said.push(sentence);
    }

    /// A sentence with a number, unless that is 0.
    pub(crate) fn count(&mut self, count: usize, what: &str, which: &str) {
        match (count, what.strip_suffix('y')) {
            (0, _) => {}
            (1, _) => self.say(format!("1 {what} {which}")),
            (_, Some(stem)) => self.say(format!("{count} {stem}ies {which}")),
            (_, None) => self.say(format!("{count} {what}s {which}")),
        }
    }

    pub(crate) fn end(mut self) -> Vec<String> {
        self.count(self.thinking, "thinking block", "that the target would refuse");
        self.count(self.blocks, "block", "of kinds that the target does not know");
        self.count(self.images, "image", "for which a note stands");
        if self.meta > 0 {
            self.say(format!("time, model and usage, which {} messages have", self.meta));
        }
        self.said
    }
}
