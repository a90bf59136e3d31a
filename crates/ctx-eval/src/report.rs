//! What a replay found. The field names are part of the command line's contract.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use ctx_core::{Component, Edit, EntryId, Message, Profile, Result, Timestamp, Tokens};
use ctx_layers::compaction::{Details, Receipt};
use ctx_session::Transcript;
use serde::Serialize;

use crate::{RecordedTotals, SessionCalibration};

/// The transcript that was replayed.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionReport {
    /// Where it was read from.
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
    /// Lines that could not be read whole.
    pub bad_lines: u64,
}

impl SessionReport {
    /// What is told of a transcript that was read from `path`.
    ///
    /// # Errors
    ///
    /// Where the transcript cannot be read.
    pub fn of(path: &Path, transcript: &Transcript) -> Result<Self> {
        let stats = transcript.stats()?;
        Ok(Self {
            path: path.display().to_string(),
            format: transcript.format().name().to_owned(),
            entries: stats.entries,
            messages: stats.messages,
            tool_results: stats.tool_results,
            bytes: stats.bytes,
            bad_lines: stats.bad_lines,
        })
    }
}

/// One model request: the context that stood before one answer of the transcript.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestReport {
    /// The answer that marks the request.
    pub entry_id: EntryId,
    /// When, in milliseconds since the epoch; null where the transcript has no times.
    pub timestamp: Option<Timestamp>,
    /// Prompt tokens that the provider reported of it; null where it reported none.
    pub recorded_tokens: Option<u64>,
    /// Tokens of the full history, nothing ever dropped, system prompt and tool schemas included.
    pub raw_tokens: Tokens,
    /// Tokens that ctx would have sent, counted and corrected the same way.
    pub sent_tokens: Tokens,
    /// How many of the sent tokens the provider's cache would have held.
    pub cached_tokens: Tokens,
    /// Tokens at its beginning that are the same as in the request before.
    pub unchanged_prefix: Tokens,
    /// Whether `sentTokens` is inside window minus reserve.
    pub fits: bool,
    /// What the request would have cost, in USD; null where the model has no price.
    pub cost_usd: Option<f64>,
    /// Tokens of what the long-term memory brought in for this request. What it brought in for
    /// earlier ones may be there still.
    pub recalled_tokens: Tokens,
    /// Messages that it left out for this request, because others have more to do with what is
    /// asked.
    pub trimmed_messages: u32,
    /// Edits made for this request, by layer. Earlier edits stay in force.
    pub actions: BTreeMap<String, u32>,
}

/// What the HTML report adds to a request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestDetail {
    /// Edits made for this request.
    pub edits: Vec<Edit>,
    /// The request's size by component.
    pub components: Vec<Component>,
    /// What messages were made into for this request, as long as there is room to keep that.
    #[serde(skip)]
    pub forms: Vec<Form>,
}

/// A message that this request added, or that it gave another form.
#[derive(Clone, Debug)]
pub struct Form {
    /// Its entry.
    pub entry: EntryId,
    /// Who speaks.
    pub role: String,
    /// Of one that was added: the next message of the transcript that goes out after it.
    pub before: Option<EntryId>,
    /// The message as it goes out; absent where that was too much to keep.
    pub message: Option<Arc<Message>>,
}

/// What one layer did in the whole replay. Messages are counted, not edits: one that was shortened
/// three times is one message shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerTotals {
    /// Messages it left out.
    pub dropped: u32,
    /// Messages it sent in another form, those that it left out later included.
    pub replaced: u32,
    /// Messages it added.
    pub inserted: u32,
    /// Tokens it took out of the context, net of what it added. Each counts once, not for every
    /// later request that is smaller for it.
    pub tokens_removed: i64,
}

