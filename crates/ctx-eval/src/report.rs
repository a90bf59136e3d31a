//! The report of a replay. The field names are part of the command line's contract.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use ctx_config::Profile;
use ctx_core::{Component, Edit, EntryId, Message, Result, Timestamp, Tokens};
use ctx_layers::compaction::{Details, Receipt};
use ctx_session::Transcript;
use serde::Serialize;

use crate::{RecordedCompaction, RecordedTotals, SessionCalibration};

/// The transcript that was replayed.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionReport {
    /// The path it was read from.
    pub path: String,
    /// The format: `pi`, `claude-code`, `codex`, `ponybunny`, `openai`, `anthropic`.
    pub format: String,
    /// Entries in the file, of all kinds and branches.
    pub entries: usize,
    /// Messages among them.
    pub messages: usize,
    /// Tool results among the messages.
    pub tool_results: usize,
    /// The size of the file.
    pub bytes: u64,
    /// Lines that could not be read completely.
    pub bad_lines: u64,
}

impl SessionReport {
    /// Returns the report of a transcript that was read from `path`.
    ///
    /// # Errors
    ///
    /// If the transcript cannot be read.
    pub fn of(path: &Path, transcript: &Transcript) -> Result<Self> {
        let stats = transcript.stats()?;
        Ok(Self {
            path: path.display().to_string(),
            format: transcript.format.name().to_owned(),
            entries: stats.entries,
            messages: stats.messages,
            tool_results: stats.tool_results,
            bytes: stats.bytes,
            bad_lines: stats.bad_lines,
        })
    }
}

/// One model request: the context before one answer of the transcript.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestReport {
    /// The answer that marks the request.
    pub entry_id: EntryId,
    /// The time, in milliseconds since the epoch; null if the transcript has no times.
    pub timestamp: Option<Timestamp>,
    /// Prompt tokens that the provider reported; null if it reported none.
    pub recorded_tokens: Option<u64>,
    /// The cost of the recorded request, in USD; null without a report or without a price.
    pub cost_recorded_usd: Option<f64>,
    /// Tokens if nothing had been dropped, with system prompt and tool schemas.
    pub raw_tokens: Tokens,
    /// Tokens that ctx would have sent, counted and corrected the same way.
    pub sent_tokens: Tokens,
    /// How many of the sent tokens the provider's cache would have held.
    pub cached_tokens: Tokens,
    /// Tokens at its beginning that are equal in the previous request.
    pub unchanged_prefix: Tokens,
    /// Whether `sentTokens` is within window minus reserve.
    pub fits: bool,
    /// The cost of the request, in USD; null if the model has no price.
    pub cost_usd: Option<f64>,
    /// The cost of the request with the full history, in USD; null if the model has no price.
    pub cost_without_usd: Option<f64>,
    /// Tokens that long-term memory recalled for this request. Tokens recalled for earlier requests
    /// may still be in it.
    pub recalled_tokens: Tokens,
    /// Messages that memory trimmed for this request: others are more relevant to the question.
    pub trimmed_messages: u32,
    /// Edits made for this request, by layer. Earlier edits stay in effect.
    pub actions: BTreeMap<String, u32>,
}

/// Data of a request for the HTML report.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestDetail {
    /// Edits made for this request.
    pub edits: Vec<Edit>,
    /// The request's size by component.
    pub components: Vec<Component>,
    /// The forms of messages inserted or replaced for this request, up to a total limit.
    #[serde(skip)]
    pub forms: Vec<EditedMessage>,
}

/// A message that this request inserted or changed.
#[derive(Clone, Debug)]
pub struct EditedMessage {
    /// Its entry.
    pub entry: EntryId,
    /// Its role.
    pub role: String,
    /// For an inserted message: the next message of the transcript that is sent after it.
    pub before: Option<EntryId>,
    /// The message as sent; absent beyond the limit of kept messages.
    pub message: Option<Arc<Message>>,
}

/// The edits of one layer in the whole replay. Messages are counted, not edits: a message that was
/// truncated three times counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerTotals {
    /// Messages it dropped.
    pub dropped: u32,
    /// Messages it changed, including messages that it dropped later.
    pub replaced: u32,
    /// Messages it inserted.
    pub inserted: u32,
    /// Tokens it removed from the context, minus the tokens it added. Each counts once, not again
    /// for every later request.
    pub tokens_removed: i64,
}

