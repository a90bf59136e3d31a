//! What a session holds, and how full its context is.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use ctx_core::{
    ContextView, EngineState, Entry, EntryId, Error, Message, Profile, Result, Role, TokenLedger,
    Tokens,
};
use ctx_session::Transcript;
use ctx_session::engine_health::EngineTrouble;
use serde::Serialize;

use crate::{Recorded, SessionCalibration, SessionReport};

/// What a status is measured against.
#[derive(Clone, Debug)]
pub struct StatusSetup {
    /// Window, reserve, counter; system prompt and tool schemas where the transcript has them.
    pub ledger: TokenLedger,
    /// Where the window comes from.
    pub source: String,
    /// Where a recorded size says it: that size, and the catalogue's window.
    pub proof: Option<(Tokens, Tokens)>,
    /// Whether the guard warns of it.
    pub should_warn: bool,
    /// Whether the guard refuses it.
    pub should_block: bool,
    /// The profile.
    pub profile: Profile,
    /// The engine that is selected.
    pub engine: String,
    /// What selects it: `flag`, `model`, `agent`, `global` or `default`.
    pub engine_source: String,
    /// What went wrong when it was last asked.
    pub engine_trouble: Option<EngineTrouble>,
}

/// The context as the next request would carry it, before any layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextReport {
    /// Messages.
    pub messages: usize,
    /// Messages by role.
    pub roles: BTreeMap<String, usize>,
    /// Tokens of the last request, system prompt and tools included: the provider's figure where
    /// there is one. Where there is none, of the request that would go out now.
    pub tokens: Tokens,
    /// Where `tokens` comes from.
    pub source: TokenSource,
    /// Tokens added since that request: its answer, and what followed. The answer is the
    /// provider's figure, the rest is estimated.
    pub pending_tokens: Tokens,
    /// What a request may measure: window minus reserve.
    pub limit: Tokens,
    /// Tokens of the messages by the counter, uncorrected, in the forms in which they go out: those
    /// that a compaction or an earlier request shortened are shorter.
    pub counted_tokens: Tokens,
    /// The compaction the context starts with.
    pub compaction: Option<String>,
}

