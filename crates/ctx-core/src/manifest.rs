//! What was done to a request, by whom, and why.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::{EngineNote, EntryId, NodeState, Tokens};

/// What an edit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// The message does not go out.
    Drop,
    /// The message goes out in another, shorter form.
    Replace,
    /// A message was added that is in no transcript.
    Insert,
    /// The message may not be dropped.
    Pin,
    /// A tool result that came late goes out next to its call.
    Move,
}

impl Action {
    /// The name, as it is written in JSON.
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

/// One edit of the view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// The entry edited.
    pub entry: EntryId,
    /// The layer that did it.
    pub layer: Cow<'static, str>,
    /// What it did.
    pub action: Action,
    /// Tokens before.
    pub before: Tokens,
    /// Tokens after.
    pub after: Tokens,
    /// Why.
    pub reason: Cow<'static, str>,
}

/// A part of the request and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Component {
    /// `system`, `tools`, `summary`, `inserted`, `history`, `newest`, `pending`.
    pub name: &'static str,
    /// Its size.
    pub tokens: Tokens,
}

/// One entry of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestEntry {
    /// The entry.
    pub entry: EntryId,
    /// Its role.
    pub role: String,
    /// In which form it goes out.
    pub state: NodeState,
    /// Tokens of the source.
    pub before: Tokens,
    /// Tokens that go out.
    pub tokens: Tokens,
    /// The layer that changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Cow<'static, str>>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
}

/// All of a request: its size by component, each entry with its fate, and what that does to the
/// cached prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The model's window.
    pub window: Tokens,
    /// What is kept free for the answer.
    pub reserve: Tokens,
    /// Window minus reserve.
    pub limit: Tokens,
    /// Tokens of the whole request.
    pub tokens: Tokens,
    /// Tokens at its beginning that are the same as in the request before.
    pub unchanged_prefix: Tokens,
    /// Sizes by component, the order of the request.
    pub components: Vec<Component>,
    /// Entries, in the order of the request.
    pub entries: Vec<ManifestEntry>,
    /// Edits by layer.
    pub layers: BTreeMap<Cow<'static, str>, u32>,
    /// The engine that was to make it, where that is not built in, and whether it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineNote>,
}
