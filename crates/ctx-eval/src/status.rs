//! The status of a session: its contents, and how full its context is.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use ctx_config::Profile;
use ctx_core::{
    ContextView, EngineState, Entry, EntryId, Result, Role, TokenLedger, Tokens, Usage,
};
use ctx_session::{FailedEngine, Transcript};
use serde::Serialize;

use crate::{RecordedUsage, SessionCalibration, SessionReport};

/// The context of the next request, before any layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextReport {
    /// Messages.
    pub messages: usize,
    /// Messages by role.
    pub roles: BTreeMap<String, usize>,
    /// Tokens of the last request, including system prompt and tools: the provider's figure if
    /// there is one, else the tokens of the request that would be sent now.
    pub tokens: Tokens,
    /// Where `tokens` comes from.
    pub source: TokenSource,
    /// Tokens added since that request: its answer, and later messages. The provider reported the
    /// size of the answer. The rest is estimated.
    pub pending_tokens: Tokens,
    /// The maximum size of a request: window minus reserve.
    pub limit: Tokens,
    /// Tokens of the messages by the counter, uncorrected, in the forms in which they are sent:
    /// smaller for messages that a compaction or an earlier request truncated.
    pub counted_tokens: Tokens,
    /// The compaction the context starts with.
    pub compaction: Option<String>,
}

impl ContextReport {
    /// Returns the size of the next request: the last request, and the tokens added since.
    pub fn next_request(&self) -> Tokens {
        self.tokens + self.pending_tokens
    }
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TokenSource {
    /// Reported by the provider.
    Provider,
    /// Counted, and corrected by the provider's figures for this session.
    Calibrated,
    /// Counted: the transcript has no reported figures.
    #[default]
    Estimated,
}

impl fmt::Display for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Provider => "reported by the provider",
            Self::Calibrated => "estimated, calibrated by the provider's reports",
            Self::Estimated => "estimated",
        })
    }
}

/// The session's size as last reported by the provider.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedSize {
    /// Its count of the last answer's prompt and text, plus an estimate of later messages.
    pub tokens: u64,
    /// Reported tokens per counted token of that request. `None` after a later compaction.
    /// The correction in use is `calibration` of the report.
    pub calibration: Option<f64>,
}

/// A model as transcripts name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelName {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model_id: String,
}

/// The status of a session.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// The transcript.
    pub session: SessionReport,
    /// The session's name.
    pub name: Option<String>,
    /// The entry that the next one will follow.
    pub leaf: Option<String>,
    /// The number of branch tips.
    pub branches: usize,
    /// Labelled entries: id to label.
    pub labels: BTreeMap<EntryId, String>,
    /// Compactions on the branch.
    pub compactions: usize,
    /// The current thinking level.
    pub thinking_level: String,
    /// The current model.
    pub model: Option<ModelName>,
    /// The context.
    pub context: ContextReport,
    /// Tokens of all messages in the file, on all branches.
    pub all_messages_tokens: u64,
    /// The size that the provider reported.
    pub reported: Option<ReportedSize>,
    /// How counted sizes of this session are corrected to the provider's; null if it reported
    /// nothing.
    pub calibration: Option<SessionCalibration>,
    /// The profile.
    pub profile: Profile,
    /// The selected engine.
    pub engine: String,
    /// The source of the selection: `flag`, `model`, `agent`, `global` or `default`.
    pub engine_source: String,
    /// Whether it worked when last used: `ok`, or `degraded`.
    pub engine_state: EngineState,
    /// Its last failure, if it is degraded.
    pub engine_trouble: Option<FailedEngine>,
    /// The counter.
    pub counter: String,
    /// The model's window.
    pub window: Tokens,
    /// Where the window comes from: `model`, `modelsConfig`, `agentContextTokens`, `default`;
    /// `recordedCompaction` if the agent compacted by itself in a smaller window than the
    /// catalogue's; `recordedRequest` if a larger prompt was answered.
    pub source: String,
    /// The size at which the agent compacted by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_compacted_at: Option<Tokens>,
    /// The size of the prompt that was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_prompt: Option<Tokens>,
    /// The model's window in the catalogue, if another one is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalogued_window: Option<Tokens>,
    /// Whether the window guard warns.
    pub should_warn: bool,
    /// Whether the window guard refuses.
    pub should_block: bool,
    /// The part of the window that is kept free.
    pub reserve: Tokens,
    /// Window minus reserve.
    pub limit: Tokens,
    /// Tokens of the system prompt, if the transcript has it.
    pub system: Tokens,
    /// Tokens of the tool schemas, if the transcript has them.
    pub tools: Tokens,
    /// The size of the whole request divided by the limit; above 1 if it is too large.
    pub used_share: f64,
    /// Whether the request is over the limit.
    pub should_compact: bool,
    /// Damage found in the file, and how it was handled.
    pub problems: Vec<String>,
}