impl ContextReport {
    /// The next request: the last one, and what was added since.
    #[must_use]
    pub fn next_request(&self) -> Tokens {
        self.tokens + self.pending_tokens
    }
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TokenSource {
    /// The provider reported it.
    Provider,
    /// Counted, and corrected by what the provider reported of this session.
    Calibrated,
    /// Counted: the transcript holds no report.
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

/// What the provider last said about the session's size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reported {
    /// Its count of the last answer's prompt and text, plus an estimate of what followed.
    pub tokens: u64,
    /// Reported tokens per counted token, of the request the report belongs to; see `calibration`
    /// of the report for what is used. `None` where the session was compacted since.
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
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// The transcript.
    pub session: SessionReport,
    /// The session's name.
    pub name: Option<String>,
    /// The entry that the next one will follow.
    pub leaf: Option<String>,
    /// Tips of branches.
    pub branches: usize,
    /// Labelled entries: id to label.
    pub labels: BTreeMap<String, String>,
    /// Compactions on the branch.
    pub compactions: usize,
    /// The thinking level in force.
    pub thinking_level: String,
    /// The model in force.
    pub model: Option<ModelName>,
    /// The context.
    pub context: ContextReport,
    /// Tokens of all messages in the file, on all branches.
    pub all_messages_tokens: u64,
    /// What the provider reported.
    pub reported: Option<Reported>,
    /// How counted sizes of this session become the provider's; null where it reported nothing.
    pub calibration: Option<SessionCalibration>,
    /// The profile.
    pub profile: Profile,
    /// The engine that is selected.
    pub engine: String,
    /// What selects it: `flag`, `model`, `agent`, `global` or `default`.
    pub engine_source: String,
    /// Whether it worked when it was last asked: `ok`, or `degraded`.
    pub engine_state: EngineState,
    /// What went wrong, where it did not.
    pub engine_trouble: Option<EngineTrouble>,
    /// The counter.
    pub counter: String,
    /// The model's window.
    pub window: Tokens,
    /// Where the window comes from: `model`, `modelsConfig`, `agentContextTokens`, `default`;
    /// `recordedCompaction`, where the agent compacted by itself in a smaller window than the
    /// catalogue's; `recordedRequest`, where a larger prompt was answered.
    pub source: String,
    /// The size at which the agent compacted by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_compacted_at: Option<Tokens>,
    /// The size of the prompt that was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_prompt: Option<Tokens>,
    /// The model's window in the catalogue, where that is not what counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalogued_window: Option<Tokens>,
    /// Whether the window guard warns.
    pub should_warn: bool,
    /// Whether the window guard refuses.
    pub should_block: bool,
    /// What is kept free of the window.
    pub reserve: Tokens,
    /// Window minus reserve.
    pub limit: Tokens,
    /// Tokens of the system prompt, where the transcript has it.
    pub system: Tokens,
    /// Tokens of the tool schemas, where the transcript has them.
    pub tools: Tokens,
    /// The whole request over the limit, 0 to 1 and beyond.
    pub used_share: f64,
    /// Whether the request is over the limit.
    pub should_compact: bool,
    /// Damage found in the file, and what was made of it.
    pub problems: Vec<String>,
}

/// Measures a session. Messages are read one at a time and not kept.
///
/// # Errors
///
/// What reading the transcript may give.
pub fn status(
    transcript: &Transcript,
    session: SessionReport,
    setup: &StatusSetup,
) -> Result<StatusReport> {
    let ledger = &setup.ledger;
    let mut all_tokens = 0;
    let mut by_id = HashMap::new();
    for entry in transcript.all_messages() {
        let measured = Measured::of(&*entry.message()?, ledger);
        all_tokens += measured.tokens.get();
        by_id.insert(entry.id().clone(), measured);
    }
    // An entry in memory is not what the file holds: an edit or a summary made it.
    let measured = |entry: &Entry| match by_id.get(entry.id()).filter(|_| !entry.is_held()) {
        Some(measured) => Ok(measured.clone()),
        None => Ok::<_, Error>(Measured::of(&*entry.message()?, ledger)),
    };
    let recorded = Recorded::of(transcript)?;
    let line = transcript.main_line()?;
    let calibration = SessionCalibration::fit(transcript, &line, &recorded, |entry| {
        let Measured { tokens, is_seen, .. } = measured(entry)?;
        Ok(if is_seen { tokens } else { Tokens::ZERO })
    })?;
    let context = transcript.context(None)?;
    let mut report = ContextReport {
        compaction: context.compaction.as_ref().map(ToString::to_string),
        limit: ledger.limit(),
        ..ContextReport::default()
    };
    let before = before_compaction(transcript, context.compaction.as_ref())?;
    let mut last = None;
    let mut reported: Option<Reported> = None;
    for entry in &context.entries {
        let Measured { role, tokens, failed, .. } = measured(entry)?;
        let usage = recorded.usage(entry.id());
        let is_current = !before.contains(entry.id());
        if let Some(usage) = usage.filter(|_| is_current) {
            last = Some((usage, report.counted_tokens, tokens));
        }
        match usage.filter(|_| !failed) {
            Some(usage) => {
                let counted = f64::from((report.counted_tokens + tokens).0.max(1));
                let calibration = is_current.then(|| usage.total() as f64 / counted);
                reported = Some(Reported { tokens: usage.total(), calibration });
            }
            None => {
                if let Some(reported) = &mut reported {
                    reported.tokens += tokens.get();
                }
            }
        }
        report.messages += 1;
        *report.roles.entry(role.name().to_owned()).or_default() += 1;
        report.counted_tokens += tokens;
    }
    let counted = report.counted_tokens;
    let sent = transcript.sent_forms(None)?;
    if !sent.is_empty() {
        // What was sent in a shorter form goes out in that form again.
        let mut view = ContextView::new(ledger.clone()).with_projections(sent);
        for entry in &context.entries {
            view.append(entry.clone())?;
        }
        report.counted_tokens = view.total();
    }
    let limit = ledger.limit();
    let corrected = |tokens: Tokens| tokens.scale(calibration.map_or(1.0, |fit| fit.factor));
    (report.tokens, report.source) = match (last, &calibration) {
        (Some((usage, ..)), _) => (reported_tokens(usage.prompt()), TokenSource::Provider),
        (None, Some(fit)) => {
            let ledger = fit.apply(ledger.clone());
            let whole = ledger.corrected(report.counted_tokens + ledger.fixed());
            (whole, TokenSource::Calibrated)
        }
        (None, None) => (report.counted_tokens + ledger.fixed(), TokenSource::Estimated),
    };
    if let Some((usage, before, answer)) = last {
        let answered = usage.answer().map_or_else(|| corrected(answer), reported_tokens);
        report.pending_tokens = answered + corrected(counted - before - answer);
    }
    let used = report.next_request();
    let (auto_compacted_at, answered_prompt) = match setup.proof {
        Some((size, window)) if size > window => (None, Some(size)),
        proof => (proof.map(|(size, _)| size), None),
    };
    Ok(StatusReport {
        name: transcript.name().map(str::to_owned),
        leaf: transcript.leaf().map(ToString::to_string),
        branches: transcript.tips().len(),
        labels: transcript.labels(),
        compactions: transcript.compactions()?,
        thinking_level: context.thinking_level,
        model: context.model.map(|(provider, model_id)| ModelName { provider, model_id }),
        all_messages_tokens: all_tokens,
        reported,
        calibration,
        profile: setup.profile,
        engine: setup.engine.clone(),
        engine_source: setup.engine_source.clone(),
        engine_state: match setup.engine_trouble {
            Some(_) => EngineState::Degraded,
            None => EngineState::Ok,
        },
        engine_trouble: setup.engine_trouble.clone(),
        counter: ledger.counter().kind().name().to_owned(),
        window: ledger.window(),
        source: setup.source.clone(),
        auto_compacted_at,
        answered_prompt,
        catalogued_window: setup.proof.map(|(_, catalogued)| catalogued),
        should_warn: setup.should_warn,
        should_block: setup.should_block,
        reserve: ledger.reserve(),
        limit,
        system: ledger.system(),
        tools: ledger.tools(),
        used_share: f64::from(used.0) / f64::from(limit.0.max(1)),
        should_compact: used > limit,
        problems: transcript.problems().iter().map(ToString::to_string).collect(),
        context: report,
        session,
    })
}

/// The messages that were there when the compaction was made. What providers reported with them is
/// the size of requests that carried more than is left.
fn before_compaction(
    transcript: &Transcript,
    compaction: Option<&EntryId>,
) -> Result<HashSet<EntryId>> {
    let Some(compaction) = compaction else { return Ok(HashSet::new()) };
    let line = transcript.line_to(Some(compaction))?;
    Ok(line.iter().map(|item| item.entry.id().clone()).collect())
}

/// What a status needs of one message.
#[derive(Clone)]
struct Measured {
    role: Role,
    tokens: Tokens,
    is_seen: bool,
    /// Whether it is an answer that broke off.
    failed: bool,
}

impl Measured {
    fn of(message: &Message, ledger: &TokenLedger) -> Self {
        Self {
            role: message.role.clone(),
            tokens: ledger.count(message),
            is_seen: message.in_model_context(),
            failed: matches!(message.meta.stop_reason.as_deref(), Some("error" | "aborted")),
        }
    }
}

/// A plausible report fits.
fn reported_tokens(tokens: u64) -> Tokens {
    Tokens(u32::try_from(tokens).unwrap_or(u32::MAX))
}
