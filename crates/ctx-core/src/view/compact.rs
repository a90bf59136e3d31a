//! A summary in the place of history.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{
    Compacted, ContextView, Entry, EntryId, Error, ErrorKind, Message, Projected, RawJson, Result,
    Role, Tokens,
};

use super::node::Why;

impl ContextView {
    /// Puts a summary in the place of the messages before `firstKeptEntryId`, as an entry with the
    /// id given, and gives kept messages the forms that came with it. Earlier summaries go; system
    /// messages, pinned ones and the newest user message stay. Without a summary the messages just
    /// go. Returns the tokens freed, net of the summary.
    ///
    /// A summary stays until the next compaction: nothing else drops it. The host stores what
    /// [`ContextView::take_compactions`] hands out.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Contract`], with nothing changed, if the entry is not in the request, if it
    /// lies between a tool call and its results, or if a form does not fit its message.
    pub fn compact(
        &mut self,
        compacted: Compacted,
        id: impl Into<EntryId>,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Result<Tokens> {
        let first_kept = self.cut_at(&compacted)?;
        let why = Why::new(layer, reason);
        let before = self.total();
        self.take_forms(&compacted, &why)?;
        let mut place = None;
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
                self.take_out(at, &why);
            }
        }
        if !compacted.summary.is_empty() {
            let mut summary = Message::text(Role::CompactionSummary, compacted.summary.clone());
            summary.meta.tokens_before = Some(compacted.tokens_before.get());
            let details = compacted.details.as_ref();
            summary.meta.details = details.map(|details| RawJson::from_text(details.to_string()));
            let entry = Arc::new(Entry::held(id, summary));
            self.insert(place.unwrap_or(first_kept), entry, why.layer, why.reason)?;
        }
        self.compactions.push(compacted);
        Ok(before - self.total())
    }

    /// The compactions since the view was made or last asked, to be stored.
    pub fn take_compactions(&mut self) -> Vec<Compacted> {
        std::mem::take(&mut self.compactions)
    }

    /// Where the kept part begins.
    fn cut_at(&self, compacted: &Compacted) -> Result<usize> {
        let id = &compacted.first_kept_entry_id;
        let refused =
            |message| Error::new(ErrorKind::Contract, message).with("firstKeptEntryId", id);
        let kept = self.nodes.iter().position(|n| n.is_live() && n.entry.id() == id);
        let kept = kept.ok_or_else(|| refused("the first kept entry is not in the request"))?;
        let mut before: Vec<u32> = self.nodes[..kept].iter().map(|n| n.group).collect();
        before.sort_unstable();
        let split = |n: &super::Node| n.is_live() && before.binary_search(&n.group).is_ok();
        if self.nodes[kept..].iter().any(split) {
            return Err(refused("the cut lies between a tool call and its results"));
        }
        Ok(kept)
    }

    fn take_forms(&mut self, compacted: &Compacted, why: &Why) -> Result<()> {
        let mut forms = Vec::new();
        for projection in &compacted.projections {
            let Projected::Replaced(form) = &projection.form else { continue };
            let at = self.nodes.iter().position(|n| n.entry.id() == &projection.key.entry);
            let Some(at) = at.filter(|&at| self.nodes[at].is_live()) else { continue };
            self.check_form(at, form)?;
            forms.push((at, form));
        }
        for (at, form) in forms {
            self.set_form(at, Message::clone(form), why);
        }
        Ok(())
    }

    fn unpin(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if std::mem::take(&mut node.pinned) {
            self.groups[node.group as usize].pins -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Block, Counter, RawJson, TokenLedger, ToolCall};

    use super::*;

    fn compacted(summary: &str, first_kept: &str) -> Compacted {
        Compacted {
            summary: summary.into(),
            first_kept_entry_id: first_kept.into(),
            tokens_before: Tokens(1),
            tokens_after: None,
            details: None,
            projections: Vec::new(),
        }
    }

    fn call(id: &str) -> Message {
        let call = ToolCall {
            id: id.into(),
            name: "read".into(),
            arguments: RawJson::from_text("{}"),
            spelling: Default::default(),
        };
        Message::new(Role::Assistant, vec![Block::ToolCall(call)])
    }

    /// system, ask, call, result, answer, ask, answer.
    fn view() -> ContextView {
        let ledger = TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000));
        let mut view = ContextView::new(ledger).with_projections([]);
        let messages = [
            Message::text(Role::System, "be brief"),
            Message::text(Role::User, "first ask"),
            call("c1"),
            Message::tool_result("c1", "x".repeat(4_000)),
            Message::text(Role::Assistant, "answer"),
            Message::text(Role::User, "second ask"),
            Message::text(Role::Assistant, "second answer"),
        ];
        for (n, message) in messages.into_iter().enumerate() {
            view.append(Arc::new(Entry::held(format!("e{n}"), message))).unwrap();
        }
        view
    }

    fn texts(view: &ContextView) -> Vec<String> {
        view.messages().unwrap().iter().map(|m| m.plain_text()).collect()
    }

    #[test]
    fn a_summary_stands_for_history_until_the_next() {
        let mut view = view();
        let freed = view.compact(compacted("summary one", "e5"), "s1", "t", "full").unwrap();
        assert!(freed > Tokens(900));
        assert_eq!(texts(&view), ["be brief", "summary one", "second ask", "second answer"]);
        view.finish().unwrap();
        assert!(view.is_protected(1));

        view.compact(compacted("summary two", "e6"), "s2", "t", "full").unwrap();
        // The newest user message stays where it is.
        assert_eq!(texts(&view), ["be brief", "summary two", "second ask", "second answer"]);
        assert_eq!(view.take_compactions().len(), 2);
        assert!(view.take_compactions().is_empty());
        // What a summary stands for is not remembered as left out: the summary may be undone.
        assert!(view.take_projections().is_empty());
    }

    #[test]
    fn a_cut_through_a_group_is_refused_and_changes_nothing() {
        let mut view = view();
        let before = texts(&view);
        for first_kept in ["e3", "nowhere"] {
            let error = view.compact(compacted("s", first_kept), "s1", "t", "full").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Contract);
        }
        assert_eq!(texts(&view), before);
    }
}
