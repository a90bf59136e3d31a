//! A full check of a transcript for anything unusual.

use ctx_core::text::Slice;
use std::collections::HashMap;

use ctx_core::{Block, CallId, Message, Result, Role};
use ctx_dialect::json::{Object, elements, has_lone_surrogate, string};
use serde_json::value::RawValue;

use crate::entry::{EntryKind, MessageEncoding, MessagePart, TreeEntry};
use crate::read::{Problem, ProblemKind, Problems, shorten_id};
use crate::transcript::{Ancestry, Transcript};

/// The deepest nesting that common JSON readers accept.
const DEEPEST: usize = 128;

/// The longest line that is not reported, in bytes.
const LONGEST: u32 = 16 << 20;

/// The last millisecond of the year 9999.
const LAST_TIME: f64 = 253_402_300_799_999.0;

/// The highest plausible number of tokens.
const MOST_TOKENS: f64 = 1e12;

/// The types of opaque blocks that are not reported.
const CARRIED_BLOCKS: &str = "redacted_thinking document search_result server_tool_use \
    web_search_tool_result web_fetch_tool_result tool_reference input_audio input_file file \
    web_search_call container_upload fallback";

/// The fields of a usage report that count tokens.
const TOKEN_FIELDS: &str = "input output cacheRead cacheWrite totalTokens input_tokens \
    output_tokens cache_read_input_tokens cache_creation_input_tokens prompt_tokens \
    completion_tokens total_tokens";

impl Transcript {
    /// Returns all [`Transcript::problems`], and problems that only a full pass finds: tool results
    /// without a call, duplicate tool results, unknown roles, blocks and entries, halves of
    /// surrogate pairs, deep nesting, long lines, impossible times and usage. Every message is read
    /// once.
    ///
    /// # Errors
    ///
    /// Errors from reading an entry.
    pub fn inspect(&self) -> Result<Vec<Problem>> {
        let mut pass = InspectionPass {
            transcript: self,
            found: Problems::default(),
            ancestry: Ancestry::of(self),
            calls: HashMap::new(),
            results: HashMap::new(),
        };
        // Entries that ctx added were checked when they were read.
        let of_file = |(_, entry): &(usize, &TreeEntry)| !entry.overlay;
        for (index, entry) in self.entries.iter().enumerate().filter(of_file) {
            pass.entry(index, entry)?;
        }
        let mut all = self.problems.to_vec();
        all.extend(pass.found.finish().0);
        all.sort_by_key(|problem| problem.line);
        Ok(all)
    }
}

struct InspectionPass<'t> {
    transcript: &'t Transcript,
    found: Problems,
    ancestry: Ancestry,
    /// The newest entry that makes each call.
    calls: HashMap<CallId, usize>,
    /// The newest entry that answers each call.
    results: HashMap<CallId, usize>,
}

