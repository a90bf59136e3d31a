//! Codex's rollout JSONL, with `{timestamp, type, payload}` on each line, and its older format of
//! bare items.

use std::borrow::Cow;
use std::path::Path;

use ctx_core::{Result, Role, Usage};
use ctx_dialect::json::Object;
use ctx_dialect::openai_responses::item_role;

use super::{Agent, AgentSpec, Beginning, Evidence, Format, FormatSpec, LastUsage};
use crate::entry::{Detail, EntryKind, MessageEncoding, byte_range};
use crate::read::jsonl::{LineFormat, Record};
use crate::read::{Builder, Draft, jsonl, timestamp};

impl Format {
    /// Codex's rollout JSONL.
    pub const CODEX: Self = Self(&FormatSpec {
        name: "codex",
        judge_line,
        read: Some(|source| jsonl::read(source, Reader::default())),
        provider: ("openai", "openai-responses"),
        known_entries: "session_meta turn_context event_msg response_item state",
        agents: &[Agent::CODEX],
        note_beginning,
        last_usage,
        ..FormatSpec::NONE
    });
}

impl Agent {
    /// Codex.
    pub const CODEX: Self = Self(&AgentSpec {
        name: "codex",
        folders: |environment| vec![environment.below("CODEX_HOME", ".codex", "sessions")],
        layouts: &[&["*", "*", "*", "rollout-*.jsonl"]],
        ..AgentSpec::NONE
    });
}

fn judge_line(kind: Option<&str>, line: &Object<'_>, whole: bool) -> Option<Evidence> {
    let has = |key: &str| line.has(key);
    let is_likely = match kind {
        Some("session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted") => {
            return (has("payload") || !whole).then_some(Evidence::Certain);
        }
        Some("message") => has("role") && has("content") && !has("message"),
        Some(_) => false,
        None => has("record_type") || (has("instructions") && has("timestamp")),
    };
    is_likely.then_some(Evidence::Likely)
}

fn note_beginning(kind: &str, line: &Object<'_>, known: &mut Beginning) {
    let meta = line.object("payload").filter(|_| kind == "session_meta");
    known.take(meta.as_ref().unwrap_or(line), "id");
    let source = meta.and_then(|meta| meta.object("source"));
    known.is_subagent = source.is_some_and(|source| source.has("subagent"));
    known.has_message = known.id.is_some();
}

fn last_usage(session: &Path) -> Option<LastUsage> {
    LastUsage::in_lines(session, |line| {
        let info = line.object("payload")?.object("info")?;
        let usage = token_usage(&info.object("last_token_usage")?);
        LastUsage::of(usage, None, window(&info))
    })
}

#[derive(Default)]
struct Reader {
    /// The first item of the current answer: an answer consists of several items.
    answer: Option<u32>,
    /// The first item of the newest answer, even after it ended.
    last_answer: Option<u32>,
    provider: Option<String>,
}

impl LineFormat for Reader {
    fn object(&mut self, out: &mut Builder, record: Record<'_>) -> Result<()> {
        let Record { object, text, place } = record;
        let Some(payload) = object.get("payload") else {
            return self.bare(out, record);
        };
        let kind = object.text("type").unwrap_or_default();
        let inner = Object::of(payload).unwrap_or_default();
        let mut draft = Draft::new(EntryKind::Other(kind.as_ref().into()));
        draft.entry.timestamp = timestamp(object);
        draft.entry.part = byte_range(text, payload.get());
        match &*kind {
            "session_meta" => self.header(out, &inner, payload.get()),
            "response_item" => return self.item(out, &inner, draft, record),
            "compacted" => {
                self.answer = None;
                draft.entry.kind = EntryKind::Compaction;
                draft.entry.role = Some(Role::CompactionSummary);
                draft.entry.encoding = MessageEncoding::CodexCompacted;
                draft.entry.detail =
                    Some(Box::new(Detail::Compaction { first_kept: None, skip: None }));
            }
            "turn_context" => {
                if let Some(model) = inner.text("model") {
                    let provider = self.provider.as_deref().unwrap_or("openai").into();
                    draft.entry.detail =
                        Some(Box::new(Detail::Model { provider, model: model.as_ref().into() }));
                }
            }
            "event_msg" => self.event(out, &inner),
            _ => {}
        }
        out.window = window(&inner).or(out.window);
        out.push(draft, place, text)?;
        Ok(())
    }
}

