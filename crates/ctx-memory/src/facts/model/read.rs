//! From an answer to proposals.

use ctx_core::Timestamp;
use serde_json::{Map, Value};

use super::answer::items;
use super::grounds::Grounds;
use crate::facts::{
    Candidate, FactKind, PROPOSALS_MAX, Proposal, Refusal, RefusalReason, SOURCES_MAX, Said, Wish,
};

/// The proposals of an answer, and what of it is not one.
pub(super) struct Read {
    pub(super) proposals: Vec<Proposal>,
    pub(super) refused: Vec<Refusal>,
    /// Whether there was nothing but words.
    pub(super) is_prose: bool,
}

/// Reads an answer about messages that were shown with their numbers.
pub(super) fn read(
    answer: &str,
    said: &[(usize, Said<'_>, &str)],
    is_secret: &dyn Fn(&str) -> bool,
) -> Read {
    let items = items(answer);
    let is_prose = items.is_empty() && answer.chars().any(char::is_alphanumeric);
    let mut grounds = Grounds::default();
    for (_, _, text) in said {
        grounds.add(text);
    }
    let mut read = Read { proposals: Vec::new(), refused: Vec::new(), is_prose };
    for (at, item) in items.iter().enumerate() {
        let proposal = if at < PROPOSALS_MAX {
            proposal(item, said, &grounds, is_secret)
        } else {
            Err(RefusalReason::TooMany)
        };
        match proposal {
            Ok(proposal) => read.proposals.push(proposal),
            Err(reason) => read.refused.push(Refusal { at, reason }),
        }
    }
    read
}

fn proposal(
    item: &Map<String, Value>,
    said: &[(usize, Said<'_>, &str)],
    grounds: &Grounds,
    is_secret: &dyn Fn(&str) -> bool,
) -> Result<Proposal, RefusalReason> {
    let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().trim();
    let wish = Wish::from_name(match text("op") {
        "" => text("action"),
        op => op,
    });
    if wish == Wish::Delete {
        return Err(RefusalReason::Deletion);
    }
    let (content, context) = (text("content"), text("context"));
    if content.is_empty() {
        return Err(RefusalReason::Empty);
    }
    let kind = FactKind::from_name(text("type")).ok_or(RefusalReason::UnknownType)?;
    if is_secret(content) || is_secret(context) {
        return Err(RefusalReason::Secret);
    }
    if grounds.missing(content).is_some() || crate::facts::is_injected(content) {
        return Err(RefusalReason::Ungrounded);
    }
    // What was made up in the context is left out; the fact stands without it.
    let context = if grounds.missing(context).is_none() { context } else { "" };
    let sources = sources(item.get("source"), said);
    let newest = sources.iter().map(|one| one.timestamp).max();
    let session = sources.last().map(|one| one.session);
    let candidate = Candidate {
        kind,
        content: content.to_owned(),
        context: context.to_owned(),
        timestamp: newest.unwrap_or(Timestamp::default()),
        source_entry_ids: sources.iter().map(|one| one.entry.to_owned()).collect(),
        session_id: session.unwrap_or_default().to_owned(),
    };
    let id = Some(text("id")).filter(|id| !id.is_empty()).map(|id| id.chars().take(64).collect());
    Ok(Proposal { wish, id, candidate: Some(candidate) })
}

/// The messages that a fact is said to come from; all that were shown, where none is named: what
/// is erased must take the fact with it.
fn sources<'a>(named: Option<&Value>, said: &'a [(usize, Said<'a>, &'a str)]) -> Vec<Said<'a>> {
    let numbers: Vec<u64> = match named {
        Some(Value::Array(all)) => all.iter().filter_map(number).collect(),
        Some(one) => number(one).into_iter().collect(),
        None => Vec::new(),
    };
    let found: Vec<Said<'a>> = said
        .iter()
        .filter(|(number, _, _)| numbers.contains(&(*number as u64)))
        .map(|(_, one, _)| *one)
        .take(SOURCES_MAX)
        .collect();
    if found.is_empty() { said.iter().map(|(_, one, _)| *one).collect() } else { found }
}

fn number(value: &Value) -> Option<u64> {
    let text = |text: &str| text.trim_matches(['[', ']', ' ']).parse().ok();
    value.as_u64().or_else(|| value.as_str().and_then(text))
}
