//! What a session holds, and how full its context is.

use std::collections::{BTreeMap, HashMap, HashSet};

use ctx_core::{
    ContextView, EngineState, EntryId, Message, Profile, Result, Role, TokenLedger, Tokens,
};
use ctx_session::Transcript;
use ctx_session::engine_health::EngineTrouble;
use serde::Serialize;

use crate::SessionReport;

/// What a status is measured against.
#[derive(Clone, Debug)]
pub struct StatusSetup {
    /// Window, reserve, counter; system prompt and tool schemas where the transcript has them.
    pub ledger: TokenLedger,
    /// Where the window comes from.
    pub source: String,
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
    /// Tokens of the messages by the counter, uncorrected, in the forms in which they go out: those
    /// that a compaction or an earlier request shortened are shorter.
    pub tokens: Tokens,
    /// The compaction the context starts with.
    pub compaction: Option<String>,
}

/// What the provider last said about the session's size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reported {
    /// Its count of the last answer's prompt and text, plus an estimate of what followed.
    pub tokens: u64,
    /// Reported tokens per counted token, of the request the report belongs to. `None` where the
    /// session was compacted since: what that request carried is not the context any more.
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
    /// Where the window comes from: `model`, `modelsConfig`, `agentContextTokens`, `default`.
    pub source: String,
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
    let context = transcript.context(None)?;
    let mut report = ContextReport {
        compaction: context.compaction.as_ref().map(ToString::to_string),
        ..ContextReport::default()
    };
    let before = before_compaction(transcript, context.compaction.as_ref())?;
    let mut usage = ReportedUsage::default();
    for entry in &context.entries {
        // An entry in memory is not what the file holds: an edit or a summary made it.
        let measured = match by_id.get(entry.id()).filter(|_| !entry.is_held()) {
            Some(measured) => measured,
            None => &Measured::of(&*entry.message()?, ledger),
        };
        report.messages += 1;
        *report.roles.entry(measured.role.name().to_owned()).or_default() += 1;
        report.tokens += measured.tokens;
        let so_far = (!before.contains(entry.id())).then_some(report.tokens);
        usage.see(measured, so_far);
    }
    let sent = transcript.sent_forms(None)?;
    if !sent.is_empty() {
        // What was sent in a shorter form goes out in that form again.
        let mut view = ContextView::new(ledger.clone()).with_projections(sent);
        for entry in &context.entries {
            view.append(entry.clone())?;
        }
        report.tokens = view.total();
    }
    let limit = ledger.limit();
    let used = report.tokens + ledger.fixed();
    Ok(StatusReport {
        name: transcript.name().map(str::to_owned),
        leaf: transcript.leaf().map(ToString::to_string),
        branches: transcript.tips().len(),
        labels: transcript.labels(),
        compactions: transcript.compactions()?,
        thinking_level: context.thinking_level,
        model: context.model.map(|(provider, model_id)| ModelName { provider, model_id }),
        all_messages_tokens: all_tokens,
        reported: usage.report(),
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
struct Measured {
    role: Role,
    tokens: Tokens,
    /// The provider's total, where the answer is whole and has one.
    reported: Option<u64>,
}

impl Measured {
    fn of(message: &Message, ledger: &TokenLedger) -> Self {
        let failed = matches!(message.meta.stop_reason.as_deref(), Some("error" | "aborted"));
        let total = message.meta.usage.map_or(0, |usage| usage.total());
        let is_answer = message.role == Role::Assistant && !failed && total > 0;
        Self {
            role: message.role.clone(),
            tokens: ledger.count(message),
            reported: is_answer.then_some(total),
        }
    }
}

/// Follows what providers reported: the last valid usage, and an estimate of what came after it.
#[derive(Default)]
struct ReportedUsage {
    /// The report, and the context up to it as it is counted, where that is what was sent.
    last: Option<(u64, Option<Tokens>)>,
    trailing: Tokens,
}

impl ReportedUsage {
    fn see(&mut self, message: &Measured, so_far: Option<Tokens>) {
        match message.reported {
            Some(total) => {
                self.last = Some((total, so_far));
                self.trailing = Tokens::ZERO;
            }
            None => self.trailing += message.tokens,
        }
    }

    fn report(&self) -> Option<Reported> {
        let (total, counted) = self.last?;
        Some(Reported {
            // A transcript may report any number.
            tokens: total.saturating_add(self.trailing.get()),
            calibration: counted.map(|counted| total as f64 / f64::from(counted.0.max(1))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absurd_report_is_no_overflow() {
        let seen = |reported, tokens| Measured { role: Role::User, tokens, reported };
        let mut usage = ReportedUsage::default();
        usage.see(&seen(Some(u64::MAX), Tokens(3)), Some(Tokens(3)));
        usage.see(&seen(None, Tokens(2)), Some(Tokens(5)));
        assert_eq!(usage.report().map(|r| r.tokens), Some(u64::MAX));
    }
}
