//! A branch as messages: everything that was said, or what the agent's own rules leave of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ctx_core::{Entry, EntryId, Error, ErrorKind, Message, Result, Role, ToolCall};
use ctx_dialect::json::Object;
use ctx_dialect::{openai_responses, pi};

use crate::branch::Branch;
use crate::compactions::Mark;
use crate::entry::{Audience, TreeEntry};
use crate::load::{Part, Recipe, Stored, replaced};
use crate::transcript::Transcript;

/// One message of a line.
#[derive(Clone, Debug)]
pub struct LineItem {
    /// The message.
    pub entry: Arc<Entry>,
    /// Whether a model answered with it: then a request was made just before.
    pub request: bool,
}

/// What the agent itself would send next.
#[derive(Clone, Debug)]
pub struct SessionContext {
    /// The messages.
    pub entries: Vec<Arc<Entry>>,
    /// The thinking level in force; `off` if none was set.
    pub thinking_level: String,
    /// Provider and model in force.
    pub model: Option<(String, String)>,
    /// The compaction whose summary stands at the beginning.
    pub compaction: Option<EntryId>,
}

impl SessionContext {
    /// The last answer with those of its calls that have no result, if there are any and nothing
    /// but results follows it.
    ///
    /// # Errors
    ///
    /// What reading a message may give.
    pub fn open_calls(&self) -> Result<Option<(EntryId, Vec<ToolCall>)>> {
        let mut answered = HashSet::new();
        for entry in self.entries.iter().rev() {
            let facts = entry.facts()?;
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
    /// Indices of the entries from the root to `leaf`; to the transcript's leaf if `None`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if there is no entry of that id.
    pub fn path(&self, leaf: Option<&EntryId>) -> Result<Vec<usize>> {
        let mut at = match leaf {
            None => self.leaf_index(),
            Some(id) => Some(self.index_of(id).ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "no such entry in the transcript")
                    .with("id", id)
                    .with("path", self.source.name())
            })?),
        };
        let mut path = Vec::new();
        // A parent stands before its child, so this ends.
        while let Some(index) = at {
            path.push(index);
            at = self.entries.get(index).and_then(TreeEntry::parent);
        }
        path.reverse();
        Ok(path)
    }

    /// [`Transcript::path`], and behind it what other lines hold of the message at its end: a message
    /// written over several lines is named by any of them.
    pub(crate) fn path_of_message(&self, leaf: Option<&EntryId>) -> Result<Vec<usize>> {
        let mut path = self.path(leaf)?;
        // What hangs on a message by way of an overlay follows the whole of it.
        let in_file =
            |index: &&usize| !self.entries.get(**index).is_some_and(TreeEntry::is_overlay);
        let last = path.iter().rev().find(in_file).filter(|_| leaf.is_some());
        let Some(&last) = last else { return Ok(path) };
        let head = |index: usize| match self.entries.get(index)?.head {
            Some(head) => Some(head as usize),
            None => Some(index),
        };
        let later = (last + 1..self.entries.len()).filter(|&index| {
            let in_file = self.entries.get(index).is_some_and(|entry| !entry.is_overlay());
            in_file && head(index) == head(last)
        });
        path.extend(later);
        Ok(path)
    }

    /// Every message from the root to the leaf, as if nothing had ever been left out: recorded
    /// compactions and edits of the context are ignored. For replays.
    ///
    /// # Errors
    ///
    /// None today; reading it on demand may fail later.
    pub fn main_line(&self) -> Result<Vec<LineItem>> {
        self.line_to(None)
    }

    /// [`Transcript::main_line`], up to another leaf. A message that was written over several lines
    /// is whole, whichever of them is named.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if there is no entry of that id.
    pub fn line_to(&self, leaf: Option<&EntryId>) -> Result<Vec<LineItem>> {
        let path = self.path_of_message(leaf)?;
        let said = path.into_iter().filter(|&index| {
            let summary = self.entries.get(index).and_then(TreeEntry::role);
            self.is_sent(index) && summary != Some(&Role::CompactionSummary)
        });
        Ok(self.items(said))
    }

    /// The context as the agent rebuilds it, up to `leaf` or the transcript's leaf: the last
    /// compaction on the branch wins, edits of the context hold, the rest follows.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if there is no entry of that id, and what reading an entry may give.
    pub fn context(&self, leaf: Option<&EntryId>) -> Result<SessionContext> {
        let path = self.path_of_message(leaf)?;
        let branch = Branch::of(self, path);
        let mut entries = Vec::new();
        let mut kept = 0;
        let mut prompt_replaced = false;
        let mut staying = HashSet::new();
        let compaction = branch.compactions.last().copied();
        if let Some(at) = compaction {
            prompt_replaced = self.push_summary(branch.path[at], &mut entries)?;
            staying = self.staying(branch.path[at])?;
            let first = branch.first_kept(self, at);
            kept = first.place;
            if let Some(skip) = first.skip {
                self.push_replacement(branch.path[kept], skip, &mut entries)?;
            }
        }
        let visible = branch.path.iter().enumerate().skip(kept).filter(|&(at, &index)| {
            let before = compaction.is_some_and(|c| at < c);
            let role = self.entries.get(index).and_then(TreeEntry::role);
            self.is_sent(index) && !(before && prompt_replaced && role == Some(&Role::System))
        });
        let before = branch.path.get(..kept).unwrap_or_default().iter().copied();
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

    /// Messages that a compaction of ctx left standing before its first kept entry.
    pub(crate) fn staying(&self, compaction: usize) -> Result<HashSet<usize>> {
        let Some(entry) = self.entries.get(compaction) else { return Ok(HashSet::new()) };
        let text = self.text(entry)?;
        let mark = Object::parse(&text).ok().and_then(|object| Mark::of(&object));
        let staying = mark.map(|mark| mark.staying).unwrap_or_default();
        Ok(staying.iter().filter_map(|id| self.index_of(id)).collect())
    }

    /// How many compactions are on the branch to the leaf. Undone ones do not count.
    ///
    /// # Errors
    ///
    /// None today; reading it on demand may fail later.
    pub fn compactions(&self) -> Result<usize> {
        Ok(Branch::of(self, self.path(None)?).compactions.len())
    }

    /// The provider and the model in force at the leaf.
    ///
    /// # Errors
    ///
    /// What reading an entry may give.
    pub fn model(&self) -> Result<Option<(String, String)>> {
        Branch::of(self, self.path(None)?).model(self)
    }

    pub(crate) fn is_sent(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(|entry| {
            entry.is_message()
                && entry.recipe != Recipe::Nothing
                && entry.audience != Audience::People
        })
    }

    /// The entries at `indices` as messages. Lines of one answer become one message, at the place
    /// of the first.
    pub(crate) fn items(&self, indices: impl Iterator<Item = usize>) -> Vec<LineItem> {
        let messages = self.messages_of(indices).into_iter();
        messages.filter_map(|(index, more)| self.item(index, more)).collect()
    }

    /// The messages in the entries at `indices`: each one's first entry, and its further parts.
    pub(crate) fn messages_of(
        &self,
        indices: impl Iterator<Item = usize>,
    ) -> Vec<(usize, Vec<Part>)> {
        let mut order: Vec<(usize, Vec<Part>)> = Vec::new();
        let mut heads: HashMap<u32, usize> = HashMap::new();
        for index in indices {
            let Some(entry) = self.entries.get(index) else { continue };
            let head = match entry.head {
                Some(head) => head,
                None => u32::try_from(index).unwrap_or(u32::MAX),
            };
            if entry.head.is_some()
                && let Some((_, more)) = heads.get(&head).and_then(|&at| order.get_mut(at))
            {
                more.push(Part::of(entry));
                continue;
            }
            if entry.role == Some(Role::Assistant) && !matches!(entry.recipe, Recipe::Pi) {
                heads.insert(head, order.len());
            }
            order.push((index, Vec::new()));
        }
        order
    }

    pub(crate) fn item(&self, index: usize, more: Vec<Part>) -> Option<LineItem> {
        let entry = self.entries.get(index)?;
        let source = self.source_of(entry).clone();
        let stored = Stored::new(source, Part::of(entry), more);
        Some(LineItem {
            entry: Arc::new(Entry::lazy(entry.id.clone(), entry.timestamp, Box::new(stored))),
            request: entry.role == Some(Role::Assistant) && entry.audience == Audience::Model,
        })
    }

    /// Adds what stands for the compacted history: the summary, or the history that replaces it.
    /// Says whether it came with a system prompt of its own.
    fn push_summary(&self, index: usize, out: &mut Vec<Arc<Entry>>) -> Result<bool> {
        let Some(entry) = self.entries.get(index) else { return Ok(false) };
        if entry.audience == Audience::Nobody {
            return Ok(false);
        }
        if self.push_replacement(index, 0, out)? {
            return Ok(false);
        }
        let text = self.text(entry)?;
        let part = text.get(entry.part.0 as usize..entry.part.1 as usize).unwrap_or_default();
        let object = Object::parse(part).unwrap_or_default();
        let system = object.get("systemMessage").filter(|_| entry.recipe == Recipe::PiCompaction);
        if let Some(raw) = system {
            let id = format!("{}.system", entry.id);
            out.push(Arc::new(Entry::held(id, system_message(raw))));
        }
        out.extend(self.item(index, Vec::new()).map(|item| item.entry));
        Ok(system.is_some())
    }

    /// Adds the history with which Codex replaces what was before, but for its first `skip`
    /// messages; says whether there is one.
    fn push_replacement(&self, index: usize, skip: u32, out: &mut Vec<Arc<Entry>>) -> Result<bool> {
        let entry = self.entries.get(index).filter(|e| e.recipe == Recipe::CodexCompacted);
        let Some(entry) = entry else { return Ok(false) };
        let text = self.text(entry)?;
        let part = text.get(entry.part.0 as usize..entry.part.1 as usize).unwrap_or_default();
        let object = Object::parse(part).unwrap_or_default();
        let Some(history) = object.array("replacement_history") else { return Ok(false) };
        let messages = history.into_iter().map(openai_responses::parse_raw).enumerate();
        out.extend(
            messages
                .skip(skip as usize)
                .map(|(n, message)| Arc::new(Entry::held(format!("{}.{n}", entry.id), message))),
        );
        Ok(true)
    }

    /// Applies the edits of the context: target entry to the entry that edits it.
    fn edited(&self, items: Vec<LineItem>, edits: &HashMap<u32, usize>) -> Result<Vec<LineItem>> {
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
            let message = replaced(&*item.entry.message()?, pi::parse_content(content));
            let entry = Arc::new(Entry::held(item.entry.id().clone(), message));
            out.push(LineItem { entry, request: item.request });
        }
        Ok(out)
    }
}

/// A compaction's prompt checkpoint: a whole system message, or its text alone.
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
