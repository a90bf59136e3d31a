//! pi's session JSONL: v3, and v1 and v2 migrated as pi migrates them, but in memory only.

use std::borrow::Cow;

use ctx_core::{Result, Role};
use ctx_dialect::json::{Object, identifier};
use serde_json::value::RawValue;

use super::jsonl::{LineFormat, Record};
use super::{SYNTHETIC, SYSTEM_PROMPT, TOOLS, timestamp};
use crate::builder::{Builder, Draft, Parent, Place, short};
use crate::entry::{Audience, Detail, EntryKind};
use crate::load::{Recipe, peek_role, place_in, text_of};
use crate::log::UNDO_TYPE;
use crate::problem::ProblemKind;

/// The newest version that is known.
const NEWEST: u64 = 3;

#[derive(Default)]
pub(super) struct Pi {
    has_header: bool,
    /// The first line that could not be read, if nothing was read before it.
    broken_header: Option<u64>,
    /// Whether ids are the entries' ordinals (v1); settled by the header or the first entry.
    ordinals: Option<bool>,
}

impl LineFormat for Pi {
    fn object(&mut self, out: &mut Builder, record: Record<'_>) -> Result<()> {
        let Record { object, text, place } = record;
        let kind = object.text("type").unwrap_or_default();
        if kind == "session" {
            self.header(out, object, text, place);
            return Ok(());
        }
        let has_id = object.id("id").is_some_and(|id| !id.is_empty());
        let ordinals = *self.ordinals.get_or_insert(!has_id);
        let mut draft = Draft::new(EntryKind::from_name(&kind));
        draft.timestamp = timestamp(object);
        draft.part = place_in(text, text);
        if !ordinals {
            identify(out, object, place.line, &mut draft);
        }
        fill(out, object, text, ordinals, &mut draft);
        if out.push(draft, place, text)?.is_some() {
            note_whole_file(out, object, &kind);
        }
        Ok(())
    }

    fn bad_line(&mut self, line: u64) {
        if !self.has_header && self.ordinals.is_none() {
            self.broken_header.get_or_insert(line);
        }
    }

    fn end(&mut self, out: &mut Builder) {
        if out.settle_links() {
            refill(out, self.ordinals == Some(true));
        }
        note_broken_compactions(out);
        if self.has_header {
            return;
        }
        out.header.version = Some(if self.ordinals == Some(true) { 1 } else { NEWEST });
        match self.broken_header {
            Some(line) => {
                let text = "the header cannot be read: session id and folder are unknown";
                out.problems.note(line, ProblemKind::BrokenHeader, text);
            }
            None => {
                let text = "no header line: session id and folder are unknown";
                out.problems.note(0, ProblemKind::MissingHeader, text);
            }
        }
    }
}

impl Pi {
    fn header(&mut self, out: &mut Builder, object: &Object<'_>, text: &str, place: Place) {
        if self.has_header {
            let text = "a second header line: left out";
            out.problems.note(place.line, ProblemKind::DuplicateHeader, text);
            out.lose(place.span);
            return;
        }
        self.has_header = true;
        let version = match object.get("version") {
            None => Some(1),
            Some(raw) => ctx_dialect::json::integer(raw).and_then(|n| u64::try_from(n).ok()),
        };
        if version.is_none_or(|v| v == 0 || v > NEWEST) {
            let found = object.get("version").map_or("none", RawValue::get);
            let found: String = found.chars().take(32).collect();
            let text = format!("version {found} is not known: read as version {NEWEST}");
            out.problems.note(place.line, ProblemKind::UnknownVersion, text);
        } else if version == Some(1) {
            self.ordinals.get_or_insert(true);
        }
        if version.is_some_and(|v| v > 1) {
            self.ordinals.get_or_insert(false);
        }
        let header = &mut out.header;
        header.id = object.id("id").map(Cow::into_owned);
        header.version = version;
        header.timestamp = timestamp(object);
        header.cwd = object.owned("cwd");
        header.parent_session =
            object.owned("parentSession").or_else(|| object.owned("branchedFrom"));
        header.raw = Some(text.to_owned());
        out.model = object.owned("provider").zip(object.owned("modelId"));
    }
}

/// Id and parent of an entry of v2 and later.
fn identify<'a>(out: &mut Builder, object: &Object<'a>, line: u64, draft: &mut Draft<'a>) {
    draft.id = object.id("id").filter(|id| !id.is_empty());
    if draft.id.is_none() {
        out.problems.note(line, ProblemKind::MissingId, "an entry without an id: numbered");
    }
    draft.parent = match object.field("parentId") {
        None => Parent::Previous,
        Some(raw) => match identifier(raw) {
            Some(id) if !id.is_empty() => Parent::Id(id),
            _ => Parent::Root,
        },
    };
}

