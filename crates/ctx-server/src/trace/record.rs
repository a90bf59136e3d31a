//! One request, as it was sent, and why it looks so.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ctx_core::text::head_bytes;
use ctx_core::{Compacted, EntryId, Manifest, NodeState, Timestamp, Tokens};
use serde::{Deserialize, Serialize};

/// How many characters of a message a record holds.
pub const BEGINS_CHARS: usize = 80;

/// What is known of a conversation from its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionInfo {
    /// Its id, which is also the name of its file.
    pub id: String,
    /// The beginning of the first message of the user, redacted.
    pub title: String,
    /// The model that was asked last.
    pub model: Option<String>,
    /// The engine.
    pub engine: String,
    /// The profile.
    pub profile: String,
    /// How tokens are counted.
    pub counter: String,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The provider answered.
    Ok,
    /// The provider refused it.
    Refused,
    /// The provider could not be reached, or broke off.
    #[default]
    Failed,
    /// The client hung up.
    Abandoned,
}

impl Outcome {
    /// The name, as it is written in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
        }
    }
}

/// One request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The conversation.
    pub session: String,
    /// Its place in the conversation, counted from 0.
    pub number: u64,
    /// When it came, in milliseconds since 1970.
    pub at: Timestamp,
    /// What the client speaks: `chat`, `responses`, `messages`, `gemini`.
    pub protocol: Cow<'static, str>,
    /// The model asked for.
    pub model: Option<String>,
    /// The model's window.
    pub window: Tokens,
    /// What is kept free for the answer.
    pub reserve: Tokens,
    /// Window minus reserve.
    pub limit: Tokens,
    /// Tokens of what the client sent.
    pub raw_tokens: Tokens,
    /// Tokens of what the provider was sent.
    pub sent_tokens: Tokens,
    /// Tokens that the provider had in its cache; null where it did not say.
    pub cached_tokens: Option<u64>,
    /// Tokens of the prompt as the provider counted them; null where it did not say.
    pub prompt_tokens: Option<u64>,
    /// What the usage that the provider reported costs at the catalogue's prices, in USD; null where
    /// either is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether `sentTokens` is inside window minus reserve.
    pub fits: bool,
    /// Tokens at the beginning that are the same as in the request before.
    pub unchanged_prefix: Tokens,
    /// What the provider may have had in its cache and was not sent again; null where the request
    /// begins with all of the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_break: Option<PrefixBreak>,
    /// The status of the answer; null where there was none.
    pub status: Option<u16>,
    /// What became of it.
    pub outcome: Outcome,
    /// How often it was sent.
    pub attempts: u32,
    /// The compaction that was made for it; the last one, where there were several.
    pub compaction: Option<CompactionRecord>,
    /// Edits made for this request, by layer.
    pub actions: BTreeMap<String, u32>,
    /// Milliseconds that ctx added to the time of the first byte.
    pub millis: f64,
    /// The request's size by component.
    pub components: Vec<ComponentRecord>,
    /// Its entries. They are kept on disk only.
    #[serde(default)]
    pub entries: Vec<EntryRecord>,
}

/// A request does not begin as the one before it that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixBreak {
    /// Why.
    pub cause: BreakCause,
    /// Tokens of the request before, from the first place on at which this one differs.
    pub tokens: Tokens,
}

/// Why a request does not begin as the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BreakCause {
    /// History became a summary, or the summary another one.
    Compaction,
    /// Another edit of ctx: tool results that were cut, messages left out, what was recalled.
    Edit,
    /// The client changed what it said before, its instructions or its tools, or asks another model.
    Client,
}

impl BreakCause {
    /// Its name in JSON and among metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compaction => "compaction",
            Self::Edit => "edit",
            Self::Client => "client",
        }
    }
}

/// How a summary was come by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summarised {
    /// What became of asking for it.
    pub outcome: SummaryOutcome,
    /// What stands in the place of the history: `model`, `withoutOversized`, `extractive` or
    /// `hardPrune`.
    pub rung: Cow<'static, str>,
    /// How often a model was asked.
    pub calls: u32,
    /// Why there is none of a model; redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What became of asking for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SummaryOutcome {
    /// A model wrote it.
    Written,
    /// Nobody was to be asked: it is extracted.
    Extracted,
    /// A model was there, and could not be asked; it is extracted.
    Unasked,
    /// No answer came; it is extracted.
    Failed,
    /// No answer could be used (empty, a refusal, longer than the history); it is extracted.
    Unusable,
}

impl SummaryOutcome {
    /// Its name in JSON and among metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Extracted => "extracted",
            Self::Unasked => "unasked",
            Self::Failed => "failed",
            Self::Unusable => "unusable",
        }
    }
}

