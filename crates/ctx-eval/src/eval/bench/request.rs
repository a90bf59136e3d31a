//! A request after a compaction, as text.

use std::sync::Arc;

use ctx_core::{Chars, ContextView, Counter, Result, Tokens};

use super::session::Item;
use crate::eval::text::add_message;

/// The texts of a request, oldest first. A summary is the first text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    parts: Vec<String>,
}

impl Request {
    /// Returns the request of a view.
    pub(super) fn of_view(view: &ContextView) -> Result<Self> {
        let mut parts = Vec::new();
        for node in view.nodes().iter().filter(|node| node.is_live()) {
            let mut text = String::new();
            add_message(&*node.message()?, &mut text);
            parts.push(text);
        }
        Ok(Self { parts })
    }

    /// Returns the request of a summary and the messages kept beside it.
    pub(super) fn of_summary(summary: String, kept: &[Arc<Item>]) -> Self {
        let kept = kept.iter().map(|item| item.text.clone());
        Self { parts: [summary].into_iter().chain(kept).filter(|text| !text.is_empty()).collect() }
    }

    /// Returns it with a text before it.
    pub(super) fn after(mut self, beginning: String) -> Self {
        self.parts.insert(0, beginning);
        self
    }

    /// Returns its size.
    pub(super) fn tokens(&self, counter: &Counter) -> Tokens {
        self.parts.iter().map(|part| counter.text(part)).sum()
    }

    /// Removes its oldest text until it has at most `most` tokens.
    pub(super) fn cut_to(&mut self, most: Tokens, counter: &Counter) {
        let mut left = most;
        let mut kept = Vec::new();
        while let Some(part) = self.parts.pop() {
            let size = counter.text(&part);
            if size > left {
                let end = ctx_core::text::tail(&part, Chars(counter.most_chars(left).0));
                kept.extend((!end.is_empty()).then(|| end.to_owned()));
                break;
            }
            left -= size;
            kept.push(part);
        }
        kept.reverse();
        self.parts = kept;
    }

    /// Returns all of its text.
    pub(super) fn text(&self) -> String {
        self.parts.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_too_large_request_loses_its_oldest_text() {
        let counter = Counter::default();
        let parts = ["aaaabbbb", "ccccdddd", "eeee"].map(str::to_owned).to_vec();
        let cut = |most| {
            let mut request = Request { parts: parts.clone() };
            request.cut_to(Tokens(most), &counter);
            assert!(request.tokens(&counter) <= Tokens(most));
            request.text()
        };
        assert_eq!(cut(5), "aaaabbbb\nccccdddd\neeee");
        assert_eq!(cut(4), "bbbb\nccccdddd\neeee");
        assert_eq!(cut(2), "dddd\neeee");
        assert_eq!(cut(0), "");
    }
}
