//! Replacing history with a summary.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::{
    Compacted, ContextView, Entry, EntryId, Error, ErrorKind, Message, Projected, RawJson, Result,
    Role, Tokens,
};

use super::node::Reason;

impl ContextView {
    /// Replaces the messages before `firstKeptEntryId` with a summary, stored as an entry with the
    /// given id, and applies the forms that came with it. Earlier summaries are dropped; system
    /// messages, pinned messages and the newest user message stay. Without a summary the messages
    /// are only dropped. Returns the tokens freed, net of the summary.
    ///
    /// A summary stays until the next compaction: nothing else drops it. The host stores what
    /// [`ContextView::take_compactions`] returns.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Contract`], with nothing changed, if the entry is not in the request, if it
    /// lies between a tool call and its results, or if a form does not match its message.
    pub fn compact(
        &mut self,
        compacted: Compacted,
        id: impl Into<EntryId>,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Result<Tokens> {
        let first_kept = self.cut_at(&compacted.first_kept_entry_id)?;
        let forms = self.forms_of(&compacted)?;
        let why = Reason::new(layer, reason);
        let before = self.total();
        let (mut place, mut covered) = (None, Vec::new());
        for at in 0..first_kept {
            let node = &self.nodes[at];
            if !node.is_live() {
                continue;
            }
            let group = node.group;
            if *node.role() == Role::CompactionSummary {
                self.unpin(at);
            }
            if !self.group_is_protected(group) {
                place.get_or_insert(at);
                covered.extend(self.nodes[at].recorded());
                self.take_out(at, &why);
            }
        }
        // The form of a dropped message would be sent again if the summary were undone.
        for (at, form) in forms {
            if self.nodes[at].is_live() {
                self.set_form(at, form.clone(), &why);
            }
        }
        if !compacted.summary.is_empty() {
            let mut summary = Message::text(Role::CompactionSummary, compacted.summary.clone());
            summary.meta.tokens_before = Some(compacted.tokens_before.get());
            let details = compacted.details.as_ref();
            summary.meta.details = details.map(|details| RawJson::from_text(details.to_string()));
            let entry = Arc::new(Entry::in_memory(id, summary).covering(covered));
            self.insert(place.unwrap_or(first_kept), entry, why.layer, why.reason)?;
        }
        self.compactions.push(compacted);
        Ok(before - self.total())
    }

    /// Returns the compactions since the view was created or since the last call, for storage.
    pub fn take_compactions(&mut self) -> Vec<Compacted> {
        std::mem::take(&mut self.compactions)
    }

    /// Returns the position of the first entry that a compaction keeps.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Contract`] if the entry is not in the request, or if the cut before it lies
    /// between a tool call and its results.
    pub fn cut_at(&self, id: &EntryId) -> Result<usize> {
        let refused = |message| {
            Error::new(ErrorKind::Contract, message)
                .with("firstKeptEntryId", id)
                .hint("plan the compaction again on this view: it has changed since")
        };
        let kept = self.nodes.iter().position(|n| n.is_live() && n.entry.id() == id);
        let kept = kept.ok_or_else(|| refused("the first kept entry is not in the request"))?;
        let mut before: Vec<u32> = self.nodes[..kept].iter().map(|n| n.group).collect();
        before.sort_unstable();
        let split = |n: &super::Node| n.is_live() && before.binary_search(&n.group).is_ok();
        if self.nodes[kept..].iter().any(split) {
            return Err(refused("the cut is between a tool call and its results"));
        }
        Ok(kept)
    }

    /// Returns the forms that came with a summary, each with the position of its message.
    fn forms_of<'c>(&self, compacted: &'c Compacted) -> Result<Vec<(usize, &'c Message)>> {
        if compacted.projections.is_empty() {
            return Ok(Vec::new());
        }
        let live = self.nodes.iter().enumerate().rev().filter(|(_, node)| node.is_live());
        let places: HashMap<&EntryId, usize> =
            live.map(|(at, node)| (node.entry.id(), at)).collect();
        let mut forms = Vec::new();
        for projection in &compacted.projections {
            let Projected::Replaced(form) = &projection.form else { continue };
            let Some(&at) = places.get(&projection.key.entry) else { continue };
            self.check_form(at, form)?;
            forms.push((at, &**form));
        }
        Ok(forms)
    }

    fn unpin(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if std::mem::take(&mut node.pinned) {
            self.groups[node.group as usize].pins -= 1;
        }
    }
}
