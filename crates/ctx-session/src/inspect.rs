//! A look at everything a transcript holds, for what is unusual in it.

use std::collections::HashMap;

use ctx_core::{Block, CallId, Message, Result, Role};
use ctx_dialect::json::{Object, elements, has_lone_surrogate, string};
use serde_json::value::RawValue;

use crate::builder::short;
use crate::entry::{EntryKind, TreeEntry};
use crate::format::Format;
use crate::load::{Part, Recipe};
use crate::problem::{Problem, ProblemKind, Problems};
use crate::transcript::Transcript;
use crate::tree::Ancestry;

/// The deepest nesting that common JSON readers take.
const DEEPEST: usize = 128;

/// The longest line that is not remarked upon, in bytes.
const LONGEST: u32 = 16 << 20;

/// The last millisecond of the year 9999.
const LAST_TIME: f64 = 253_402_300_799_999.0;

/// More tokens than any model was ever sent.
const MOST_TOKENS: f64 = 1e12;

/// Types of line that hold no message and are nothing unusual.
const CLAUDE_TYPES: [&str; 11] = [
    "summary",
    "system",
    "progress",
    "attachment",
    "file-history-snapshot",
    "queue-operation",
    "pr-link",
    "custom-title",
    "tag",
    "mode",
    "last-prompt",
];
const CODEX_TYPES: [&str; 5] =
    ["session_meta", "turn_context", "event_msg", "response_item", "state"];

/// Blocks that are known well enough to be carried without a word.
const CARRIED_BLOCKS: [&str; 13] = [
    "redacted_thinking",
    "document",
    "search_result",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "tool_reference",
    "input_audio",
    "input_file",
    "file",
    "web_search_call",
    "container_upload",
    "fallback",
];

/// The fields of a usage report that count tokens.
const TOKEN_FIELDS: [&str; 12] = [
    "input",
    "output",
    "cacheRead",
    "cacheWrite",
    "totalTokens",
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
];

impl Transcript {
    /// All [`Transcript::problems`], and what only a full pass finds: tool results without a call
    /// or twice, unknown roles, blocks and entries, halves of surrogate pairs, nesting, long lines,
    /// impossible times and usage. Every message is read once.
    ///
    /// # Errors
    ///
    /// What reading an entry may give.
    pub fn inspect(&self) -> Result<Vec<Problem>> {
        let mut pass = Pass {
            transcript: self,
            found: Problems::default(),
            ancestry: Ancestry::of(self),
            calls: HashMap::new(),
            results: HashMap::new(),
        };
        // What ctx added itself was looked at when it was read.
        let of_file = |(_, entry): &(usize, &TreeEntry)| !entry.is_overlay();
        for (index, entry) in self.entries().iter().enumerate().filter(of_file) {
            pass.entry(index, entry)?;
        }
        let mut all = self.problems().to_vec();
        all.extend(pass.found.finish().0);
        all.sort_by_key(|problem| problem.line);
        Ok(all)
    }
}

struct Pass<'t> {
    transcript: &'t Transcript,
    found: Problems,
    ancestry: Ancestry,
    /// The newest entry that makes a call.
    calls: HashMap<CallId, usize>,
    /// The newest entry that answers a call.
    results: HashMap<CallId, usize>,
}

