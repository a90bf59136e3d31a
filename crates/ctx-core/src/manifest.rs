//! The record of all edits to a request.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{EngineNote, EntryId, Tokens};

/// The kind of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// The message is dropped.
    Drop,
    /// The message is replaced by a shorter form.
    Replace,
    /// A message was inserted that is not in the transcript.
    Insert,
    /// The message is pinned and cannot be dropped.
    Pin,
    /// A late tool result is moved next to its call.
    Move,
}

impl Action {
    /// Returns the name used in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Replace => "replace",
            Self::Insert => "insert",
            Self::Pin => "pin",
            Self::Move => "move",
        }
    }
}

/// The form in which a node is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeState {
    /// As recorded.
    Kept,
    /// In a shorter form.
    Replaced,
    /// It is not sent.
    Dropped,
    /// It was inserted by a layer.
    Inserted,
}

impl NodeState {
    /// Returns the name used in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Replaced => "replaced",
            Self::Dropped => "dropped",
            Self::Inserted => "inserted",
        }
    }

    /// Returns a description of the state for users.
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

/// One edit of the view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// The edited entry.
    pub entry: EntryId,
    /// The layer that made the edit.
    pub layer: Cow<'static, str>,
    /// The kind of the edit.
    pub action: Action,
    /// Tokens before.
    pub before: Tokens,
    /// Tokens after.
    pub after: Tokens,
    /// The reason.
    pub reason: Cow<'static, str>,
}

/// A part of the request and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// `system`, `tools`, `summary`, `inserted`, `history`, `newest`, `pending`.
    pub name: Cow<'static, str>,
    /// Its size.
    pub tokens: Tokens,
}

/// One entry of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestEntry {
    /// The entry.
    pub entry: EntryId,
    /// The role of its message.
    pub role: String,
    /// The form in which it is sent.
    pub state: NodeState,
    /// Tokens of the recorded message.
    pub before: Tokens,
    /// Tokens that are sent.
    pub tokens: Tokens,
    /// The layer that changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Cow<'static, str>>,
    /// The reason for the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
}

/// The contents of a request: its size by component, the state of each entry, and the effect on the
/// cached prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The context window of the model.
    pub window: Tokens,
    /// The tokens kept free for the answer.
    pub reserve: Tokens,
    /// Window minus reserve.
    pub limit: Tokens,
    /// Tokens of the whole request.
    pub tokens: Tokens,
    /// Tokens at its beginning that are identical to the previous request.
    pub unchanged_prefix: Tokens,
    /// Sizes by component, in the order of the request.
    pub components: Vec<Component>,
    /// Entries, in the order of the request.
    pub entries: Vec<ManifestEntry>,
    /// The number of edits by layer.
    pub layers: BTreeMap<Cow<'static, str>, u32>,
    /// The external engine selected for this request, if any, and whether it made the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineNote>,
}