/// What the kind of entry says.
fn fill(out: &Builder, object: &Object<'_>, text: &str, ordinals: bool, draft: &mut Draft<'_>) {
    let target = || object.id("targetId").and_then(|id| out.find(&id));
    let boxed = |key| object.text(key).unwrap_or_default().into();
    match draft.kind {
        EntryKind::Message => {
            let Some(message) = object.get("message") else { return };
            let role = peek_role(message.get());
            if role == Role::Assistant {
                draft.audience = audience(message.get());
            }
            draft.role = Some(role);
            draft.part = place_in(text, message.get());
            draft.recipe = Recipe::Pi;
        }
        EntryKind::CustomMessage => {
            draft.role = Some(Role::Custom);
            draft.recipe = Recipe::PiCustom;
        }
        EntryKind::BranchSummary => {
            draft.role = Some(Role::BranchSummary);
            if object.text("summary").is_some_and(|s| !s.is_empty()) {
                draft.recipe = Recipe::PiBranch;
            }
        }
        EntryKind::Compaction => {
            draft.role = Some(Role::CompactionSummary);
            draft.recipe = Recipe::PiCompaction;
            draft.detail = Some(Detail::Compaction {
                first_kept: first_kept(out, object, ordinals),
                skip: None,
            });
        }
        EntryKind::ThinkingLevelChange => {
            draft.detail = Some(Detail::Thinking(boxed("thinkingLevel")));
        }
        EntryKind::ModelChange => {
            let (provider, model) = (boxed("provider"), boxed("modelId"));
            draft.detail = Some(Detail::Model { provider, model });
        }
        EntryKind::ContextEdit => draft.detail = Some(Detail::Edit { target: target() }),
        EntryKind::Leaf => draft.detail = Some(Detail::Leaf { target: target() }),
        EntryKind::Custom if object.text("customType").is_some_and(|t| t == UNDO_TYPE) => {
            let target = object.object("data").and_then(|data| data.id("targetId"));
            let target = target.and_then(|id| out.find(&id));
            draft.detail = Some(Detail::Undo { target });
        }
        _ => {}
    }
}

/// Who an answer is for: one that the agent wrote itself, and that came over from a transcript
/// which marks it, answers no request; one of an error is not sent either.
fn audience(message: &str) -> Audience {
    const END: usize = 1024;
    let bytes = message.as_bytes();
    // What an answer says about itself comes last; few answers are looked into.
    let end = bytes.get(bytes.len().saturating_sub(END)..).unwrap_or_default();
    if memchr::memmem::find(end, SYNTHETIC.as_bytes()).is_none() {
        return Audience::Model;
    }
    let Ok(object) = Object::parse(message) else { return Audience::Model };
    match object.text("model").is_some_and(|model| model == SYNTHETIC) {
        false => Audience::Model,
        true if object.text("stopReason").is_some_and(|r| r == "error") => Audience::People,
        true => Audience::Synthetic,
    }
}

/// What entries say of others, after those were put into another order. One that cannot be read
/// any more says nothing.
fn refill(out: &mut Builder, ordinals: bool) {
    for index in 0..out.entries.len() {
        let Some(entry) = out.entries.get(index).filter(|entry| {
            matches!(
                entry.detail.as_deref(),
                Some(
                    Detail::Compaction { .. }
                        | Detail::Edit { .. }
                        | Detail::Undo { .. }
                        | Detail::Leaf { .. }
                )
            )
        }) else {
            continue;
        };
        let text = text_of(&out.source, entry).unwrap_or_default();
        let mut draft = Draft::new(entry.kind.clone());
        if let Ok(object) = Object::parse(&text) {
            fill(out, &object, &text, ordinals, &mut draft);
        }
        if let Some(entry) = out.entries.get_mut(index) {
            entry.detail = draft.detail.map(Box::new);
        }
    }
}

/// Says of compactions that they keep nothing, where they do not say so themselves: by naming
/// themselves, or by being the first.
fn note_broken_compactions(out: &mut Builder) {
    let mut broken = Vec::new();
    for (index, entry) in out.entries.iter().enumerate() {
        let kept = entry.first_kept().filter(|kept| *kept < index);
        if !entry.is_compaction() || kept.is_some() || entry.parent.is_none() {
            continue;
        }
        let text = text_of(&out.source, entry).unwrap_or_default();
        let Ok(object) = Object::parse(&text) else { continue };
        let named = object.id("firstKeptEntryId");
        if named.is_none() || named != object.id("id") {
            let named = named.as_deref().map_or("none", short).to_owned();
            broken.push((entry.line, entry.id.clone(), named));
        }
    }
    for (line, id, named) in broken {
        let text = format!("first kept entry {named} is not before it: nothing is kept");
        out.problems.note_entry(line, Some(id), ProblemKind::BrokenCompaction, text);
    }
}

/// The first entry a compaction keeps. v1 counts the lines of the file, the header being 0.
fn first_kept(out: &Builder, object: &Object<'_>, ordinals: bool) -> Option<u32> {
    if ordinals && let Some(n) = object.count("firstKeptEntryIndex") {
        let index = u32::try_from(n.checked_sub(1)?).ok()?;
        return ((index as usize) < out.entries.len()).then_some(index);
    }
    out.find(&object.id("firstKeptEntryId")?)
}

/// Labels and the session's name count wherever in the tree they stand.
fn note_whole_file(out: &mut Builder, object: &Object<'_>, kind: &str) {
    match kind {
        "label" => {
            if let Some(target) = object.id("targetId") {
                out.label(&target, object.owned("label"));
            }
        }
        "session_info" => {
            let name = object.text("name").map(|n| n.trim().to_owned());
            out.name = name.filter(|n| !n.is_empty());
        }
        // What ctx wrote for a transcript that has them outside of its messages.
        "custom" => match object.text("customType").as_deref() {
            Some(SYSTEM_PROMPT) => out.system = object.owned("data").or(out.system.take()),
            Some(TOOLS) => out.tools = object.get("data").map(|raw| raw.get().to_owned()),
            _ => {}
        },
        _ => {}
    }
}
