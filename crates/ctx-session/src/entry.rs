//! One entry of a transcript, as it is known without reading its message.

use std::fmt;

use ctx_core::{EntryId, Role, Timestamp, Usage};

use crate::load::Recipe;
use crate::source::Span;

/// What an entry is. Names are those of pi's session format; other formats' lines that are no
/// messages carry their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A message.
    Message,
    /// The thinking level changed.
    ThinkingLevelChange,
    /// The model changed.
    ModelChange,
    /// History was replaced by a summary.
    Compaction,
    /// A summary of a branch that was left.
    BranchSummary,
    /// An extension's data; never sent.
    Custom,
    /// An extension's message; sent as user text.
    CustomMessage,
    /// A bookmark on an entry.
    Label,
    /// The session's name.
    SessionInfo,
    /// An earlier message is hidden or replaced in the model's view.
    ContextEdit,
    /// Usage beside the conversation.
    Usage,
    /// The leaf moved.
    Leaf,
    /// The system prompt, where the transcript lists it among the messages. It is not on the main
    /// line: see [`crate::Transcript::system_prompt`].
    SystemPrompt,
    /// A type this version does not know, or one of another format that is no message.
    Other(Box<str>),
}

impl EntryKind {
    /// The value of the entry's `type`.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Message => "message",
            Self::ThinkingLevelChange => "thinking_level_change",
            Self::ModelChange => "model_change",
            Self::Compaction => "compaction",
            Self::BranchSummary => "branch_summary",
            Self::Custom => "custom",
            Self::CustomMessage => "custom_message",
            Self::Label => "label",
            Self::SessionInfo => "session_info",
            Self::ContextEdit => "context_edit",
            Self::Usage => "usage",
            Self::Leaf => "leaf",
            Self::SystemPrompt => "system_prompt",
            Self::Other(name) => name,
        }
    }

    /// The kind of a pi entry of type `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        const KNOWN: [EntryKind; 12] = [
            EntryKind::Message,
            EntryKind::ThinkingLevelChange,
            EntryKind::ModelChange,
            EntryKind::Compaction,
            EntryKind::BranchSummary,
            EntryKind::Custom,
            EntryKind::CustomMessage,
            EntryKind::Label,
            EntryKind::SessionInfo,
            EntryKind::ContextEdit,
            EntryKind::Usage,
            EntryKind::Leaf,
        ];
        let known = KNOWN.into_iter().find(|kind| kind.name() == name);
        known.unwrap_or_else(|| Self::Other(name.into()))
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An entry's place in the tree and in the file.
#[derive(Debug)]
pub struct TreeEntry {
    pub(crate) id: EntryId,
    pub(crate) parent: Option<u32>,
    pub(crate) kind: EntryKind,
    pub(crate) role: Option<Role>,
    pub(crate) timestamp: Option<Timestamp>,
    pub(crate) line: u64,
    pub(crate) span: Span,
    /// What the recipe reads, within the span.
    pub(crate) part: (u32, u32),
    pub(crate) fingerprint: u64,
    /// Whether it is only JSON once it was mended.
    pub(crate) mended: bool,
    pub(crate) recipe: Recipe,
    /// The first entry of the message this one continues.
    pub(crate) head: Option<u32>,
    pub(crate) audience: Audience,
    /// Whether it stands in the overlay, not in the file.
    pub(crate) overlay: bool,
    pub(crate) detail: Option<Box<Detail>>,
}

/// Who a message is for, and who wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Sent to the model; if the assistant's, an answer to a request.
    #[default]
    Model,
    /// Sent to the model, but made by the agent itself, without a request.
    Synthetic,
    /// Shown to people only: a note, or an error of the provider.
    People,
    /// Forgotten: the file holds it, and nobody is to see it.
    Nobody,
}

/// What some kinds of entry say, as far as rebuilding a context needs it.
#[derive(Clone, Debug)]
pub(crate) enum Detail {
    Thinking(Box<str>),
    Model {
        provider: Box<str>,
        model: Box<str>,
    },
    /// The first entry kept as it is; `None` keeps nothing.
    Compaction {
        first_kept: Option<u32>,
        /// How much is not kept of a history that stands in the first kept entry alone.
        skip: Option<u32>,
    },
    Edit {
        target: Option<u32>,
    },
    Undo {
        target: Option<u32>,
    },
    Leaf {
        target: Option<u32>,
    },
    /// What was reported for the answer on another line.
    Usage(Usage),
}

impl Detail {
    /// The entry it is about.
    pub(crate) fn target_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Compaction { first_kept: target, .. }
            | Self::Edit { target }
            | Self::Undo { target }
            | Self::Leaf { target } => target.as_mut(),
            Self::Thinking(_) | Self::Model { .. } | Self::Usage(_) => None,
        }
    }
}

impl TreeEntry {
    /// The id. Formats without ids have ordinals of 8 hex digits.
    #[must_use]
    pub fn id(&self) -> &EntryId {
        &self.id
    }

    /// The parent's index in [`crate::Transcript::entries`]; always smaller than the entry's own.
    #[must_use]
    pub fn parent(&self) -> Option<usize> {
        self.parent.map(|i| i as usize)
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> &EntryKind {
        &self.kind
    }

    /// Who speaks, if it is a message.
    #[must_use]
    pub fn role(&self) -> Option<&Role> {
        self.role.as_ref()
    }

    /// When it was written, where the transcript says so.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// Whether ctx added it: it stands in the transcript's overlay, not in its file.
    #[must_use]
    pub fn is_overlay(&self) -> bool {
        self.overlay
    }

    /// The line it stands on, counted from 1; of an overlay's entry, in the overlay.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Where its bytes are; of an overlay's entry, in the overlay.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Whether a summary stands in it for what is before it.
    pub(crate) fn is_compaction(&self) -> bool {
        matches!(self.detail.as_deref(), Some(Detail::Compaction { .. }))
    }

    /// The first entry that a compaction keeps.
    pub(crate) fn first_kept(&self) -> Option<usize> {
        match self.detail.as_deref() {
            Some(Detail::Compaction { first_kept, .. }) => first_kept.map(|index| index as usize),
            _ => None,
        }
    }

    /// Whether it is an entry whose message a model may see.
    #[must_use]
    pub fn is_message(&self) -> bool {
        matches!(
            self.kind,
            EntryKind::Message | EntryKind::CustomMessage | EntryKind::BranchSummary
        )
    }
}