impl Pass<'_> {
    fn note(&mut self, entry: &TreeEntry, kind: ProblemKind, text: String) {
        self.found.note_entry(entry.line, Some(entry.id.clone()), kind, text);
    }

    fn entry(&mut self, index: usize, entry: &TreeEntry) -> Result<()> {
        if entry.span.len > LONGEST {
            let text = format!("{} bytes on one line", entry.span.len);
            self.note(entry, ProblemKind::LongLine, text);
        }
        let text = self.transcript.text(entry)?;
        let depth = depth(&text);
        if depth > DEEPEST {
            let text = format!("values nested {depth} deep: carried as they are");
            self.note(entry, ProblemKind::DeepNesting, text);
        }
        if has_lone_surrogate(&text) {
            let text = "half of a surrogate pair: it reads as U+FFFD".to_owned();
            self.note(entry, ProblemKind::LoneSurrogate, text);
        }
        self.values(entry, &text);
        self.kind(entry);
        self.first_kept(index, entry);
        if entry.recipe != Recipe::Nothing && entry.kind != EntryKind::SystemPrompt {
            let message = Part::of(entry).parse(&self.transcript.source, &text)?;
            self.message(index, entry, &message);
        }
        Ok(())
    }

    /// Times and usage, which readers pass over when they make no sense.
    fn values(&mut self, entry: &TreeEntry, text: &str) {
        let Ok(line) = Object::parse(text) else { return };
        let (from, to) = (entry.part.0 as usize, entry.part.1 as usize);
        let inner = (from > 0).then(|| Object::parse(text.get(from..to).unwrap_or_default()).ok());
        for object in [Some(&line), inner.as_ref().and_then(Option::as_ref)].into_iter().flatten() {
            for key in ["timestamp", "compactedAt"] {
                if let Some(raw) = object.get(key).filter(|raw| !is_time(raw)) {
                    let text = format!("{key} {} is no time: passed over", short(raw.get()));
                    self.note(entry, ProblemKind::BadTimestamp, text);
                }
            }
            if let Some(raw) = object.get("usage")
                && let Some(wrong) = wrong_usage(raw)
            {
                let text = format!("usage {} is no number of tokens", short(&wrong));
                self.note(entry, ProblemKind::BadUsage, text);
            }
        }
    }

    fn kind(&mut self, entry: &TreeEntry) {
        let EntryKind::Other(name) = &entry.kind else { return };
        let known: &[&str] = match self.transcript.format() {
            Format::ClaudeCode => &CLAUDE_TYPES,
            Format::Codex => &CODEX_TYPES,
            _ => &[],
        };
        if !known.contains(&&**name) {
            let text = format!("entry type '{}' is not known: carried, not sent", short(name));
            self.note(entry, ProblemKind::UnknownEntry, text);
        }
    }

    /// A compaction that keeps from an entry of another branch. One that keeps from none at all was
    /// noted when it was read.
    fn first_kept(&mut self, index: usize, entry: &TreeEntry) {
        let kept = entry.first_kept().filter(|&kept| kept < index);
        let Some(kept) = kept.filter(|&kept| !self.ancestry.is_ancestor(kept, index)) else {
            return;
        };
        let id = self.transcript.entries().get(kept).map_or("", |kept| &*kept.id);
        let text = format!("first kept entry {} is on another branch: nothing is kept", short(id));
        self.note(entry, ProblemKind::BrokenCompaction, text);
    }

    fn message(&mut self, index: usize, entry: &TreeEntry, message: &Message) {
        if let Role::Other(name) = &message.role {
            let text = format!("role '{}' is not known: read as the user's", short(name));
            self.note(entry, ProblemKind::UnknownRole, text);
        }
        let inner = message.tool_results().flat_map(|result| &result.content);
        for block in message.blocks.iter().chain(inner) {
            let Block::Opaque { json } = block else { continue };
            let object = Object::parse(json.as_str()).unwrap_or_default();
            let kind = object.text("type").or_else(|| object.text("role"));
            if kind.as_deref().is_some_and(|kind| CARRIED_BLOCKS.contains(&kind)) {
                continue;
            }
            let name = kind.as_deref().unwrap_or("none");
            let text = format!("block type '{}' is not known: carried", short(name));
            self.note(entry, ProblemKind::UnknownBlock, text);
        }
        for call in message.tool_calls() {
            self.calls.insert(call.id.clone(), index);
        }
        for result in message.tool_results() {
            if !self.calls.contains_key(&result.call_id) {
                let text =
                    format!("a result of call '{}', which is not there", short(&result.call_id));
                self.note(entry, ProblemKind::OrphanResult, text);
            }
            let before = self.results.insert(result.call_id.clone(), index);
            // Two beside each other are no two branches: those part at what a person says.
            let parent = |index: usize| self.transcript.entries().get(index)?.parent();
            let repeated = |before: usize| {
                parent(before) == parent(index) || self.ancestry.is_ancestor(before, index)
            };
            if before.is_some_and(repeated) {
                let text = format!("call '{}' has a result already", short(&result.call_id));
                self.note(entry, ProblemKind::DuplicateResult, text);
            }
        }
    }
}

/// How deep values are nested in JSON text.
fn depth(json: &str) -> usize {
    let bytes = json.as_bytes();
    let (mut depth, mut deepest, mut at) = (0usize, 0, 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => {
                while let Some(found) =
                    memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default())
                {
                    let quote = bytes.get(at + found) == Some(&b'"');
                    at += found + if quote { 1 } else { 2 };
                    if quote {
                        break;
                    }
                }
            }
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Whether a value is a time between 1970 and 9999: milliseconds, or a date in ISO's form.
fn is_time(raw: &RawValue) -> bool {
    match string(raw) {
        Some(text) => text.parse::<jiff::Timestamp>().is_ok_and(|t| t.as_millisecond() >= 0),
        None => raw.get().parse::<f64>().is_ok_and(|n| (0.0..=LAST_TIME).contains(&n)),
    }
}

/// What is wrong with a usage report, if anything is.
fn wrong_usage(raw: &RawValue) -> Option<String> {
    let Some(usage) = Object::of(raw) else {
        // A list of reports is some provider's own matter.
        return elements(raw).is_none().then(|| raw.get().to_owned());
    };
    TOKEN_FIELDS.iter().find_map(|key| {
        let value = usage.get(key)?;
        // Some agents sum up by field: `{"input": {..}}`.
        let plain = !value.get().starts_with('{');
        let fits = value
            .get()
            .parse::<f64>()
            .is_ok_and(|n| (0.0..=MOST_TOKENS).contains(&n) && n.fract() == 0.0);
        (plain && !fits).then(|| format!("{key} {}", value.get()))
    })
}
