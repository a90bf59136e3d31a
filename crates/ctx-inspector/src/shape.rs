//! The data of the API. Clients rely on the field names. Values that ctx-eval's `ReplayReport` also
//! has have the same names there.

use std::collections::BTreeMap;

use ctx_core::{Component, EntryId, Timestamp, Tokens};
use ctx_eval::{LayerTotals, RecordedTotals, ReplayTotals, SessionCalibration};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use ctx_trace::{EntryRecord, PrefixBreak, SummaryRecord};

/// The origin of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SourceKind {
    /// A conversation of the proxy.
    Proxy,
    /// A session of the home.
    Store,
    /// A transcript outside of the home.
    #[default]
    File,
}

/// A session in the list. Fields that are unknown until it is opened are null.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionHead {
    /// The id in this API.
    pub(crate) id: String,
    /// The origin.
    pub(crate) source: SourceKind,
    /// The display name.
    pub(crate) title: String,
    /// The file.
    pub(crate) path: Option<String>,
    /// The agent that owns it.
    pub(crate) agent: Option<String>,
    /// The session id in the transcript and in memory.
    pub(crate) session_id: Option<String>,
    /// The folder in which its agent was started.
    pub(crate) project: Option<String>,
    /// The model.
    pub(crate) model: Option<String>,
    /// The engine.
    pub(crate) engine: Option<String>,
    /// The context window.
    pub(crate) window: Option<Tokens>,
    /// The number of model requests.
    pub(crate) requests: Option<usize>,
    /// The number of messages.
    pub(crate) messages: Option<usize>,
    /// The number of compactions in force.
    pub(crate) compactions: Option<u64>,
    /// The size of the file.
    pub(crate) bytes: Option<u64>,
    /// The time of the last activity.
    pub(crate) last_at: Option<Timestamp>,
    /// Tokens of the newest request with the full history.
    pub(crate) raw_tokens: Option<u64>,
    /// Tokens of the newest request as sent.
    pub(crate) sent_tokens: Option<u64>,
}

/// The progress of reading a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Progress {
    /// Messages read.
    pub(crate) done: usize,
    /// Messages in total; 0 while unknown.
    pub(crate) total: usize,
    /// Whether reading has ended.
    pub(crate) finished: bool,
}

/// An opened session.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Overview {
    /// Its row in the list.
    #[serde(flatten)]
    pub(crate) head: SessionHead,
    /// The transcript's format.
    pub(crate) format: Option<String>,
    /// The part of the window reserved for the answer.
    pub(crate) reserve: Tokens,
    /// Window minus reserve.
    pub(crate) limit: Tokens,
    /// The profile.
    pub(crate) profile: Option<String>,
    /// The token counter.
    pub(crate) counter: Option<String>,
    /// The number of requests before the first of `requests`.
    pub(crate) from: usize,
    /// The requests from there on, in order.
    #[serde(rename = "requests")]
    pub(crate) rows: Vec<RequestRow>,
    /// The total number of requests.
    pub(crate) total: usize,
    /// Sums over all requests, if replayed.
    pub(crate) totals: Option<ReplayTotals>,
    /// The provider's figures for the recorded session; null if it reported nothing.
    pub(crate) recorded: Option<RecordedTotals>,
    /// How the reported usage corrects estimated sizes.
    pub(crate) calibration: Option<SessionCalibration>,
    /// Compactions in order.
    #[serde(rename = "compactions")]
    pub(crate) compacted: Vec<CompactionRow>,
    /// The edits of each layer in total.
    pub(crate) layers: BTreeMap<String, LayerTotals>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

/// One request, as shown in a chart.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestRow {
    /// The number, from 1.
    pub(crate) number: usize,
    /// The answer that ends the request, if replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) entry: Option<EntryId>,
    /// The time.
    pub(crate) at: Option<Timestamp>,
    /// Prompt tokens of the recorded request, as reported by the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recorded_tokens: Option<u64>,
    /// Tokens with the full history.
    pub(crate) raw_tokens: u64,
    /// Tokens sent.
    pub(crate) sent_tokens: u64,
    /// Tokens read from the provider's cache: as reported, or as estimated by a replay.
    pub(crate) cached_tokens: Option<u64>,
    /// Tokens at the beginning that are unchanged since the previous request.
    pub(crate) unchanged_prefix: u64,
    /// The cache break, if the proxy detected one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prefix_break: Option<PrefixBreak>,
    /// Prompt tokens as reported by the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt_tokens: Option<u64>,
    /// Whether it fits into window minus reserve.
    pub(crate) fits: bool,
    /// The cost in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
    /// Tokens added by memory recall.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) recalled_tokens: u64,
    /// Edits made for it, by layer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) actions: BTreeMap<String, u32>,
    /// The HTTP status of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// `ok`, `refused`, `failed`, `abandoned`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    /// The number of attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempts: Option<u32>,
    /// Milliseconds that ctx added to the time to the first byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) millis: Option<f64>,
    /// The client's protocol: `chat`, `responses`, `messages`, `gemini`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A compaction of a session.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompactionRow {
    /// The id in this API; for a compaction stored in a transcript, its entry.
    pub(crate) id: String,
    /// The next request after it; null if there was none.
    pub(crate) number: Option<usize>,
    /// Whether it is stored with the session.
    pub(crate) stored: bool,
    /// Whether the agent made it in the recorded session.
    pub(crate) recorded: bool,
    /// Whether it is in force for later requests.
    pub(crate) applied: bool,
    /// Who made it: `ctx`, `agent`, `extension`, `replay`.
    pub(crate) by: String,
    /// When it was stored.
    pub(crate) at: Option<Timestamp>,
    /// Whether it was undone.
    pub(crate) undone: bool,
    /// Whether it can be undone or redone with the token.
    pub(crate) can_undo: bool,
    /// Tokens of the request before the compaction.
    pub(crate) tokens_before: Option<Tokens>,
    /// Tokens of the request after the compaction.
    pub(crate) tokens_after: Option<Tokens>,
    /// The number of replaced messages.
    pub(crate) messages: Option<usize>,
    /// The receipt, if ctx made it.
    pub(crate) receipt: Option<Value>,
    /// How the summary was made, if the proxy recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summarised: Option<SummaryRecord>,
}

