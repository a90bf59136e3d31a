//! What an engine leaves in a view besides its edits.

use std::sync::Arc;

use crate::{EngineNote, Tokens};

use super::ContextView;

/// Tells a view from every other, for who remembers what it was told of one.
#[derive(Clone, Debug, Default)]
pub struct ViewId(Arc<()>);

impl PartialEq for ViewId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ViewId {}

impl ContextView {
    /// Which view this is.
    #[must_use]
    pub fn id(&self) -> &ViewId {
        &self.id
    }

    /// What is added to the system prompt in this request.
    #[must_use]
    pub fn system_addition(&self) -> Option<&str> {
        self.system_addition.as_deref()
    }

    /// Counts text that goes out with the system prompt of this request, in the place of what was
    /// added before. The host puts it there: see [`Assembled`](crate::Assembled).
    pub fn set_system_addition(&mut self, addition: Option<String>) {
        let addition = addition.filter(|text| !text.is_empty());
        let tokens = addition.as_deref().map_or(Tokens::ZERO, |text| self.system_tokens(text));
        self.ledger.set_addition(tokens);
        self.system_addition = addition;
    }

    /// What text measures that is added to the system prompt.
    #[must_use]
    pub fn system_tokens(&self, text: &str) -> Tokens {
        self.ledger.counter().text(text)
    }

    /// Notes which engine made this request and how it fares, for the manifest.
    pub fn set_engine(&mut self, note: Option<EngineNote>) {
        self.engine = note;
    }

    /// Which engine was to make this request and how it fares, with the reason where another one
    /// made it.
    #[must_use]
    pub fn engine_note(&self) -> Option<&EngineNote> {
        self.engine.as_ref()
    }
}
