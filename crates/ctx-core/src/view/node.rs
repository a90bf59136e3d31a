//! One message of a view and its state.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{
    CallId, Counter, Entry, ManifestEntry, Message, MessageOutline, NodeState, Result, Role, Tokens,
};

use super::FINISH;
use super::group::NodeHandle;

/// The layer that changed a message, and the reason.
#[derive(Clone, Debug)]
pub(super) struct Reason {
    pub(super) layer: Cow<'static, str>,
    pub(super) reason: Cow<'static, str>,
}

impl Reason {
    pub(super) fn new(
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { layer: layer.into(), reason: reason.into() }
    }

    /// Creates the reason for an edit by the view itself.
    pub(super) fn finish(reason: &'static str) -> Self {
        Self::new(FINISH, reason)
    }
}

/// One message of a view: its entry, and the form in which it is sent.
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) entry: Arc<Entry>,
    /// The shape of the message in the form that is sent.
    pub outline: MessageOutline,
    pub(super) form: Option<Arc<Message>>,
    pub(super) state: NodeState,
    pub(super) tokens: Tokens,
    /// The tokens of the recorded message.
    pub source_tokens: Tokens,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Whether it replaces a result that is missing in the transcript.
    pub(super) synthetic: bool,
    /// The group: the nodes of one group are a tool call and its results. Groups have no order.
    pub group: u32,
    /// The assistant messages of one round are one answer, recorded in several messages.
    pub(super) round: u32,
    /// Identifies the node within the view.
    pub(super) key: u64,
    /// Orders the nodes, including swept ones: see [`NodeHandle`].
    pub(super) seq: u64,
    /// The last change.
    pub(super) why: Option<Reason>,
}

impl Node {
    /// Creates a node that is sent as recorded. Its group is set when it is added to the view.
    pub(super) fn new(
        entry: Arc<Entry>,
        outline: MessageOutline,
        tokens: Tokens,
        place: NodeHandle,
    ) -> Self {
        Self {
            entry,
            pinned: outline.is_pinned,
            outline,
            form: None,
            state: NodeState::Kept,
            tokens,
            source_tokens: tokens,
            synthetic: false,
            group: 0,
            round: 0,
            key: place.key,
            seq: place.seq,
            why: None,
        }
    }

    /// Marks it as not being in the transcript.
    pub(super) fn make_inserted(&mut self, why: Reason) {
        self.state = NodeState::Inserted;
        self.source_tokens = Tokens::ZERO;
        self.why = Some(why);
    }

    /// Sets another form.
    pub(super) fn set_form(&mut self, form: Arc<Message>, counter: &Counter, why: &Reason) {
        if self.state != NodeState::Inserted {
            self.state = NodeState::Replaced;
        }
        self.tokens = counter.message(&form);
        self.outline = MessageOutline::of(&form);
        self.form = Some(form);
        self.why = Some(why.clone());
    }

    /// Returns the entry.
    #[must_use]
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Returns the entry of a message that a summary can stand for: a recorded one, or a summary.
    pub(super) fn recorded(&self) -> Option<Arc<Entry>> {
        let is_summary = self.outline.role == Role::CompactionSummary;
        (is_summary || self.state != NodeState::Inserted).then(|| self.entry.clone())
    }

    /// Returns the role of the message.
    #[must_use]
    pub fn role(&self) -> &Role {
        &self.outline.role
    }

    /// Returns the ids of the calls that it answers.
    #[must_use]
    pub fn results(&self) -> &[CallId] {
        &self.outline.results
    }

    /// Whether it is a user message that contains more than tool results.
    #[must_use]
    pub fn is_user(&self) -> bool {
        self.outline.role == Role::User && self.outline.has_content
    }

    /// Whether it is a message of the assistant, or a synthetic result.
    pub(super) fn is_of_answer(&self) -> bool {
        let recorded = self.state != NodeState::Inserted;
        self.is_live() && (self.synthetic || (recorded && self.outline.role == Role::Assistant))
    }

    /// Returns the place of the node.
    #[must_use]
    pub fn handle(&self) -> NodeHandle {
        NodeHandle { seq: self.seq, key: self.key }
    }

    /// Returns the form in which it is sent.
    #[must_use]
    pub fn state(&self) -> NodeState {
        self.state
    }

    /// Whether it is sent.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.state != NodeState::Dropped
    }

    /// Returns the tokens of the form that is sent.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// Returns the message in the form that is sent (or would be sent if it were not dropped).
    pub fn message(&self) -> Result<Arc<Message>> {
        match &self.form {
            Some(form) => Ok(form.clone()),
            None => self.entry.message(),
        }
    }

    /// Returns the layer that last changed it.
    #[must_use]
    pub fn layer(&self) -> Option<&str> {
        self.why.as_ref().map(|why| &*why.layer)
    }

    pub(super) fn manifest_entry(&self) -> ManifestEntry {
        let tokens = if self.is_live() { self.tokens } else { Tokens::ZERO };
        ManifestEntry {
            entry: self.entry.id().clone(),
            role: self.outline.role.name().to_owned(),
            state: self.state,
            before: self.source_tokens,
            tokens,
            layer: self.why.as_ref().map(|why| why.layer.clone()),
            reason: self.why.as_ref().map(|why| why.reason.clone()),
        }
    }
}
