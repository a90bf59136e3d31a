//! A branch as messages: all recorded messages, or those in the agent's current context.

use ctx_core::text::Slice;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ctx_core::{Entry, EntryId, Error, ErrorKind, Message, Result, Role, ToolCall};
use ctx_dialect::json::Object;
use ctx_dialect::{openai_responses, pi};

use crate::entry::{
    Audience, MessageEncoding, MessagePart, StoredMessage, TreeEntry, with_content,
};
use crate::schema::{CTX_FIELD, PI_VERSION};
use crate::transcript::{Branch, Transcript};

/// One message of a branch.
#[derive(Clone, Debug)]
pub struct BranchMessage {
    /// The message.
    pub entry: Arc<Entry>,
    /// Whether it is the answer of a model, so that a request was made just before.
    pub request: bool,
}

/// The context that the agent itself would send next.
#[derive(Clone, Debug)]
pub struct SessionContext {
    /// The messages.
    pub entries: Vec<Arc<Entry>>,
    /// The current thinking level; `off` if none was set.
    pub thinking_level: String,
    /// The current provider and model.
    pub model: Option<(String, String)>,
    /// The compaction whose summary begins the context.
    pub compaction: Option<EntryId>,
}

impl SessionContext {
    /// Returns the last answer and its calls without a result. Returns `None` if every call has a
    /// result, or if anything but results follows the answer.
    ///
    /// # Errors
    ///
    /// Errors from reading a message.
    pub fn open_calls(&self) -> Result<Option<(EntryId, Vec<ToolCall>)>> {
        let mut answered = HashSet::new();
        for entry in self.entries.iter().rev() {
            let facts = entry.outline()?;
            match facts.role {
                Role::ToolResult => answered.extend(facts.results.iter().cloned()),
                Role::Assistant => {
                    let message = entry.message()?;
                    let open = message.tool_calls().filter(|call| !answered.contains(&call.id));
                    let open: Vec<_> = open.cloned().collect();
                    return Ok((!open.is_empty()).then(|| (entry.id().clone(), open)));
                }
                _ => break,
            }
        }
        Ok(None)
    }
}

