//! What the API says. The field names are its contract; `ReplayReport` of ctx-eval has the same.

use std::collections::BTreeMap;

use ctx_core::{EntryId, Timestamp, Tokens};
use ctx_eval::{LayerTotals, Totals};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::trace::{ComponentRecord, EntryRecord, PrefixBreak, Summarised};

/// Where a session is known from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SourceKind {
    /// Its requests went through the proxy.
    Proxy,
    /// It is a session of the home.
    Store,
    /// It is a transcript that was named.
    #[default]
    File,
}

/// A session in the list. What is not known without opening it is null.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionHead {
    /// Its id in this API.
    pub id: String,
    /// Where it is known from.
    pub source: SourceKind,
    /// Its name, for people.
    pub title: String,
    /// Its file.
    pub path: Option<String>,
    /// Whose session it is.
    pub agent: Option<String>,
    /// What its transcript and memory call it.
    pub session_id: Option<String>,
    /// The folder that its agent was started in.
    pub project: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The engine.
    pub engine: Option<String>,
    /// The model's window.
    pub window: Option<Tokens>,
    /// Model requests.
    pub requests: Option<usize>,
    /// Messages.
    pub messages: Option<usize>,
    /// Compactions in force.
    pub compactions: Option<u64>,
    /// The size of its file.
    pub bytes: Option<u64>,
    /// When something last happened.
    pub last_at: Option<Timestamp>,
    /// The newest request with nothing ever left out.
    pub raw_tokens: Option<u64>,
    /// The newest request as it went out.
    pub sent_tokens: Option<u64>,
}

/// How far the reading of a session is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Messages that were read.
    pub done: usize,
    /// Messages in all; 0 while that is not known.
    pub total: usize,
    /// Whether there is nothing to wait for any more.
    pub finished: bool,
}

/// A session.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// As in the list.
    #[serde(flatten)]
    pub head: SessionHead,
    /// The transcript's format.
    pub format: Option<String>,
    /// What is kept of the window for the answer.
    pub reserve: Tokens,
    /// Window minus reserve.
    pub limit: Tokens,
    /// The profile.
    pub profile: Option<String>,
    /// How tokens are counted.
    pub counter: Option<String>,
    /// The number before the first of `requests`.
    pub from: usize,
    /// Requests from there on, in order.
    #[serde(rename = "requests")]
    pub rows: Vec<RequestRow>,
    /// How many there are in all.
    pub total: usize,
    /// Sums over all requests, where a replay made them.
    pub totals: Option<Totals>,
    /// Compactions, in order.
    #[serde(rename = "compactions")]
    pub compacted: Vec<CompactionRow>,
    /// What each layer did in all.
    pub layers: BTreeMap<String, LayerTotals>,
    /// What a person should be told.
    pub warnings: Vec<String>,
}

/// One request: what a chart shows of it.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRow {
    /// Its number, from 1.
    pub number: usize,
    /// The answer that marks it, where it was replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// When.
    pub at: Option<Timestamp>,
    /// Tokens with nothing ever left out.
    pub raw_tokens: u64,
    /// Tokens that went out.
    pub sent_tokens: u64,
    /// Tokens that came from the provider's cache: as it said, or as a replay supposes.
    pub cached_tokens: Option<u64>,
    /// Tokens at its beginning that are those of the request before.
    pub unchanged_prefix: u64,
    /// What was sent before and is not sent again, where the proxy saw that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_break: Option<PrefixBreak>,
    /// Tokens of the prompt, as the provider said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Whether it is inside window minus reserve.
    pub fits: bool,
    /// What it cost, in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens that memory brought in for it.
    #[serde(skip_serializing_if = "is_zero")]
    pub recalled_tokens: u64,
    /// Edits made for it, by layer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub actions: BTreeMap<String, u32>,
    /// The status of the provider's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `ok`, `refused`, `failed`, `abandoned`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// How often it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Milliseconds that ctx added to the time of the first byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millis: Option<f64>,
    /// What the client speaks: `chat`, `responses`, `messages`, `gemini`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A compaction of a session.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionRow {
    /// Its id in this API: of a stored one, its entry.
    pub id: String,
    /// The request before which it happened; null where no request was made after it.
    pub number: Option<usize>,
    /// Whether it is stored with the session.
    pub stored: bool,
    /// Whether the requests after it are without what it took out.
    pub applied: bool,
    /// Who made it: `ctx`, `agent`, `extension`, `replay`.
    pub by: String,
    /// When it was stored.
    pub at: Option<Timestamp>,
    /// Whether it was taken back.
    pub undone: bool,
    /// Whether it can be taken back, or put in force again, by who has the token.
    pub can_undo: bool,
    /// Tokens of the request before.
    pub tokens_before: Option<Tokens>,
    /// Tokens of the request after.
    pub tokens_after: Option<Tokens>,
    /// Messages that it stands for.
    pub messages: Option<usize>,
    /// The receipt, where ctx made it.
    pub receipt: Option<Value>,
    /// How the summary was come by, where the proxy saw that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarised: Option<Summarised>,
}

