//! Data that an engine attaches to a view besides its edits.

use std::sync::Arc;

use crate::Tokens;

use super::ContextView;

/// Identifies a view, for callers that cache data about one.
#[derive(Clone, Debug, Default)]
pub struct ViewId(Arc<()>);

impl PartialEq for ViewId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ViewId {}

impl ContextView {
    /// Returns the identity of this view.
    #[must_use]
    pub fn id(&self) -> &ViewId {
        &self.id
    }

    /// Returns the text added to the system prompt of this request.
    #[must_use]
    pub fn system_addition(&self) -> Option<&str> {
        self.system_addition.as_deref()
    }

    /// Sets the text to add to the system prompt of this request, and counts its tokens. It
    /// replaces an earlier addition. The host sends it: see [`Assembled`](crate::Assembled).
    pub fn set_system_addition(&mut self, addition: Option<String>) {
        let addition = addition.filter(|text| !text.is_empty());
        let counter = self.ledger.counter();
        let tokens = addition.as_deref().map_or(Tokens::ZERO, |text| counter.text(text));
        self.ledger.set_addition(tokens);
        self.system_addition = addition;
    }
}