/// Measures a session with a ledger: window, reserve and counter; system prompt and tool schemas if
/// the transcript has them. In `known`, the caller sets the session, the window's source, the
/// guard's verdict, the profile and the engine. Messages are read one at a time and not kept.
///
/// # Errors
///
/// Errors of reading the transcript.
pub fn status(
    transcript: &Transcript,
    ledger: &TokenLedger,
    known: StatusReport,
) -> Result<StatusReport> {
    let sizes = MessageSizes::of(transcript, ledger)?;
    let recorded = RecordedUsage::of(transcript)?;
    let line = transcript.main_line()?;
    let calibration = SessionCalibration::fit(transcript, &line, &recorded, |entry| {
        let Measured { tokens, is_seen, .. } = sizes.get(entry)?;
        Ok(if is_seen { tokens } else { Tokens::ZERO })
    })?;
    let context = transcript.context(None)?;
    let before = before_compaction(transcript, context.compaction.as_ref())?;
    let mut sums = ContextSums::default();
    for entry in &context.entries {
        let usage = recorded.usage(entry.id());
        sums.add(&sizes.get(entry)?, usage, !before.contains(entry.id()));
    }
    let sent_tokens = match projected(transcript, &context.entries, ledger)? {
        Some(tokens) => tokens,
        None => sums.counted,
    };
    let limit = ledger.limit();
    let (tokens, source) = sums.last_request(sent_tokens, ledger, calibration.as_ref());
    let report = ContextReport {
        tokens,
        source,
        pending_tokens: sums.pending(calibration.as_ref()),
        limit,
        counted_tokens: sent_tokens,
        compaction: context.compaction.as_ref().map(ToString::to_string),
        messages: context.entries.len(),
        roles: sums.roles,
    };
    let used = report.next_request();
    Ok(StatusReport {
        name: transcript.name.clone(),
        leaf: transcript.leaf().map(ToString::to_string),
        branches: transcript.tips().len(),
        labels: transcript.labels.clone(),
        compactions: transcript.compactions()?,
        thinking_level: context.thinking_level,
        model: context.model.map(|(provider, model_id)| ModelName { provider, model_id }),
        all_messages_tokens: sizes.total,
        reported: sums.reported,
        calibration,
        counter: ledger.counter().kind.name().to_owned(),
        window: ledger.window(),
        reserve: ledger.reserve(),
        limit,
        system: ledger.system(),
        tools: ledger.tools,
        used_share: f64::from(used.0) / f64::from(limit.0.max(1)),
        should_compact: used > limit,
        problems: transcript.problems.iter().map(ToString::to_string).collect(),
        context: report,
        ..known
    })
}

/// Returns the size of the messages if some were sent as projections: they are sent so again.
fn projected(
    transcript: &Transcript,
    entries: &[Arc<Entry>],
    ledger: &TokenLedger,
) -> Result<Option<Tokens>> {
    let sent = transcript.projections(None)?;
    if sent.is_empty() {
        return Ok(None);
    }
    let mut view = ContextView::new(ledger.clone()).with_projections(sent);
    for entry in entries {
        view.append(entry.clone())?;
    }
    Ok(Some(view.total()))
}

/// Returns the messages before the compaction. The sizes that providers reported with them are
/// not valid any more: those requests contained messages that are dropped now.
fn before_compaction(
    transcript: &Transcript,
    compaction: Option<&EntryId>,
) -> Result<HashSet<EntryId>> {
    let Some(compaction) = compaction else { return Ok(HashSet::new()) };
    let line = transcript.messages_to(Some(compaction))?;
    Ok(line.iter().map(|item| item.entry.id().clone()).collect())
}

