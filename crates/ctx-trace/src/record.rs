//! The record of a request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use ctx_core::text::head_bytes;
use ctx_core::{Component, EntryId, ManifestEntry, NodeState, Timestamp, Tokens};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum number of characters of a [`Preview`].
pub const PREVIEW_CHARS: usize = 80;

/// The description of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionInfo {
    /// Its id, which is also the name of its file.
    pub id: String,
    /// The beginning of the first user message, redacted.
    pub title: String,
    /// The last requested model.
    pub model: Option<String>,
    /// The engine.
    pub engine: String,
    /// The profile.
    pub profile: String,
    /// The token counter.
    pub counter: String,
    /// The client's name in its `user-agent`, without the version; null if unknown.
    pub client: Option<String>,
    /// The folder in which the client works, as it tells the model; null if unknown.
    pub project: Option<String>,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RequestOutcome {
    /// The provider answered.
    Ok,
    /// The provider refused it.
    Refused,
    /// The provider could not be reached, or disconnected.
    #[default]
    Failed,
    /// The client disconnected.
    Abandoned,
}

impl RequestOutcome {
    /// Returns the name in JSON.
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
    /// The position in the conversation, from 0.
    pub number: u64,
    /// The time when it was prepared, in milliseconds since 1970.
    pub at: Timestamp,
    /// The client's protocol: `chat`, `responses`, `messages`, `gemini`.
    pub protocol: Cow<'static, str>,
    /// The requested model.
    pub model: Option<String>,
    /// The context window.
    pub window: Tokens,
    /// The reserve for the answer.
    pub reserve: Tokens,
    /// Window minus reserve.
    pub limit: Tokens,
    /// Tokens sent by the client.
    pub raw_tokens: Tokens,
    /// Tokens sent to the provider.
    pub sent_tokens: Tokens,
    /// Tokens read from the provider's cache; null if not reported.
    pub cached_tokens: Option<u64>,
    /// Prompt tokens as counted by the provider; null if not reported.
    pub prompt_tokens: Option<u64>,
    /// The cost in USD of the reported usage at the catalogue's prices; null if either is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether `sentTokens` fits into window minus reserve.
    pub fits: bool,
    /// Tokens at the beginning that are unchanged since the previous request.
    pub unchanged_prefix: Tokens,
    /// The cache break: the tokens that the provider may have cached and that were not sent again.
    /// Null if the request begins with the whole previous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_break: Option<PrefixBreak>,
    /// The status of the answer; null if there was none.
    pub status: Option<u16>,
    /// The outcome.
    pub outcome: RequestOutcome,
    /// The number of attempts.
    pub attempts: u32,
    /// The compaction made for it; the last one if there were several.
    pub compaction: Option<CompactionRecord>,
    /// Edits made for this request, by layer.
    pub actions: BTreeMap<String, u32>,
    /// Milliseconds that ctx added to the time to the first byte.
    pub millis: f64,
    /// The request's size by component.
    pub components: Vec<Component>,
    /// The entries; kept on disk only.
    #[serde(default)]
    pub entries: Vec<EntryRecord>,
}

/// A cache break: a request does not begin like the last answered one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixBreak {
    /// The cause.
    pub cause: BreakCause,
    /// Tokens of the previous request, from the first difference on.
    pub tokens: Tokens,
}

/// The cause of a cache break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BreakCause {
    /// History was replaced by a summary, or the summary by another one.
    Compaction,
    /// Another edit of ctx: truncated tool results, dropped messages, recalled memory.
    Edit,
    /// The client changed earlier messages, its instructions or tools, or requested another model.
    Client,
}

impl BreakCause {
    /// Returns the name in JSON and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compaction => "compaction",
            Self::Edit => "edit",
            Self::Client => "client",
        }
    }
}