/// Which entries of a request are asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EntriesAsked {
    /// The first, among those that fit.
    pub from: usize,
    /// How many at most.
    pub count: Option<usize>,
    /// `kept`, `replaced`, `dropped`, `inserted`, or `changed` for those edited in this request.
    pub state: Option<String>,
    /// Those that this layer changed.
    pub layer: Option<String>,
    /// Those with this in id, role, reason or text.
    pub q: Option<String>,
    /// The one whose place among them is asked for.
    pub entry: Option<String>,
}

/// What is asked of an entry.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EntryAsked {
    /// The request whose form of it is asked for.
    pub request: Option<usize>,
    /// All of its text, however long.
    pub whole: bool,
}

/// A request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestPage {
    /// Its sizes.
    #[serde(flatten)]
    pub row: RequestRow,
    /// The session's name.
    pub title: String,
    /// How many requests the session has.
    pub requests: usize,
    /// The model's window.
    pub window: Tokens,
    /// What is kept of it for the answer.
    pub reserve: Tokens,
    /// Window minus reserve.
    pub limit: Tokens,
    /// What it is made of, in the order of the request.
    pub components: Vec<ComponentRecord>,
    /// What was done for it, by layer and action.
    pub edits: Vec<LayerEdits>,
    /// Entries by state.
    pub states: BTreeMap<&'static str, usize>,
    /// Entries by the layer that changed them.
    pub layers: BTreeMap<String, usize>,
    /// How many entries fit what was asked for.
    pub matching: usize,
    /// The place among them of the one that was named, where it is one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// The place of the first of `entries` among them.
    pub from: usize,
    /// The entries.
    pub entries: Vec<EntryRow>,
}

/// What a layer did for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerEdits {
    /// The layer.
    pub layer: String,
    /// `drop`, `replace`, `insert`, `pin`, `move`.
    pub action: String,
    /// How many edits.
    pub edits: usize,
    /// Tokens before.
    pub before: u64,
    /// Tokens after.
    pub after: u64,
    /// Why: the first reasons, each once.
    pub reasons: Vec<String>,
}

/// An entry of a request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryRow {
    /// Its fate.
    #[serde(flatten)]
    pub entry: EntryRecord,
    /// Whether it was edited in this request.
    pub changed: bool,
}

/// An entry opened.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryPage {
    /// The entry.
    pub entry: String,
    /// Who speaks.
    pub role: String,
    /// When.
    pub at: Option<Timestamp>,
    /// Its fate in the request, where one was named.
    pub fate: Option<EntryRecord>,
    /// What was recorded; null of what is in no transcript.
    pub recorded: Option<Shown>,
    /// The form in which it went out, where that is another.
    pub sent: Option<Shown>,
    /// Why one of them is not there.
    pub note: Option<String>,
}

/// A message, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// Its tokens.
    pub tokens: u64,
    /// Its parts.
    pub parts: Vec<Part>,
    /// Characters that are not shown, because they are too many.
    pub cut: usize,
}

/// A part of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// `text`, `thinking`, `toolCall`, `toolResult`, `image`, `bash`, `opaque`.
    pub kind: &'static str,
    /// The tool, the command or the type of the picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the tool failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The text.
    pub text: String,
}

/// What an undo did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Undone {
    /// Whether anything was done.
    pub undone: bool,
    /// Whether the compaction is in force again by it.
    pub redone: bool,
    /// Why nothing was done.
    pub reason: Option<String>,
    /// The compaction.
    pub compaction_id: Option<String>,
    /// The entry that says so.
    pub entry_id: Option<String>,
}