/// A part of the request and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentRecord {
    /// `system`, `tools`, `summary`, `inserted`, `history`, `newest`, `pending`.
    pub name: Cow<'static, str>,
    /// Its size.
    pub tokens: Tokens,
}

/// A compaction, in the words of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionRecord {
    /// The request before which it happened.
    pub request: u64,
    /// The entry of the summary; null where history was dropped without one.
    pub entry_id: Option<EntryId>,
    /// The first entry that was kept as it is.
    pub first_kept_entry_id: EntryId,
    /// Tokens of the request before.
    pub tokens_before: Tokens,
    /// Tokens of the request after; null where the engine does not say.
    pub tokens_after: Option<Tokens>,
    /// The summary.
    pub summary: String,
    /// What the engine has to say about it.
    pub details: Option<serde_json::Value>,
    /// How the summary was come by; null where the engine does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarised: Option<Summarised>,
    /// Whether it was taken back.
    #[serde(default)]
    pub undone: bool,
}

impl Record {
    /// Notes that the compaction of that entry was taken back.
    pub(super) fn undo(&mut self, entry: &str) {
        if let Some(compaction) = self.compaction.as_mut().filter(|known| known.is_of(entry)) {
            compaction.undone = true;
        }
    }
}

impl CompactionRecord {
    /// What is recorded of a compaction.
    #[must_use]
    pub fn of(request: u64, entry: Option<EntryId>, compacted: &Compacted) -> Self {
        Self {
            request,
            entry_id: entry,
            first_kept_entry_id: compacted.first_kept_entry_id.clone(),
            tokens_before: compacted.tokens_before,
            tokens_after: compacted.tokens_after,
            summary: compacted.summary.clone(),
            details: compacted.details.clone(),
            summarised: None,
            undone: false,
        }
    }

    /// Whether it is the one of that entry.
    pub(super) fn is_of(&self, entry: &str) -> bool {
        self.entry_id.as_deref() == Some(entry) || *self.first_kept_entry_id == *entry
    }

    /// As it stays in memory: what is long is cut.
    #[must_use]
    pub(super) fn in_short(&self) -> Self {
        const LONGEST: usize = 4 << 10;
        let details = self.details.as_ref().filter(|details| is_short(details, &mut 256));
        Self {
            summary: head_bytes(&self.summary, LONGEST).to_owned(),
            details: details.cloned(),
            summarised: self.summarised.clone(),
            entry_id: self.entry_id.clone(),
            first_kept_entry_id: self.first_kept_entry_id.clone(),
            ..*self
        }
    }
}

/// Whether a value holds no more than so many values, and no long texts.
fn is_short(value: &serde_json::Value, left: &mut usize) -> bool {
    use serde_json::Value;
    *left = left.saturating_sub(1);
    *left > 0
        && match value {
            Value::String(text) => text.len() <= 1_024,
            Value::Array(all) => all.iter().all(|value| is_short(value, left)),
            Value::Object(all) => all.values().all(|value| is_short(value, left)),
            _ => true,
        }
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EntryState {
    /// It goes out as the client sent it.
    Kept,
    /// It goes out in a shorter form.
    Replaced,
    /// It does not go out.
    Dropped,
    /// A layer added it.
    Inserted,
}

impl EntryState {
    /// The name, as it is written in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Replaced => "replaced",
            Self::Dropped => "dropped",
            Self::Inserted => "inserted",
        }
    }
}

impl From<NodeState> for EntryState {
    fn from(state: NodeState) -> Self {
        match state {
            NodeState::Kept => Self::Kept,
            NodeState::Replaced => Self::Replaced,
            NodeState::Dropped => Self::Dropped,
            NodeState::Inserted => Self::Inserted,
        }
    }
}

/// One entry of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryRecord {
    /// Its id.
    pub entry: EntryId,
    /// Its role.
    pub role: String,
    /// In which form it goes out.
    pub state: EntryState,
    /// Tokens of the source.
    pub before: Tokens,
    /// Tokens that go out.
    pub tokens: Tokens,
    /// The layer that changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<Cow<'static, str>>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    /// The first [`BEGINS_CHARS`] characters, redacted.
    #[serde(default)]
    pub begins: String,
}

/// The entries and components of a request, as its manifest has them.
#[must_use]
pub fn of_manifest(manifest: Manifest) -> (Vec<ComponentRecord>, Vec<EntryRecord>) {
    let components = manifest.components.into_iter();
    let components = components
        .map(|part| ComponentRecord { name: part.name.into(), tokens: part.tokens })
        .collect();
    let entries = manifest.entries.into_iter();
    let entries = entries.map(|entry| EntryRecord {
        entry: entry.entry,
        role: entry.role,
        state: entry.state.into(),
        before: entry.before,
        tokens: entry.tokens,
        layer: entry.layer,
        reason: entry.reason,
        begins: String::new(),
    });
    (components, entries.collect())
}
