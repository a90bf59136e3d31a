//! Claude Code's session JSONL.
//!
//! All lines that are no sidechain's form the main line, in the order of the file: `parentUuid` is
//! not walked, because it breaks at each compact boundary. Sidechains (subagents) are branches.

use std::collections::HashMap;

use ctx_core::{Result, Role};
use ctx_dialect::anthropic;
use ctx_dialect::json::Object;

use super::jsonl::{LineFormat, Record};
use super::{SYNTHETIC, timestamp};
use crate::builder::{Builder, Draft, Parent};
use crate::entry::{Audience, Detail, EntryKind};
use crate::load::{Recipe, peek_role, place_in};

#[derive(Default)]
pub(super) struct Claude {
    /// The first entry of each `message.id`, on the main line and on sidechains.
    heads: HashMap<(bool, String), u32>,
    /// The newest entry of the main line.
    main: Option<u32>,
    /// The compact boundary whose summary was not yet seen.
    boundary: Option<u32>,
    /// The model of the newest answer on the main line.
    model: Option<String>,
}

impl LineFormat for Claude {
    fn object(&mut self, out: &mut Builder, record: Record<'_>) -> Result<()> {
        let Record { object, text, place } = record;
        header(out, object);
        let kind = object.text("type").unwrap_or_default();
        let sidechain = object.is_true("isSidechain");
        let mut draft = Draft::new(EntryKind::Other(kind.as_ref().into()));
        draft.id = object.id("uuid").filter(|id| !id.is_empty());
        draft.timestamp = timestamp(object);
        draft.parent = self.parent(out, object, sidechain);
        let message = object.get("message").filter(|_| kind == "user" || kind == "assistant");
        let mut id = None;
        if let Some(message) = message {
            draft.part = place_in(text, message.get());
            id = self.message(out, object, message.get(), sidechain, &mut draft);
        }
        let boundary = object.text("subtype").is_some_and(|s| s == "compact_boundary");
        let Some(index) = out.push(draft, place, text)? else {
            out.tip = self.main;
            return Ok(());
        };
        if let Some(id) = id {
            self.heads.entry((sidechain, id)).or_insert(index);
        }
        if !sidechain {
            self.main = Some(index);
            if boundary {
                self.boundary = Some(index);
                out.auto_compacted_at = auto_compacted_at(object).or(out.auto_compacted_at);
            }
        }
        out.tip = self.main;
        if kind == "summary" {
            out.name = object.owned("summary").or(out.name.take());
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Builder) {
        // A file of nothing but a sidechain is a subagent's own transcript.
        if self.main.is_none() {
            out.tip = u32::try_from(out.entries.len()).ok().and_then(|n| n.checked_sub(1));
        }
    }
}

impl Claude {
    fn parent<'a>(&self, out: &Builder, object: &Object<'a>, sidechain: bool) -> Parent<'a> {
        let previous = self.main.map_or(Parent::Root, Parent::Index);
        if !sidechain {
            return previous;
        }
        let Some(parent) = object.id("parentUuid") else { return Parent::Root };
        match out.find(&parent) {
            Some(index) => Parent::Index(index),
            None => Parent::Id(parent),
        }
    }

    /// Fills in a user's or assistant's line; gives the id that ties its lines together.
    fn message(
        &mut self,
        out: &mut Builder,
        object: &Object<'_>,
        message: &str,
        sidechain: bool,
        draft: &mut Draft<'_>,
    ) -> Option<String> {
        draft.kind = EntryKind::Message;
        draft.recipe = Recipe::Anthropic;
        if object.is_true("isCompactSummary") {
            draft.kind = EntryKind::Compaction;
            draft.recipe = Recipe::AnthropicSummary;
            draft.role = Some(Role::CompactionSummary);
            let first_kept = self.boundary.take().filter(|_| !sidechain);
            draft.detail = Some(Detail::Compaction { first_kept, skip: None });
            return None;
        }
        if object.is_true("isVisibleInTranscriptOnly") {
            draft.audience = Audience::People;
        }
        let inner = Object::parse(message).unwrap_or_default();
        let role = inner.text("role");
        draft.role = Some(role.map_or_else(|| peek_role(message), |r| Role::from_name(&r)));
        if draft.role != Some(Role::Assistant) {
            return None;
        }
        let model = inner.owned("model").unwrap_or_default();
        if model == SYNTHETIC {
            draft.audience = match is_api_error(object, &inner) {
                true => Audience::People,
                false => Audience::Synthetic,
            };
        } else if !model.is_empty() {
            if !sidechain && self.model.as_ref() != Some(&model) {
                out.auto_compacted_at = None;
                self.model = Some(model.clone());
            }
            let (provider, model) = ("anthropic".into(), model.into());
            draft.detail = Some(Detail::Model { provider, model });
        }
        let id = inner.id("id").filter(|id| !id.is_empty())?.into_owned();
        let key = (sidechain, id);
        if let Some(&head) = self.heads.get(&key) {
            // A repeated line of the same answer is left out by its uuid, not here.
            if out.entries.get(head as usize).is_some() {
                draft.head = Some(head);
            }
        }
        Some(key.1)
    }
}

/// The size of the context that the client compacted because its window was nearly full.
fn auto_compacted_at(boundary: &Object<'_>) -> Option<u32> {
    let metadata = boundary.object("compactMetadata")?;
    let is_auto = metadata.text("trigger").is_some_and(|trigger| trigger == "auto");
    let tokens = metadata.count("preTokens").filter(|&tokens| is_auto && tokens > 0)?;
    u32::try_from(tokens).ok()
}

/// Whether the client shows an error of the API; it does not send it back. Lines of older clients
/// lack the mark.
fn is_api_error(line: &Object<'_>, message: &Object<'_>) -> bool {
    match line.get("isApiErrorMessage") {
        Some(mark) => mark.get() == "true",
        None => {
            let text = anthropic::system_text;
            message.get("content").is_some_and(|raw| text(raw).starts_with("API Error"))
        }
    }
}

/// What the lines agree on: the first that says it.
fn header(out: &mut Builder, object: &Object<'_>) {
    let header = &mut out.header;
    if header.id.is_none() {
        header.id = object.owned("sessionId");
    }
    if header.cwd.is_none() {
        header.cwd = object.owned("cwd");
    }
    if header.timestamp.is_none() {
        header.timestamp = timestamp(object);
    }
}
