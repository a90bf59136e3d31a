//! Claude Code's session JSONL.
//!
//! All lines that are not part of a sidechain form the main line, in the order of the file:
//! `parentUuid` is not followed, because it breaks at each compact boundary. Sidechains (subagents)
//! are branches.

use std::collections::HashMap;
use std::path::Path;

use ctx_core::{Result, Role};
use ctx_dialect::anthropic;
use ctx_dialect::json::Object;

use super::{Agent, AgentSpec, Beginning, Evidence, Format, FormatSpec, LastUsage};
use crate::entry::{Audience, Detail, EntryKind, MessageEncoding, byte_range, peek_role};
use crate::read::jsonl::{LineFormat, Record};
use crate::read::{Builder, Draft, Parent, SYNTHETIC, jsonl, timestamp};

impl Format {
    /// Claude Code's session JSONL.
    pub const CLAUDE_CODE: Self = Self(&FormatSpec {
        name: "claude-code",
        judge_line,
        read: Some(|source| jsonl::read(source, Reader::default())),
        provider: ("anthropic", "anthropic-messages"),
        known_entries: "summary system progress attachment file-history-snapshot queue-operation \
                        pr-link custom-title tag mode last-prompt",
        has_sidechains: true,
        agents: &[Agent::CLAUDE_CODE],
        note_beginning,
        has_late_folder: true,
        last_usage,
        ..FormatSpec::NONE
    });
}

impl Agent {
    /// Claude Code.
    pub const CLAUDE_CODE: Self = Self(&AgentSpec {
        name: "claude-code",
        folders: |environment| vec![environment.below("CLAUDE_CONFIG_DIR", ".claude", "projects")],
        layouts: &[&["*", "*.jsonl"]],
        usual_window: Some(200_000),
        writes_in_steps: true,
    });
}

fn judge_line(kind: Option<&str>, line: &Object<'_>, _: bool) -> Option<Evidence> {
    let has = |key: &str| line.has(key);
    let is_certain = match kind? {
        "user" | "assistant" => has("message") || has("uuid") || has("parentUuid"),
        "summary" => has("leafUuid"),
        kind => kind == "file-history-snapshot" || kind == "queue-operation",
    };
    match is_certain {
        true => Some(Evidence::Certain),
        false => {
            (has("uuid") && (has("parentUuid") || has("sessionId"))).then_some(Evidence::Likely)
        }
    }
}

fn note_beginning(kind: &str, line: &Object<'_>, known: &mut Beginning) {
    known.take(line, "sessionId");
    if kind == "user" || kind == "assistant" {
        known.is_subagent = !known.has_message && line.is_true("isSidechain");
        known.has_message = true;
    }
}

fn last_usage(session: &Path) -> Option<LastUsage> {
    LastUsage::in_lines(session, |line| {
        let message = line.get("message").filter(|_| !line.is_true("isSidechain"))?;
        let meta = anthropic::parse_raw(message).meta;
        let model = meta.model.filter(|model| model != SYNTHETIC)?;
        LastUsage::of(meta.usage?, Some(model), None)
    })
}

#[derive(Default)]
struct Reader {
    /// The first entry of each `message.id`, on the main line and on sidechains.
    heads: HashMap<(bool, String), u32>,
    /// The newest entry of the main line.
    main: Option<u32>,
    /// The compact boundary whose summary was not read yet.
    boundary: Option<u32>,
    /// The model of the newest answer on the main line.
    model: Option<String>,
}

impl LineFormat for Reader {
    fn object(&mut self, out: &mut Builder, record: Record<'_>) -> Result<()> {
        let Record { object, text, place } = record;
        header(out, object);
        let kind = object.text("type").unwrap_or_default();
        let sidechain = object.is_true("isSidechain");
        let mut draft = Draft::new(EntryKind::Other(kind.as_ref().into()));
        draft.id = object.id("uuid").filter(|id| !id.is_empty());
        draft.entry.timestamp = timestamp(object);
        draft.parent = self.parent(out, object, sidechain);
        let message = object.get("message").filter(|_| kind == "user" || kind == "assistant");
        let mut id = None;
        if let Some(message) = message {
            draft.entry.part = byte_range(text, message.get());
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
        // A file that contains only a sidechain is the transcript of a subagent.
        if self.main.is_none() {
            out.tip = u32::try_from(out.entries.len()).ok().and_then(|n| n.checked_sub(1));
        }
    }
}

impl Reader {
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

    /// Fills in `draft` from a user or assistant line. Returns the id that the lines of an answer
    /// share.
    fn message(
        &mut self,
        out: &mut Builder,
        object: &Object<'_>,
        message: &str,
        sidechain: bool,
        draft: &mut Draft<'_>,
    ) -> Option<String> {
        draft.entry.kind = EntryKind::Message;
        draft.entry.encoding = MessageEncoding::Anthropic;
        if object.is_true("isCompactSummary") {
            draft.entry.kind = EntryKind::Compaction;
            draft.entry.encoding = MessageEncoding::AnthropicSummary;
            draft.entry.role = Some(Role::CompactionSummary);
            let first_kept = self.boundary.take().filter(|_| !sidechain);
            draft.entry.detail = Some(Box::new(Detail::Compaction { first_kept, skip: None }));
            return None;
        }
        if object.is_true("isVisibleInTranscriptOnly") {
            draft.entry.audience = Audience::People;
        }
        let inner = Object::parse(message).unwrap_or_default();
        let role = inner.text("role");
        draft.entry.role = Some(role.map_or_else(|| peek_role(message), |r| Role::from_name(&r)));
        if draft.entry.role != Some(Role::Assistant) {
            return None;
        }
        let model = inner.owned("model").unwrap_or_default();
        if model == SYNTHETIC {
            draft.entry.audience = match is_api_error(object, &inner) {
                true => Audience::People,
                false => Audience::Synthetic,
            };
        } else if !model.is_empty() {
            if !sidechain && self.model.as_ref() != Some(&model) {
                out.auto_compacted_at = None;
                self.model = Some(model.clone());
            }
            let (provider, model) = ("anthropic".into(), model.into());
            draft.entry.detail = Some(Box::new(Detail::Model { provider, model }));
        }
        let id = inner.id("id").filter(|id| !id.is_empty())?.into_owned();
        let key = (sidechain, id);
        draft.entry.head = self.heads.get(&key).copied();
        Some(key.1)
    }
}

/// Returns the size of the context that the client compacted because its window was nearly full.
fn auto_compacted_at(boundary: &Object<'_>) -> Option<u32> {
    let metadata = boundary.object("compactMetadata")?;
    let is_auto = metadata.text("trigger").is_some_and(|trigger| trigger == "auto");
    let tokens = metadata.count("preTokens").filter(|&tokens| is_auto && tokens > 0)?;
    u32::try_from(tokens).ok()
}

/// Whether the line is an API error that the client displays but does not send. Lines of older
/// clients lack the mark.
fn is_api_error(line: &Object<'_>, message: &Object<'_>) -> bool {
    match line.get("isApiErrorMessage") {
        Some(mark) => mark.get() == "true",
        None => {
            let text = anthropic::system_text;
            message.get("content").is_some_and(|raw| text(raw).starts_with("API Error"))
        }
    }
}

/// Fills in the header from the first line that has each value.
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
