//! Codex's rollout JSONL: `{timestamp, type, payload}` a line, and its older form of bare items.

use std::borrow::Cow;

use ctx_core::{Result, Role, Usage};
use ctx_dialect::json::Object;
use ctx_dialect::openai_responses::item_role;

use super::jsonl::{LineFormat, Record};
use super::timestamp;
use crate::builder::{Builder, Draft};
use crate::entry::{Detail, EntryKind};
use crate::load::{Recipe, place_in};

#[derive(Default)]
pub(super) struct Codex {
    /// The first item of the answer that is being read: an answer is several items.
    answer: Option<u32>,
    /// The first item of the newest answer, also after it ended.
    last_answer: Option<u32>,
    provider: Option<String>,
}

impl LineFormat for Codex {
    fn object(&mut self, out: &mut Builder, record: Record<'_>) -> Result<()> {
        let Record { object, text, place } = record;
        let Some(payload) = object.get("payload") else {
            return self.bare(out, record);
        };
        let kind = object.text("type").unwrap_or_default();
        let inner = Object::of(payload).unwrap_or_default();
        let mut draft = Draft::new(EntryKind::Other(kind.as_ref().into()));
        draft.timestamp = timestamp(object);
        draft.part = place_in(text, payload.get());
        match &*kind {
            "session_meta" => self.header(out, &inner, payload.get()),
            "response_item" => return self.item(out, &inner, draft, record),
            "compacted" => {
                self.answer = None;
                draft.kind = EntryKind::Compaction;
                draft.role = Some(Role::CompactionSummary);
                draft.recipe = Recipe::CodexCompacted;
                draft.detail = Some(Detail::Compaction { first_kept: None, skip: None });
            }
            "turn_context" => {
                if let Some(model) = inner.text("model") {
                    let provider = self.provider.as_deref().unwrap_or("openai").into();
                    draft.detail = Some(Detail::Model { provider, model: model.as_ref().into() });
                }
            }
            "event_msg" => self.event(out, &inner),
            _ => {}
        }
        out.window = window(&inner).or(out.window);
        out.push(draft, place, text)?;
        Ok(())
    }

    fn end(&mut self, _out: &mut Builder) {}
}

impl Codex {
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
            // A ghost snapshot, a compaction marker: carried, but nothing a model is sent as text.
            out.push(draft, place, text)?;
            return Ok(());
        }
        draft.kind = EntryKind::Message;
        draft.recipe = Recipe::Responses;
        if role != Role::Assistant {
            self.answer = None;
        }
        draft.head = self.answer;
        draft.role = Some(role.clone());
        let index = out.push(draft, place, text)?;
        if role == Role::Assistant && self.answer.is_none() {
            self.answer = index;
            self.last_answer = index.or(self.last_answer);
        }
        Ok(())
    }

    /// What was used is told after the answer, and sometimes again after the tools.
    fn event(&self, out: &mut Builder, event: &Object<'_>) {
        let info = event.object("info").filter(|_| is_token_count(event));
        let last = info.and_then(|info| info.object("last_token_usage"));
        let answer = self.last_answer.and_then(|index| out.entries.get_mut(index as usize));
        if let (Some(usage), Some(answer)) = (last, answer) {
            answer.detail = Some(Box::new(Detail::Usage(token_usage(&usage))));
        }
    }

    /// The older form: the first line is the header, each other line an item.
    fn bare(&mut self, out: &mut Builder, record: Record<'_>) -> Result<()> {
        let Record { object, text, place } = record;
        let mut draft = Draft::new(EntryKind::Other("state".into()));
        draft.timestamp = timestamp(object);
        draft.part = place_in(text, text);
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

/// Codex counts what came from the cache as part of the input.
pub(crate) fn token_usage(object: &Object<'_>) -> Usage {
    let count = |key| object.count(key).unwrap_or_default();
    let cached = count("cached_input_tokens");
    Usage {
        input: count("input_tokens").saturating_sub(cached),
        output: count("output_tokens"),
        cache_read: cached,
        cache_write: 0,
        cache_write_hour: 0,
        total_tokens: object.count("total_tokens"),
    }
}

/// The window, as several events tell it.
pub(crate) fn window(event: &Object<'_>) -> Option<u32> {
    let info = event.object("info").unwrap_or_default();
    let tokens = event
        .count("model_context_window")
        .or_else(|| info.count("model_context_window"))
        .filter(|&tokens| tokens > 0)?;
    u32::try_from(tokens).ok()
}
