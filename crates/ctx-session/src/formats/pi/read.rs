//! pi's session JSONL: v3; v1 and v2 are migrated as in pi, but only in memory.

use ctx_core::text::{Slice, head_chars};
use std::borrow::Cow;

use ctx_core::{Result, Role};
use ctx_dialect::json::{Object, identifier};
use serde_json::value::RawValue;

use crate::entry::{
    Audience, Detail, EntryKind, MessageEncoding, TreeEntry, byte_range, peek_role,
};
use crate::read::jsonl::{LineFormat, Record};
use crate::read::{Builder, Draft, Parent, ProblemKind, SYNTHETIC, shorten_id, timestamp};
use crate::schema::{SYSTEM_PROMPT_TYPE, TOOLS_TYPE, UNDO_TYPE};
use crate::source::SourcePosition;

/// The newest known version.
const NEWEST: u64 = 3;

#[derive(Default)]
pub(super) struct Reader {
    has_header: bool,
    /// The first unreadable line, if nothing was read before it.
    broken_header: Option<u64>,
    /// Whether ids are the entries' ordinals (v1); set by the header or the first entry.
    ordinals: Option<bool>,
}

impl LineFormat for Reader {
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
        draft.entry.timestamp = timestamp(object);
        draft.entry.part = byte_range(text, text);
        if !ordinals {
            identify(out, object, place.line, &mut draft);
        }
        fill(out, object, text, ordinals, &mut draft.entry);
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
        if out.resolve_links() {
            refill(out, self.ordinals == Some(true));
        }
        note_broken_compactions(out);
        if self.has_header {
            return;
        }
        out.header.version = Some(if self.ordinals == Some(true) { 1 } else { NEWEST });
        match self.broken_header {
            Some(line) => {
                let text = "unreadable header: session id and folder are unknown";
                out.problems.note(line, ProblemKind::BrokenHeader, text);
            }
            None => {
                let text = "missing header line: session id and folder are unknown";
                out.problems.note(0, ProblemKind::MissingHeader, text);
            }
        }
    }
}