impl InspectionPass<'_> {
    fn note(&mut self, entry: &TreeEntry, kind: ProblemKind, text: String) {
        self.found.note_entry(entry.place.line, Some(entry.id.clone()), kind, text);
    }

    fn entry(&mut self, index: usize, entry: &TreeEntry) -> Result<()> {
        if entry.place.span.len > LONGEST {
            let text = format!("{} bytes on one line", entry.place.span.len);
            self.note(entry, ProblemKind::LongLine, text);
        }
        let text = self.transcript.text(entry)?;
        let depth = depth(&text);
        if depth > DEEPEST {
            let text = format!("values nested {depth} deep: carried as they are");
            self.note(entry, ProblemKind::DeepNesting, text);
        }
        if has_lone_surrogate(&text) {
            let text = "half of a surrogate pair: read as U+FFFD".to_owned();
            self.note(entry, ProblemKind::LoneSurrogate, text);
        }
        self.values(entry, &text);
        self.kind(entry);
        self.first_kept(index, entry);
        if entry.encoding != MessageEncoding::Nothing && entry.kind != EntryKind::SystemPrompt {
            let message = MessagePart::of(entry).parse(&self.transcript.source, &text)?;
            self.message(index, entry, &message);
        }
        Ok(())
    }

    /// Checks times and usage, which readers skip if they are invalid.
    fn values(&mut self, entry: &TreeEntry, text: &str) {
        let Ok(line) = Object::parse(text) else { return };
        let (from, to) = (entry.part.0 as usize, entry.part.1 as usize);
        let inner = (from > 0).then(|| Object::parse(text.slice(from..to)).ok());
        for object in [Some(&line), inner.as_ref().and_then(Option::as_ref)].into_iter().flatten() {
            for key in ["timestamp", "compactedAt"] {
                if let Some(raw) = object.get(key).filter(|raw| !is_time(raw)) {
                    let text = format!("invalid time {key} {}: ignored", shorten_id(raw.get()));
                    self.note(entry, ProblemKind::BadTimestamp, text);
                }
            }
            if let Some(raw) = object.get("usage")
                && let Some(wrong) = wrong_usage(raw)
            {
                let text = format!("invalid usage {}: not a number of tokens", shorten_id(&wrong));
                self.note(entry, ProblemKind::BadUsage, text);
            }
        }
    }

    fn kind(&mut self, entry: &TreeEntry) {
        let EntryKind::Other(name) = &entry.kind else { return };
        let known = self.transcript.format.0.known_entries;
        if known.split_whitespace().all(|known| known != &**name) {
            let text = format!("unknown entry type '{}': carried, not sent", shorten_id(name));
            self.note(entry, ProblemKind::UnknownEntry, text);
        }
    }

    /// Reports a compaction whose first kept entry is on another branch. A missing first kept entry
    /// was reported when it was read.
    fn first_kept(&mut self, index: usize, entry: &TreeEntry) {
        let kept = entry.first_kept().filter(|&kept| kept < index);
        let Some(kept) = kept.filter(|&kept| !self.ancestry.is_ancestor(kept, index)) else {
            return;
        };
        let id = self.transcript.entries.get(kept).map_or("", |kept| &*kept.id);
        let text =
            format!("first kept entry {} is on another branch: nothing is kept", shorten_id(id));
        self.note(entry, ProblemKind::BrokenCompaction, text);
    }

    fn message(&mut self, index: usize, entry: &TreeEntry, message: &Message) {
        if let Role::Other(name) = &message.role {
            let text = format!("unknown role '{}': read as user", shorten_id(name));
            self.note(entry, ProblemKind::UnknownRole, text);
        }
        let inner = message.tool_results().flat_map(|result| &result.content);
        for block in message.blocks.iter().chain(inner) {
            let Block::Opaque { json } = block else { continue };
            let object = Object::parse(json.as_str()).unwrap_or_default();
            let kind = object.text("type").or_else(|| object.text("role"));
            if kind
                .as_deref()
                .is_some_and(|kind| CARRIED_BLOCKS.split(' ').any(|known| known == kind))
            {
                continue;
            }
            let name = kind.as_deref().unwrap_or("none");
            let text = format!("unknown block type '{}': carried", shorten_id(name));
            self.note(entry, ProblemKind::UnknownBlock, text);
        }
        for call in message.tool_calls() {
            self.calls.insert(call.id.clone(), index);
        }
        for result in message.tool_results() {
            if !self.calls.contains_key(&result.call_id) {
                let text = format!("result of an unknown call '{}'", shorten_id(&result.call_id));
                self.note(entry, ProblemKind::OrphanResult, text);
            }
            let before = self.results.insert(result.call_id.clone(), index);
            // Two results with the same parent are duplicates, not two branches: branches split at
            // a user message.
            let parent = |index: usize| self.transcript.entries.get(index)?.parent();
            let repeated = |before: usize| {
                parent(before) == parent(index) || self.ancestry.is_ancestor(before, index)
            };
            if before.is_some_and(repeated) {
                let text = format!("duplicate result of call '{}'", shorten_id(&result.call_id));
                self.note(entry, ProblemKind::DuplicateResult, text);
            }
        }
    }
}

/// Returns the nesting depth of JSON text.
fn depth(json: &str) -> usize {
    let bytes = json.as_bytes();
    let (mut depth, mut deepest, mut at) = (0usize, 0, 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => {
                while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.slice(at..)) {
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

/// Whether a value is a time between 1970 and 9999: milliseconds, or an ISO date.
fn is_time(raw: &RawValue) -> bool {
    match string(raw) {
        Some(text) => text.parse::<jiff::Timestamp>().is_ok_and(|t| t.as_millisecond() >= 0),
        None => raw.get().parse::<f64>().is_ok_and(|n| (0.0..=LAST_TIME).contains(&n)),
    }
}

/// Returns the problem with a usage report, if any.
fn wrong_usage(raw: &RawValue) -> Option<String> {
    let Some(usage) = Object::of(raw) else {
        // A list of reports is specific to the provider.
        return elements(raw).is_none().then(|| raw.get().to_owned());
    };
    TOKEN_FIELDS.split(' ').find_map(|key| {
        let value = usage.get(key)?;
        // In the reports of some agents a field is an object: `{"input": {..}}`.
        let plain = !value.get().starts_with('{');
        let fits = value
            .get()
            .parse::<f64>()
            .is_ok_and(|n| (0.0..=MOST_TOKENS).contains(&n) && n.fract() == 0.0);
        (plain && !fits).then(|| format!("{key} {}", value.get()))
    })
}