/// The measurements of all messages of a transcript.
struct MessageSizes<'a> {
    ledger: &'a TokenLedger,
    by_id: HashMap<EntryId, Measured>,
    total: u64,
}

impl<'a> MessageSizes<'a> {
    fn of(transcript: &Transcript, ledger: &'a TokenLedger) -> Result<Self> {
        let mut sizes = Self { ledger, by_id: HashMap::new(), total: 0 };
        for entry in transcript.all_messages() {
            let measured = Measured::of(&entry, ledger)?;
            sizes.total += measured.tokens.get();
            sizes.by_id.insert(entry.id().clone(), measured);
        }
        Ok(sizes)
    }

    fn get(&self, entry: &Entry) -> Result<Measured> {
        // An entry in memory differs from the file: an edit or a summary made it.
        match self.by_id.get(entry.id()).filter(|_| !entry.is_in_memory()) {
            Some(measured) => Ok(measured.clone()),
            None => Measured::of(entry, self.ledger),
        }
    }
}

/// The sums over the messages of the context.
#[derive(Default)]
struct ContextSums {
    roles: BTreeMap<String, usize>,
    counted: Tokens,
    /// The last usage since the compaction, with the counted tokens before and of its answer.
    last: Option<(Usage, Tokens, Tokens)>,
    reported: Option<ReportedSize>,
}

impl ContextSums {
    /// Adds the next message. `is_current` is false for messages before the compaction.
    fn add(&mut self, message: &Measured, usage: Option<Usage>, is_current: bool) {
        if let Some(usage) = usage.filter(|_| is_current) {
            self.last = Some((usage, self.counted, message.tokens));
        }
        match usage.filter(|_| !message.failed) {
            Some(usage) => {
                let counted = f64::from((self.counted + message.tokens).0.max(1));
                let calibration = is_current.then(|| usage.total() as f64 / counted);
                self.reported = Some(ReportedSize { tokens: usage.total(), calibration });
            }
            None => {
                if let Some(reported) = &mut self.reported {
                    reported.tokens += message.tokens.get();
                }
            }
        }
        *self.roles.entry(message.role.name().to_owned()).or_default() += 1;
        self.counted += message.tokens;
    }

    /// Returns the size of the last request, else the size of the request that would be sent now.
    fn last_request(
        &self,
        sent: Tokens,
        ledger: &TokenLedger,
        calibration: Option<&SessionCalibration>,
    ) -> (Tokens, TokenSource) {
        match (&self.last, calibration) {
            (Some((usage, ..)), _) => {
                (Tokens::saturating_from(usage.prompt()), TokenSource::Provider)
            }
            (None, Some(fit)) => {
                let ledger = fit.apply(ledger.clone());
                (ledger.corrected(sent + ledger.fixed()), TokenSource::Calibrated)
            }
            (None, None) => (sent + ledger.fixed(), TokenSource::Estimated),
        }
    }

    /// Returns the tokens since the last request: its answer, and later messages.
    fn pending(&self, calibration: Option<&SessionCalibration>) -> Tokens {
        let Some((usage, before, answer)) = self.last else { return Tokens::ZERO };
        let corrected = |tokens: Tokens| tokens.scale(calibration.map_or(1.0, |fit| fit.factor));
        let answered = usage.answer().map_or_else(|| corrected(answer), Tokens::saturating_from);
        answered + corrected(self.counted - before - answer)
    }
}

/// The measurements of one message for a status.
#[derive(Clone)]
struct Measured {
    role: Role,
    tokens: Tokens,
    is_seen: bool,
    /// Whether it is an answer that was interrupted.
    failed: bool,
}

impl Measured {
    fn of(entry: &Entry, ledger: &TokenLedger) -> Result<Self> {
        let (outline, tokens) = entry.measure(ledger.counter())?;
        Ok(Self {
            role: outline.role.clone(),
            tokens,
            is_seen: outline.in_model_context,
            failed: outline.has_failed,
        })
    }
}
