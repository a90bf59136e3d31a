//! One message of a view and what became of it.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;

use crate::{CallId, Counter, Entry, Facts, ManifestEntry, Message, Result, Role, Tokens};

use super::FINISH;
use super::group::Place;

/// In which form a node goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
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

impl NodeState {
    /// What became of the node, for people.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Replaced => "shortened",
            Self::Dropped => "left out",
            Self::Inserted => "added",
        }
    }
}

/// Who changed a message, and for what reason.
#[derive(Clone, Debug)]
pub(super) struct Why {
    pub(super) layer: Cow<'static, str>,
    pub(super) reason: Cow<'static, str>,
}

impl Why {
    pub(super) fn new(
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { layer: layer.into(), reason: reason.into() }
    }

    /// The view did it itself.
    pub(super) fn finish(reason: &'static str) -> Self {
        Self::new(FINISH, reason)
    }
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
    /// Whether it stands in for a result that the transcript lacks.
    pub(super) synthetic: bool,
    /// Nodes of one group are a tool call and its results.
    pub(super) group: u32,
    /// Assistant messages of one round are one answer, recorded in pieces.
    pub(super) round: u32,
    /// Tells this node from every other of the view.
    pub(super) key: u64,
    /// Orders the nodes, swept ones too: see [`Place`].
    pub(super) seq: u64,
    /// Who last changed it.
    pub(super) why: Option<Why>,
}

impl Node {
    /// A node that goes out as recorded: pinned, if nothing else in the request says what it says.
    /// Its group is given when it is put into the view.
    pub(super) fn new(entry: Arc<Entry>, facts: Facts, tokens: Tokens, place: Place) -> Self {
        Self {
            entry,
            pinned: matches!(facts.role, Role::System | Role::CompactionSummary),
            facts,
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

    /// Marks it as being in no transcript.
    pub(super) fn make_inserted(&mut self, why: Why) {
        self.state = NodeState::Inserted;
        self.source_tokens = Tokens::ZERO;
        self.why = Some(why);
    }

    /// Gives it another form.
    pub(super) fn set_form(&mut self, form: Arc<Message>, counter: &Counter, why: &Why) {
        if self.state != NodeState::Inserted {
            self.state = NodeState::Replaced;
        }
        self.tokens = counter.message(&form);
        self.facts = Facts::of(&form);
        self.form = Some(form);
        self.why = Some(why.clone());
    }

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

    /// Whether it is a message of the assistant, or stands in for a result that came too late.
    pub(super) fn is_of_answer(&self) -> bool {
        let recorded = self.state != NodeState::Inserted;
        self.is_live() && (self.synthetic || (recorded && self.facts.role == Role::Assistant))
    }

    /// Which tool call and results belong together: nodes with equal groups. Groups have no order.
    #[must_use]
    pub fn group(&self) -> u32 {
        self.group
    }

    /// Where it stands.
    #[must_use]
    pub fn place(&self) -> Place {
        Place { seq: self.seq, key: self.key }
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
        self.why.as_ref().map(|why| &*why.layer)
    }

    pub(super) fn manifest_entry(&self) -> ManifestEntry {
        let tokens = if self.is_live() { self.tokens } else { Tokens::ZERO };
        ManifestEntry {
            entry: self.entry.id().clone(),
            role: self.facts.role.name().to_owned(),
            state: self.state,
            before: self.source_tokens,
            tokens,
            layer: self.why.as_ref().map(|why| why.layer.clone()),
            reason: self.why.as_ref().map(|why| why.reason.clone()),
        }
    }
}