impl Reader {
    fn item(
        &mut self,
        out: &mut Builder,
        item: &Object<'_>,
        mut draft: Draft<'_>,
        record: Record<'_>,
    ) -> Result<()> {
        let Record { text, place, .. } = record;
        let role = item_role(item);
        if matches!(role, Role::Other(_)) && item.text("type").is_some_and(|t| t != "message") {
            // A ghost snapshot or a compaction marker: an entry, but not a message.
            out.push(draft, place, text)?;
            return Ok(());
        }
        draft.entry.kind = EntryKind::Message;
        draft.entry.encoding = MessageEncoding::Responses;
        if role != Role::Assistant {
            self.answer = None;
        }
        draft.entry.head = self.answer;
        draft.entry.role = Some(role.clone());
        let index = out.push(draft, place, text)?;
        if role == Role::Assistant && self.answer.is_none() {
            self.answer = index;
            self.last_answer = index.or(self.last_answer);
        }
        Ok(())
    }

    /// Reads usage, which is reported after the answer, and sometimes again after the tools.
    fn event(&self, out: &mut Builder, event: &Object<'_>) {
        let info = event.object("info").filter(|_| is_token_count(event));
        let last = info.and_then(|info| info.object("last_token_usage"));
        let answer = self.last_answer.and_then(|index| out.entries.get_mut(index as usize));
        if let (Some(usage), Some(answer)) = (last, answer) {
            answer.detail = Some(Box::new(Detail::Usage(token_usage(&usage))));
        }
    }

    /// Reads the older format: the first line is the header, each other line an item.
    fn bare(&mut self, out: &mut Builder, record: Record<'_>) -> Result<()> {
        let Record { object, text, place } = record;
        let mut draft = Draft::new(EntryKind::Other("state".into()));
        draft.entry.timestamp = timestamp(object);
        draft.entry.part = byte_range(text, text);
        if object.has("type") {
            return self.item(out, object, draft, record);
        }
        if out.header.raw.is_none() && object.has("id") {
            self.header(out, object, text);
        }
        out.push(draft, place, text)?;
        Ok(())
    }

    fn header(&mut self, out: &mut Builder, meta: &Object<'_>, text: &str) {
        if out.header.raw.is_some() {
            return;
        }
        self.provider = meta.owned("model_provider");
        let header = &mut out.header;
        header.id = meta.id("id").map(Cow::into_owned);
        header.timestamp = timestamp(meta);
        header.cwd = meta.owned("cwd");
        header.parent_session = meta.id("forked_from_id").map(Cow::into_owned);
        header.raw = Some(text.to_owned());
        let base = meta.object("base_instructions").and_then(|base| base.owned("text"));
        out.system = base.or_else(|| meta.owned("instructions")).filter(|text| !text.is_empty());
        out.tools = meta.get("dynamic_tools").map(|raw| raw.get().to_owned());
    }
}

fn is_token_count(event: &Object<'_>) -> bool {
    event.text("type").is_some_and(|kind| kind == "token_count")
}

/// Parses usage. Codex counts cached tokens as part of the input.
fn token_usage(object: &Object<'_>) -> Usage {
    let count = |key| object.count(key).unwrap_or_default();
    let cached = count("cached_input_tokens");
    Usage {
        input: count("input_tokens").saturating_sub(cached),
        output: count("output_tokens"),
        cache_read: cached,
        total_tokens: object.count("total_tokens"),
        ..Usage::default()
    }
}

/// Returns the context window, which several events report.
fn window(event: &Object<'_>) -> Option<u32> {
    let info = event.object("info").unwrap_or_default();
    let tokens = event
        .count("model_context_window")
        .or_else(|| info.count("model_context_window"))
        .filter(|&tokens| tokens > 0)?;
    u32::try_from(tokens).ok()
}