/// One compaction of the replay.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionReport {
    /// The request before which it happened, as an index into `requests`.
    pub request: usize,
    /// The next message: usually the answer that marks the request.
    pub entry_id: EntryId,
    /// The entry it is stored as; null if the replay made it.
    pub id: Option<EntryId>,
    /// Whether it was stored with the session, and not made by the replay.
    pub stored: bool,
    /// The first entry that was kept unchanged.
    pub first_kept_entry_id: EntryId,
    /// Tokens of the request before.
    pub tokens_before: Tokens,
    /// Tokens of the request after; null if the engine does not report it.
    pub tokens_after: Option<Tokens>,
    /// The summary.
    pub summary: String,
    /// The engine's details; for ctx's own compactions, `receipt` is a [`Receipt`].
    pub details: Option<serde_json::Value>,
}

impl CompactionReport {
    /// Returns the receipt, if ctx itself compacted.
    pub fn receipt(&self) -> Option<Receipt> {
        Some(Details::from_json(self.details.as_ref()?)?.receipt)
    }
}

/// Sums over all requests.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayTotals {
    /// The number of requests.
    pub requests: usize,
    /// Sum of the raw tokens.
    pub raw_tokens: u64,
    /// Sum of the sent tokens.
    pub sent_tokens: u64,
    /// Prompt tokens that the provider reported, over all requests of the session, including
    /// requests of abandoned branches; null if it reported none.
    pub recorded_tokens: Option<u64>,
    /// The cost of these tokens at today's prices, in USD; null without tokens or without a price.
    pub cost_recorded_usd: Option<f64>,
    /// Requests that would not have fitted with the full history.
    pub overflows_without: usize,
    /// Requests that would not have fitted with ctx.
    pub overflows_with: usize,
    /// Requests before which history was compacted.
    pub compactions: usize,
    /// Requests for which long-term memory recalled something.
    pub recalls: usize,
    /// Sum of the recalled tokens.
    pub recalled_tokens: u64,
    /// Messages that memory trimmed.
    pub trimmed_messages: u64,
    /// Calls of models that write summaries.
    pub summary_calls: usize,
    /// Their cost, in USD; null if a price is not known.
    pub summary_cost_usd: Option<f64>,
    /// Cost of the full history, in USD; null if the model has no price.
    pub cost_without_usd: Option<f64>,
    /// Cost with ctx, in USD, including summary calls; null if the model has no price.
    pub cost_with_usd: Option<f64>,
    /// Share of the sent tokens that the provider's cache would have held, 0 to 1.
    pub prefix_reuse: f64,
}

/// A replay.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayReport {
    /// The transcript.
    pub session: SessionReport,
    /// The model's window.
    pub window: Tokens,
    /// The part of it that is kept free for the answer.
    pub reserve: Tokens,
    /// The selected engine.
    pub engine: String,
    /// Requests that it assembled.
    pub engine_answered: usize,
    /// The number of its failures, for any operation.
    pub engine_failures: u64,
    /// The fallback engine that assembled the other requests; null if there are none.
    pub stand_in: Option<String>,
    /// Why the fallback engine assembled the first of these requests.
    pub stand_in_reason: Option<String>,
    /// Warnings about the engine for the user. Empty until the host adds them.
    pub warnings: Vec<String>,
    /// The layers that made edits.
    pub acted: BTreeSet<String>,
    /// The edits of each layer.
    pub layers: BTreeMap<String, LayerTotals>,
    /// The profile.
    pub profile: Profile,
    /// The counter.
    pub counter: String,
    /// The model whose prices were used.
    pub model: Option<String>,
    /// The provider's figures over all requests of the session; null if it reported nothing.
    pub recorded: Option<RecordedTotals>,
    /// The compactions in the session that the agent made, in order.
    pub recorded_compactions: Vec<RecordedCompaction>,
    /// The correction of counted sizes by `recorded`; null without a correction.
    pub calibration: Option<SessionCalibration>,
    /// The compactions, in order.
    pub compactions: Vec<CompactionReport>,
    /// The requests, in order.
    pub requests: Vec<RequestReport>,
    /// Details of the requests, in the same order; empty unless requested.
    #[serde(skip)]
    pub details: Vec<RequestDetail>,
    /// The sums.
    pub totals: ReplayTotals,
}
