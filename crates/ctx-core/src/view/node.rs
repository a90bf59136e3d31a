//! One message of a view and what became of it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{CallId, Entry, Facts, Kept, ManifestEntry, Message, Result, Role, Tokens};

/// In which form a node goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// As recorded.
    Kept,
    /// In a shorter form.
    Replaced,
    /// Not at all.
    Dropped,
    /// It was added by a layer.
    Inserted,
}

/// One message of a view: its entry, and the form it goes out in.
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) entry: Arc<Entry>,
    pub(super) facts: Facts,
    pub(super) form: Option<Arc<Message>>,
    pub(super) state: NodeState,
    pub(super) tokens: Tokens,
    pub(super) source_tokens: Tokens,
    pub(super) pinned: bool,
    /// Nodes of one group are a tool call and its results.
    pub(super) group: u32,
    /// Tells this node from every other of the view.
    pub(super) key: u64,
    /// Orders the manifest; an inserted node lies right after the one before it.
    pub(super) seq: u64,
    pub(super) layer: Option<Cow<'static, str>>,
    pub(super) reason: Option<Cow<'static, str>>,
}

impl Node {
    /// The entry.
    #[must_use]
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Who speaks.
    #[must_use]
    pub fn role(&self) -> &Role {
        &self.facts.role
    }

    /// The ids of the tool calls it makes.
    #[must_use]
    pub fn calls(&self) -> &[CallId] {
        &self.facts.calls
    }

    /// The ids of the calls it answers.
    #[must_use]
    pub fn results(&self) -> &[CallId] {
        &self.facts.results
    }

    /// Whether it is a message of the user and not only a carrier of tool results.
    #[must_use]
    pub fn is_user(&self) -> bool {
        self.facts.role == Role::User && self.facts.has_content
    }

    /// Which tool call and results belong together: nodes with equal groups. Groups have no order.
    #[must_use]
    pub fn group(&self) -> u32 {
        self.group
    }

    /// In which form it goes out.
    #[must_use]
    pub fn state(&self) -> NodeState {
        self.state
    }

    /// Whether it goes out at all.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.state != NodeState::Dropped
    }

    /// Whether it may not be dropped.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.pinned
    }

    /// Tokens of the form that goes out.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// Tokens of the message as recorded.
    #[must_use]
    pub fn source_tokens(&self) -> Tokens {
        self.source_tokens
    }

    /// The message in the form that goes out (or would, if it were not dropped).
    pub fn message(&self) -> Result<Arc<Message>> {
        match &self.form {
            Some(form) => Ok(form.clone()),
            None => self.entry.message(),
        }
    }

    /// The layer that last changed it.
    #[must_use]
    pub fn layer(&self) -> Option<&str> {
        self.layer.as_deref()
    }

    pub(super) fn manifest_entry(&self) -> ManifestEntry {
        let (state, tokens) = match self.state {
            NodeState::Kept => (Kept::Kept, self.tokens),
            NodeState::Replaced => (Kept::Replaced, self.tokens),
            NodeState::Dropped => (Kept::Dropped, Tokens::ZERO),
            NodeState::Inserted => (Kept::Inserted, self.tokens),
        };
        ManifestEntry {
            entry: self.entry.id().clone(),
            role: self.facts.role.name().to_owned(),
            state,
            before: self.source_tokens,
            tokens,
            layer: self.layer.clone(),
            reason: self.reason.clone(),
        }
    }
}