/// How a summary was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryRecord {
    /// The outcome of the request for a summary.
    pub outcome: SummaryOutcome,
    /// What replaces the history: `model`, `withoutOversized`, `extractive` or `hardPrune`.
    pub rung: Cow<'static, str>,
    /// The number of model calls.
    pub calls: u32,
    /// Why no model wrote it; redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The outcome of the request for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SummaryOutcome {
    /// A model wrote it.
    Written,
    /// No model was configured; the summary is extractive.
    Extracted,
    /// No model was called; the summary is extractive.
    Unasked,
    /// The model did not answer; the summary is extractive.
    Failed,
    /// No answer was usable (empty, a refusal, longer than the history); the summary is extractive.
    Unusable,
}

impl SummaryOutcome {
    /// Returns the name in JSON and metrics.
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

/// A compaction, with the same fields as in a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionRecord {
    /// The request before which it happened.
    pub request: u64,
    /// The summary entry; null if history was dropped without a summary.
    pub entry_id: Option<EntryId>,
    /// The first entry that was kept unchanged.
    pub first_kept_entry_id: EntryId,
    /// Tokens of the request before.
    pub tokens_before: Tokens,
    /// Tokens of the request after; null if the engine does not report them.
    pub tokens_after: Option<Tokens>,
    /// The summary.
    pub summary: String,
    /// Details from the engine.
    pub details: Option<serde_json::Value>,
    /// How the summary was created; null if the engine does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarised: Option<SummaryRecord>,
    /// Whether it was undone.
    #[serde(default)]
    pub undone: bool,
}

impl Record {
    /// Records that the compaction with that entry was undone.
    pub(super) fn undo(&mut self, entry: &str) {
        if let Some(compaction) = self.compaction.as_mut().filter(|known| known.is_of(entry)) {
            compaction.undone = true;
        }
    }
}

impl CompactionRecord {
    /// Whether it is the compaction with that entry.
    pub(super) fn is_of(&self, entry: &str) -> bool {
        self.entry_id.as_deref() == Some(entry) || *self.first_kept_entry_id == *entry
    }

    /// Returns the form kept in memory, with long parts cut.
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

/// Whether a value contains fewer than `left` values, and no long texts.
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

/// An entry of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryRecord {
    /// Its id.
    pub entry: EntryId,
    /// Its role.
    pub role: String,
    /// The state.
    pub state: NodeState,
    /// Tokens of the source.
    pub before: Tokens,
    /// Tokens sent.
    pub tokens: Tokens,
    /// The layer that changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<Cow<'static, str>>,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    /// The first 80 characters, redacted.
    #[serde(default)]
    pub begins: Preview,
}

/// Whether a provider's count is plausible: some providers count only uncached tokens.
pub fn is_plausible(counted: u64, estimated: u64) -> bool {
    counted >= estimated / 4 && counted <= estimated.saturating_mul(4)
}

/// The beginning of a message, computed when it is first read: its request does not wait for that.
#[derive(Clone, Default)]
pub struct Preview(Option<Arc<LazyText>>);

type LazyText = LazyLock<String, Box<dyn FnOnce() -> String + Send>>;

impl Preview {
    /// Creates a preview from what computes it.
    pub fn new(compute: impl FnOnce() -> String + Send + 'static) -> Self {
        Self(Some(Arc::new(LazyLock::new(Box::new(compute)))))
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.as_ref().map_or("", |text| text.as_str())
    }
}

impl From<String> for Preview {
    fn from(text: String) -> Self {
        Self::new(|| text)
    }
}

impl fmt::Debug for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().fmt(f)
    }
}

impl PartialEq for Preview {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Preview {}

impl Hash for Preview {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text().hash(state);
    }
}

impl Serialize for Preview {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl<'de> Deserialize<'de> for Preview {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

/// Takes the fields of an entry in a manifest; the beginning of its text stays empty.
impl From<ManifestEntry> for EntryRecord {
    fn from(entry: ManifestEntry) -> Self {
        Self {
            entry: entry.entry,
            role: entry.role,
            state: entry.state,
            before: entry.before,
            tokens: entry.tokens,
            layer: entry.layer,
            reason: entry.reason,
            begins: Preview::default(),
        }
    }
}