/// Selects entries of a request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EntriesQuery {
    /// The position of the first entry to return among the matching entries.
    pub(crate) from: usize,
    /// The maximum number to return.
    pub(crate) count: Option<usize>,
    /// `kept`, `replaced`, `dropped`, `inserted`, or `changed` for entries edited in this request.
    pub(crate) state: Option<String>,
    /// Only entries changed by this layer.
    pub(crate) layer: Option<String>,
    /// Only entries with this text in id, role, reason or content.
    pub(crate) q: Option<String>,
    /// The entry whose position is requested.
    pub(crate) entry: Option<String>,
}

/// The parameters of an entry.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EntryQuery {
    /// The request in which the entry was sent.
    pub(crate) request: Option<usize>,
    /// Whether to return the whole text, even of a very long message.
    pub(crate) whole: bool,
}

/// A request.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestPage {
    /// Its row.
    #[serde(flatten)]
    pub(crate) row: RequestRow,
    /// The session's name.
    pub(crate) title: String,
    /// The number of requests of the session.
    pub(crate) requests: usize,
    /// The context window.
    pub(crate) window: Tokens,
    /// The part of it reserved for the answer.
    pub(crate) reserve: Tokens,
    /// Window minus reserve.
    pub(crate) limit: Tokens,
    /// The components in the order of the request.
    pub(crate) components: Vec<Component>,
    /// The edits made for it, by layer and action.
    pub(crate) edits: Vec<LayerEdits>,
    /// The number of entries by state.
    pub(crate) states: BTreeMap<&'static str, usize>,
    /// The number of entries by the layer that changed them.
    pub(crate) layers: BTreeMap<String, usize>,
    /// The number of matching entries.
    pub(crate) matching: usize,
    /// The position of the queried `entry` among the matching entries, if it matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<usize>,
    /// The position of the first of `entries` among the matching entries.
    pub(crate) from: usize,
    /// The entries.
    pub(crate) entries: Vec<EntryRow>,
}

/// The edits of a layer for a request, with one action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LayerEdits {
    /// The layer.
    pub(crate) layer: String,
    /// `drop`, `replace`, `insert`, `pin`, `move`.
    pub(crate) action: String,
    /// The number of edits.
    pub(crate) edits: usize,
    /// Tokens before.
    pub(crate) before: u64,
    /// Tokens after.
    pub(crate) after: u64,
    /// The first few distinct reasons.
    pub(crate) reasons: Vec<String>,
}

/// An entry of a request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryRow {
    /// Its record.
    #[serde(flatten)]
    pub(crate) entry: EntryRecord,
    /// Whether it was edited in this request.
    pub(crate) changed: bool,
}

/// The details of an entry.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryPage {
    /// The entry.
    pub(crate) entry: String,
    /// The role.
    pub(crate) role: String,
    /// The time.
    pub(crate) at: Option<Timestamp>,
    /// Its record in the request, if the query names a request.
    pub(crate) fate: Option<EntryRecord>,
    /// The recorded content; null for an inserted entry.
    pub(crate) recorded: Option<MessageView>,
    /// The content as sent, if it differs.
    pub(crate) sent: Option<MessageView>,
    /// Why the recorded or the sent content is missing or incomplete.
    pub(crate) note: Option<String>,
}

/// A message for display.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageView {
    /// Its tokens.
    pub(crate) tokens: u64,
    /// Its parts.
    pub(crate) parts: Vec<MessagePart>,
    /// The number of characters omitted for length.
    pub(crate) cut: usize,
}

/// A part of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessagePart {
    /// `text`, `thinking`, `toolCall`, `toolResult`, `image`, `bash`, `opaque`.
    pub(crate) kind: &'static str,
    /// The tool, the command or the type of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Whether the tool failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_error: bool,
    /// The text.
    pub(crate) text: String,
}

/// The result of an undo.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UndoResult {
    /// Whether anything changed.
    pub(crate) undone: bool,
    /// Whether the compaction was redone.
    pub(crate) redone: bool,
    /// Why nothing changed.
    pub(crate) reason: Option<String>,
    /// The compaction.
    pub(crate) compaction_id: Option<String>,
    /// The entry of the undo; for the proxy, the entry of the compaction.
    pub(crate) entry_id: Option<String>,
}