/// One compaction of the replay.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionReport {
    /// The request before which it happened: its place among `requests`, the first of which is 0.
    pub request: usize,
    /// The message that came next: the answer that marks the request, as a rule.
    pub entry_id: EntryId,
    /// The entry that it is stored as; null where the replay made it.
    pub id: Option<EntryId>,
    /// Whether it was stored with the session, and not made by the replay.
    pub stored: bool,
    /// The first entry that was kept as it is.
    pub first_kept_entry_id: EntryId,
    /// Tokens of the request before.
    pub tokens_before: Tokens,
    /// Tokens of the request after; null where the engine does not say.
    pub tokens_after: Option<Tokens>,
    /// The summary.
    pub summary: String,
    /// What the engine has to say about it; of ctx's own compactions `receipt` is a [`Receipt`].
    pub details: Option<serde_json::Value>,
}

impl CompactionReport {
    /// The receipt, where ctx itself compacted.
    #[must_use]
    pub fn receipt(&self) -> Option<Receipt> {
        Some(Details::from_json(self.details.as_ref()?)?.receipt)
    }
}

/// Sums over all requests.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// How many requests there were.
    pub requests: usize,
    /// Sum of the raw tokens.
    pub raw_tokens: u64,
    /// Sum of the sent tokens.
    pub sent_tokens: u64,
    /// Prompt tokens that the provider reported, over all requests of the session, those of
    /// abandoned branches included; null where it reported none.
    pub recorded_tokens: Option<u64>,
    /// What they cost at today's prices, in USD; null where there are none, or a price is not known.
    pub cost_recorded_usd: Option<f64>,
    /// Requests that would not have fitted with the full history.
    pub overflows_without: usize,
    /// Requests that would not have fitted with ctx.
    pub overflows_with: usize,
    /// Requests before which history was compacted.
    pub compactions: usize,
    /// Requests for which the long-term memory brought something in.
    pub recalls: usize,
    /// Sum of what it brought in.
    pub recalled_tokens: u64,
    /// Messages that it left out.
    pub trimmed_messages: u64,
    /// Calls that were made of models that write summaries.
    pub summary_calls: usize,
    /// What they cost, in USD; null where a price is not known.
    pub summary_cost_usd: Option<f64>,
    /// Cost of the full history, in USD; null where the model has no price.
    pub cost_without_usd: Option<f64>,
    /// Cost with ctx, in USD, summary calls included; null where the model has no price.
    pub cost_with_usd: Option<f64>,
    /// Share of the sent tokens that the provider's cache would have held, 0 to 1.
    pub prefix_reuse: f64,
}

/// A replay.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayReport {
    /// The transcript.
    pub session: SessionReport,
    /// The model's window.
    pub window: Tokens,
    /// What is kept free of it for the answer.
    pub reserve: Tokens,
    /// The engine that was selected.
    pub engine: String,
    /// Requests that it made.
    pub engine_answered: usize,
    /// How often it failed, whatever it was asked for.
    pub engine_failures: u64,
    /// The engine that made the others; null where there are none.
    pub stand_in: Option<String>,
    /// Why it made the first of them.
    pub stand_in_reason: Option<String>,
    /// What a person should be told of the engine: empty until the host has taken it there.
    pub warnings: Vec<String>,
    /// The layers that did something.
    pub acted: BTreeSet<String>,
    /// What each of them did.
    pub layers: BTreeMap<String, LayerTotals>,
    /// The profile.
    pub profile: Profile,
    /// The counter.
    pub counter: String,
    /// The model whose prices were taken.
    pub model: Option<String>,
    /// What the provider reported, over all requests of the session; null where it reported none.
    pub recorded: Option<RecordedTotals>,
    /// How counted sizes were corrected by that; null where there was nothing to correct them by.
    pub calibration: Option<SessionCalibration>,
    /// The compactions, in order.
    pub compactions: Vec<CompactionReport>,
    /// The requests, in order.
    pub requests: Vec<RequestReport>,
    /// Details of the requests, in the same order; empty unless asked for.
    #[serde(skip)]
    pub details: Vec<RequestDetail>,
    /// The sums.
    pub totals: Totals,
}