impl Reader {
    fn header(
        &mut self,
        out: &mut Builder,
        object: &Object<'_>,
        text: &str,
        place: SourcePosition,
    ) {
        if self.has_header {
            let text = "a second header line: skipped";
            out.problems.note(place.line, ProblemKind::DuplicateHeader, text);
            out.add_unreadable(place.span);
            return;
        }
        self.has_header = true;
        let version = match object.get("version") {
            None => Some(1),
            Some(raw) => ctx_dialect::json::integer(raw).and_then(|n| u64::try_from(n).ok()),
        };
        if version.is_none_or(|v| v == 0 || v > NEWEST) {
            let found = object.get("version").map_or("none", RawValue::get);
            let found = head_chars(found, 32);
            let text = format!("unknown version {found}: read as version {NEWEST}");
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

/// Sets id and parent of an entry of v2 and later.
fn identify<'a>(out: &mut Builder, object: &Object<'a>, line: u64, draft: &mut Draft<'a>) {
    draft.id = object.id("id").filter(|id| !id.is_empty());
    if draft.id.is_none() {
        out.problems.note(line, ProblemKind::MissingId, "entry without an id: numbered");
    }
    draft.parent = match object.field("parentId") {
        None => Parent::Previous,
        Some(raw) => match identifier(raw) {
            Some(id) if !id.is_empty() => Parent::Id(id),
            _ => Parent::Root,
        },
    };
}

/// Fills in the fields of the entry's kind.
fn fill(out: &Builder, object: &Object<'_>, text: &str, ordinals: bool, entry: &mut TreeEntry) {
    let target = || object.id("targetId").and_then(|id| out.find(&id));
    let boxed = |key| object.text(key).unwrap_or_default().into();
    match entry.kind {
        EntryKind::Message => {
            let Some(message) = object.get("message") else { return };
            let role = peek_role(message.get());
            if role == Role::Assistant {
                entry.audience = audience(message.get());
            }
            entry.role = Some(role);
            entry.part = byte_range(text, message.get());
            entry.encoding = MessageEncoding::Pi;
        }
        EntryKind::CustomMessage => {
            entry.role = Some(Role::Custom);
            entry.encoding = MessageEncoding::PiCustom;
        }
        EntryKind::BranchSummary => {
            entry.role = Some(Role::BranchSummary);
            if object.text("summary").is_some_and(|s| !s.is_empty()) {
                entry.encoding = MessageEncoding::PiBranch;
            }
        }
        EntryKind::Compaction => {
            entry.role = Some(Role::CompactionSummary);
            entry.encoding = MessageEncoding::PiCompaction;
            entry.detail = Some(Box::new(Detail::Compaction {
                first_kept: first_kept(out, object, ordinals),
                skip: None,
            }));
        }
        EntryKind::ThinkingLevelChange => {
            entry.detail = Some(Box::new(Detail::Thinking(boxed("thinkingLevel"))));
        }
        EntryKind::ModelChange => {
            let (provider, model) = (boxed("provider"), boxed("modelId"));
            entry.detail = Some(Box::new(Detail::Model { provider, model }));
        }
        EntryKind::ContextEdit => entry.detail = Some(Box::new(Detail::Edit { target: target() })),
        EntryKind::Leaf => entry.detail = Some(Box::new(Detail::Leaf { target: target() })),
        EntryKind::Custom if object.text("customType").is_some_and(|t| t == UNDO_TYPE) => {
            let target = object.object("data").and_then(|data| data.id("targetId"));
            let target = target.and_then(|id| out.find(&id));
            entry.detail = Some(Box::new(Detail::Undo { target }));
        }
        _ => {}
    }
}

/// Returns the audience of an answer. A converted transcript marks the answers that the agent
/// generated without a request; among them, those that report an error are not sent.
fn audience(message: &str) -> Audience {
    const END: usize = 1024;
    let bytes = message.as_bytes();
    // An answer's metadata comes last; few answers are searched fully.
    let end = bytes.slice(bytes.len().saturating_sub(END)..);
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

/// Resolves the references between entries again after a reordering. Entries that cannot be read
/// again are skipped.
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
        let text = out.source.text(entry.place).unwrap_or_default();
        let mut again = TreeEntry::new(entry.kind.clone());
        if let Ok(object) = Object::parse(&text) {
            fill(out, &object, &text, ordinals, &mut again);
        }
        if let Some(entry) = out.entries.get_mut(index) {
            entry.detail = again.detail;
        }
    }
}

/// Notes compactions that keep nothing because they are broken. A compaction that names itself, or
/// is the first entry, keeps nothing on purpose.
fn note_broken_compactions(out: &mut Builder) {
    let mut broken = Vec::new();
    for (index, entry) in out.entries.iter().enumerate() {
        let kept = entry.first_kept().filter(|kept| *kept < index);
        if !entry.is_compaction() || kept.is_some() || entry.parent.is_none() {
            continue;
        }
        let text = out.source.text(entry.place).unwrap_or_default();
        let Ok(object) = Object::parse(&text) else { continue };
        let named = object.id("firstKeptEntryId");
        if named.is_none() || named != object.id("id") {
            let named = named.as_deref().map_or("none", shorten_id).to_owned();
            broken.push((entry.place.line, entry.id.clone(), named));
        }
    }
    for (line, id, named) in broken {
        let text =
            format!("first kept entry {named} does not precede the compaction: nothing is kept");
        out.problems.note_entry(line, Some(id), ProblemKind::BrokenCompaction, text);
    }
}

/// Returns the first entry that a compaction keeps. v1 names it by its line, where the header is
/// line 0.
fn first_kept(out: &Builder, object: &Object<'_>, ordinals: bool) -> Option<u32> {
    if ordinals && let Some(n) = object.count("firstKeptEntryIndex") {
        let index = u32::try_from(n.checked_sub(1)?).ok()?;
        return ((index as usize) < out.entries.len()).then_some(index);
    }
    out.find(&object.id("firstKeptEntryId")?)
}

/// Reads labels and the session's name, which apply wherever they are in the tree.
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
        // ctx writes these entries when it converts a format that stores them outside of messages.
        "custom" => match object.text("customType").as_deref() {
            Some(SYSTEM_PROMPT_TYPE) => out.system = object.owned("data").or(out.system.take()),
            Some(TOOLS_TYPE) => out.tools = object.get("data").map(|raw| raw.get().to_owned()),
            _ => {}
        },
        _ => {}
    }
}