impl Transcript {
    /// Returns the indices of the entries from the root to `leaf`; default: the transcript's leaf.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an unknown entry id.
    pub fn path(&self, leaf: Option<&EntryId>) -> Result<Vec<usize>> {
        let mut at = match leaf {
            None => self.leaf_index(),
            Some(id) => Some(self.index_of(id).ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "unknown entry in the transcript")
                    .with("id", id)
                    .with("path", self.source.name())
            })?),
        };
        let mut path = Vec::new();
        // A parent precedes its child, so this terminates.
        while let Some(index) = at {
            path.push(index);
            at = self.entries.get(index).and_then(TreeEntry::parent);
        }
        path.reverse();
        Ok(path)
    }

    /// Like [`Transcript::path`], extended by the remaining lines of the message at its end: if a
    /// message spans several lines, any of them identifies it.
    pub(crate) fn path_of_message(&self, leaf: Option<&EntryId>) -> Result<Vec<usize>> {
        let mut path = self.path(leaf)?;
        // An overlay entry attached to a message follows all of its lines.
        let in_file =
            |index: &&usize| !self.entries.get(**index).is_some_and(|entry| entry.overlay);
        let last = path.iter().rev().find(in_file).filter(|_| leaf.is_some());
        let Some(&last) = last else { return Ok(path) };
        let head =
            |index: usize| Some(self.entries.get(index)?.head.map_or(index, |head| head as usize));
        let later = (last + 1..self.entries.len()).filter(|&index| {
            let in_file = self.entries.get(index).is_some_and(|entry| !entry.overlay);
            in_file && head(index) == head(last)
        });
        path.extend(later);
        Ok(path)
    }

    /// Returns every message from the root to the leaf, ignoring recorded compactions and context
    /// edits. For replays.
    ///
    /// # Errors
    ///
    /// None at present; later versions may read entries on demand here.
    pub fn main_line(&self) -> Result<Vec<BranchMessage>> {
        self.messages_to(None)
    }

    /// Like [`Transcript::main_line`], up to another leaf. A message that spans several lines is
    /// complete, even if `leaf` names only one of the lines.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an unknown entry id.
    pub fn messages_to(&self, leaf: Option<&EntryId>) -> Result<Vec<BranchMessage>> {
        let path = self.path_of_message(leaf)?;
        Ok(self.items(path.into_iter().filter(|&index| self.is_conversation_message(index))))
    }

    /// Returns the context as the agent rebuilds it, up to `leaf` or the transcript's leaf: the
    /// last compaction on the branch and the context edits are applied.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an unknown entry id, and errors from reading an entry.
    pub fn context(&self, leaf: Option<&EntryId>) -> Result<SessionContext> {
        let path = self.path_of_message(leaf)?;
        let branch = Branch::of(self, path);
        let mut entries = Vec::new();
        let mut kept = 0;
        let mut prompt_replaced = false;
        let mut staying = HashSet::new();
        let compaction = branch.compactions.last().copied();
        if let Some(at) = compaction {
            staying = self.staying(branch.path[at])?;
            let first = branch.first_kept(self, at);
            kept = first.place;
            let before = branch.path.slice(..kept).iter().copied();
            let covered = before.filter(|index| {
                let role = self.role(*index);
                !staying.contains(index)
                    && self.is_sent(*index)
                    && !matches!(role, Some(Role::CompactionSummary | Role::System))
            });
            let covered = self.items(covered).into_iter().map(|item| item.entry).collect();
            prompt_replaced = self.push_summary(branch.path[at], covered, &mut entries)?;
            if let Some(skip) = first.skip {
                self.push_replacement(branch.path[kept], skip, &mut entries)?;
            }
        }
        let visible = branch.path.iter().enumerate().skip(kept).filter(|&(at, &index)| {
            let before = compaction.is_some_and(|c| at < c);
            let role = self.role(index);
            self.is_sent(index) && !(before && prompt_replaced && role == Some(&Role::System))
        });
        let before = branch.path.slice(..kept).iter().copied();
        let stays = before.filter(|index| staying.contains(index) && self.is_sent(*index));
        let visible: Vec<usize> = stays.chain(visible.map(|(_, &index)| index)).collect();
        let mut items = self.items(visible.into_iter());
        if !branch.edits.is_empty() {
            items = self.edited(items, &branch.edits)?;
        }
        entries.extend(items.into_iter().map(|item| item.entry));
        Ok(SessionContext {
            entries,
            thinking_level: branch.thinking_level(self),
            model: branch.model(self)?,
            compaction: compaction
                .and_then(|at| self.entries.get(branch.path[at]))
                .map(|entry| entry.id.clone()),
        })
    }

    /// Returns the messages before the first kept entry that a compaction of ctx left in place.
    pub(crate) fn staying(&self, compaction: usize) -> Result<HashSet<usize>> {
        let staying = self.compaction_extra(compaction)?.staying;
        Ok(staying.iter().filter_map(|id| self.index_of(id)).collect())
    }

    /// Returns the number of compactions on the branch to the leaf, without undone ones.
    ///
    /// # Errors
    ///
    /// None at present; later versions may read entries on demand here.
    pub fn compactions(&self) -> Result<usize> {
        Ok(Branch::of(self, self.path(None)?).compactions.len())
    }

    /// Returns the provider and the model in use at the leaf.
    ///
    /// # Errors
    ///
    /// Errors from reading an entry.
    pub fn model(&self) -> Result<Option<(String, String)>> {
        Branch::of(self, self.path(None)?).model(self)
    }

    fn role(&self, index: usize) -> Option<&Role> {
        self.entries.get(index)?.role.as_ref()
    }

    /// Whether the entry is a message of the conversation that a model saw.
    pub(crate) fn is_conversation_message(&self, index: usize) -> bool {
        let role = self.role(index);
        self.is_sent(index) && role != Some(&Role::CompactionSummary)
    }

    /// Whether the file is a ctx session.
    pub fn is_ctx_session(&self) -> bool {
        let header = self.header.raw.as_deref().and_then(|raw| Object::parse(raw).ok());
        // Also true for a session of a newer ctx, which writers refuse.
        self.header.version >= Some(PI_VERSION)
            && header.is_some_and(|header| header.integer(CTX_FIELD) >= Some(1))
    }

    pub(crate) fn is_sent(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(|entry| {
            entry.is_message()
                && entry.encoding != MessageEncoding::Nothing
                && entry.audience != Audience::People
        })
    }

    /// Returns the entries at `indices` as messages. The lines of one answer become one message, at
    /// the position of the first.
    pub(crate) fn items(&self, indices: impl Iterator<Item = usize>) -> Vec<BranchMessage> {
        let messages = self.messages_of(indices).into_iter();
        messages.filter_map(|(index, more)| self.item(index, more)).collect()
    }

    /// Returns the messages in the entries at `indices`: the first entry of each, and its other
    /// parts.
    pub(crate) fn messages_of(
        &self,
        indices: impl Iterator<Item = usize>,
    ) -> Vec<(usize, Vec<MessagePart>)> {
        let mut order: Vec<(usize, Vec<MessagePart>)> = Vec::new();
        let mut heads: HashMap<u32, usize> = HashMap::new();
        for index in indices {
            let Some(entry) = self.entries.get(index) else { continue };
            let head = entry.head.unwrap_or(u32::try_from(index).unwrap_or(u32::MAX));
            if entry.head.is_some()
                && let Some((_, more)) = heads.get(&head).and_then(|&at| order.get_mut(at))
            {
                more.push(MessagePart::of(entry));
                continue;
            }
            if entry.role == Some(Role::Assistant) && !matches!(entry.encoding, MessageEncoding::Pi)
            {
                heads.insert(head, order.len());
            }
            order.push((index, Vec::new()));
        }
        order
    }

    pub(crate) fn item(&self, index: usize, more: Vec<MessagePart>) -> Option<BranchMessage> {
        let entry = self.entries.get(index)?;
        let request = entry.role == Some(Role::Assistant) && entry.audience == Audience::Model;
        Some(BranchMessage { entry: Arc::new(self.entry_at(index, more)?), request })
    }

    fn entry_at(&self, index: usize, more: Vec<MessagePart>) -> Option<Entry> {
        let entry = self.entries.get(index)?;
        let source = self.source_of(entry).clone();
        let stored = StoredMessage::new(source, MessagePart::of(entry), more);
        Some(Entry::lazy(entry.id.clone(), entry.timestamp, Box::new(stored)))
    }

    /// Adds the replacement of the compacted history: the summary, which covers these entries, or
    /// the messages that replace it.
    /// Returns whether it included a system prompt.
    fn push_summary(
        &self,
        index: usize,
        covered: Vec<Arc<Entry>>,
        out: &mut Vec<Arc<Entry>>,
    ) -> Result<bool> {
        let Some(entry) = self.entries.get(index) else { return Ok(false) };
        if entry.audience == Audience::Nobody {
            return Ok(false);
        }
        if self.push_replacement(index, 0, out)? {
            return Ok(false);
        }
        let text = self.text(entry)?;
        let part = text.slice(entry.part.0 as usize..entry.part.1 as usize);
        let object = Object::parse(part).unwrap_or_default();
        let system =
            object.get("systemMessage").filter(|_| entry.encoding == MessageEncoding::PiCompaction);
        if let Some(raw) = system {
            let id = format!("{}.system", entry.id);
            out.push(Arc::new(Entry::in_memory(id, system_message(raw))));
        }
        if let Some(entry) = self.entry_at(index, Vec::new()) {
            out.push(Arc::new(entry.covering(covered)));
        }
        Ok(system.is_some())
    }

    /// Adds the messages with which Codex replaces earlier history, except for the first `skip`.
    /// Returns whether there are any.
    fn push_replacement(&self, index: usize, skip: u32, out: &mut Vec<Arc<Entry>>) -> Result<bool> {
        let entry =
            self.entries.get(index).filter(|e| e.encoding == MessageEncoding::CodexCompacted);
        let Some(entry) = entry else { return Ok(false) };
        let text = self.text(entry)?;
        let part = text.slice(entry.part.0 as usize..entry.part.1 as usize);
        let object = Object::parse(part).unwrap_or_default();
        let Some(history) = object.array("replacement_history") else { return Ok(false) };
        let messages = history.into_iter().map(openai_responses::parse_raw).enumerate();
        out.extend(
            messages.skip(skip as usize).map(|(n, message)| {
                Arc::new(Entry::in_memory(format!("{}.{n}", entry.id), message))
            }),
        );
        Ok(true)
    }

    /// Applies the context edits, given as a map from the target entry to the entry that edits it.
    fn edited(
        &self,
        items: Vec<BranchMessage>,
        edits: &HashMap<u32, usize>,
    ) -> Result<Vec<BranchMessage>> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            let target = self.index_of(item.entry.id()).and_then(|i| u32::try_from(i).ok());
            let edit = target.and_then(|target| edits.get(&target));
            let Some(edit) = edit.and_then(|&edit| self.entries.get(edit)) else {
                out.push(item);
                continue;
            };
            let text = self.text(edit)?;
            let replacement = Object::parse(&text)?.get("replacement").and_then(Object::of);
            let Some(content) = replacement.and_then(|r| r.get("content")) else { continue };
            let message = with_content(&*item.entry.message()?, pi::parse_content(content));
            let entry = Arc::new(Entry::in_memory(item.entry.id().clone(), message));
            out.push(BranchMessage { entry, request: item.request });
        }
        Ok(out)
    }
}

/// Reads a compaction's prompt checkpoint: a complete system message, or only its text.
fn system_message(raw: &serde_json::value::RawValue) -> Message {
    let is_message = Object::of(raw).is_some_and(|o| o.has("role") || o.has("content"));
    let mut message = if is_message {
        pi::parse_raw(raw)
    } else {
        Message::new(Role::System, pi::parse_content(raw))
    };
    message.role = Role::System;
    message
}
