//! Converts an answer to proposals.

use ctx_core::Timestamp;
use ctx_text::without_injected;
use serde_json::{Map, Value};

use super::answer::items;
use super::grounds::Grounds;
use super::prompt::Shown;
use crate::facts::{
    FactCandidate, FactKind, PROPOSALS_MAX, Proposal, ProposedOperation, RejectedProposal,
    RejectionReason, SOURCES_MAX, SourceMessage, is_secret,
};

/// The proposals of an answer, and the rejected items.
pub(super) struct Read {
    pub(super) proposals: Vec<Proposal>,
    pub(super) rejected: Vec<RejectedProposal>,
    /// Whether the answer was only prose.
    pub(super) is_prose: bool,
}

/// Reads an answer about messages that were shown with their numbers.
pub(super) fn read(answer: &str, said: &[Shown<'_>]) -> Read {
    let items = items(answer);
    let is_prose = items.is_empty() && answer.chars().any(char::is_alphanumeric);
    let mut grounds = Grounds::default();
    for (_, _, text) in said {
        grounds.add(text);
    }
    let mut read = Read { proposals: Vec::new(), rejected: Vec::new(), is_prose };
    for (at, item) in items.iter().enumerate() {
        let proposal = match at {
            0..PROPOSALS_MAX => proposal(item, said, &grounds),
            _ => Err(RejectionReason::TooMany),
        };
        match proposal {
            Ok(proposal) => read.proposals.push(proposal),
            Err(reason) => read.rejected.push(RejectedProposal { at, reason }),
        }
    }
    read
}

fn proposal(
    item: &Map<String, Value>,
    said: &[Shown<'_>],
    grounds: &Grounds,
) -> Result<Proposal, RejectionReason> {
    let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().trim();
    let operation = ProposedOperation::from_name(match text("op") {
        "" => text("action"),
        op => op,
    });
    if operation == ProposedOperation::Delete {
        return Err(RejectionReason::Deletion);
    }
    let (content, context) = (text("content"), text("context"));
    if content.is_empty() {
        return Err(RejectionReason::Empty);
    }
    let kind = FactKind::from_name(text("type")).ok_or(RejectionReason::UnknownType)?;
    if is_secret(content) || is_secret(context) {
        return Err(RejectionReason::Secret);
    }
    if grounds.missing(content).is_some() || without_injected(content) != content {
        return Err(RejectionReason::Ungrounded);
    }
    // An ungrounded context is dropped; the fact is kept.
    let context = if grounds.missing(context).is_none() { context } else { "" };
    let sources = sources(item.get("source"), said);
    let newest = sources.iter().map(|one| one.timestamp).max();
    let session = sources.last().map(|one| one.session);
    let candidate = FactCandidate {
        kind,
        content: content.to_owned(),
        context: context.to_owned(),
        timestamp: newest.unwrap_or(Timestamp::default()),
        source_entry_ids: sources.iter().map(|one| one.entry.to_string()).collect(),
        session_id: session.unwrap_or_default().to_owned(),
    };
    let id = Some(text("id")).filter(|id| !id.is_empty()).map(|id| id.chars().take(64).collect());
    Ok(Proposal { operation, id, candidate: Some(candidate) })
}

/// Returns the messages cited as sources of a fact, or all that were shown if none is cited:
/// erasing a source must also erase the fact.
fn sources<'a>(named: Option<&Value>, said: &[Shown<'a>]) -> Vec<SourceMessage<'a>> {
    let numbers: Vec<u64> = match named {
        Some(Value::Array(all)) => all.iter().filter_map(number).collect(),
        Some(one) => number(one).into_iter().collect(),
        None => Vec::new(),
    };
    let found: Vec<SourceMessage<'a>> = said
        .iter()
        .filter(|(number, _, _)| numbers.contains(&(*number as u64)))
        .map(|(_, one, _)| one.clone())
        .take(SOURCES_MAX)
        .collect();
    if found.is_empty() { said.iter().map(|(_, one, _)| one.clone()).collect() } else { found }
}

fn number(value: &Value) -> Option<u64> {
    let text = |text: &str| text.trim_matches(['[', ']', ' ']).parse().ok();
    value.as_u64().or_else(|| value.as_str().and_then(text))
}
