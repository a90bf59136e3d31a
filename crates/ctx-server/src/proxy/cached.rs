//! Whether what a provider may have in its cache is sent again.
//!
//! A provider caches the beginning of a prompt, and that is as far as two requests of a conversation
//! are the same. What the last one that was answered held, and this one does not begin with, was
//! cached for nothing.

use std::collections::HashSet;

use ctx_core::{EntryId, Tokens};

use crate::hosted::{History, InForce, Mark, SentMessage, Session, mark};
use crate::trace::{BreakCause, PrefixBreak};

/// What stands before the history and comes with every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    model: Option<String>,
    system: Option<Mark>,
    tools: Option<Mark>,
}

impl Head {
    pub(super) fn of(model: Option<&str>, system: Option<&str>, tools: Option<&str>) -> Self {
        Self { model: model.map(str::to_owned), system: system.map(mark), tools: tools.map(mark) }
    }
}

/// A request as it went out, by what it is recognised by.
#[derive(Clone, Debug)]
pub(super) struct Cached {
    head: Head,
    addition: Option<Mark>,
    fixed: Tokens,
    messages: Vec<SentMessage>,
    /// Those that the client told.
    told: HashSet<EntryId>,
    /// The summary in it.
    summary: Option<EntryId>,
}

impl Cached {
    /// The request that a session last made.
    pub(super) fn of(session: &Session, head: Head) -> Self {
        let sent = &session.sent;
        let ids = sent.messages.iter().map(|message| &message.id);
        Self {
            head,
            addition: sent.addition.as_deref().map(mark),
            fixed: sent.fixed.0 + sent.fixed.1,
            messages: sent.messages.clone(),
            told: ids.filter(|id| session.history.position(id).is_some()).cloned().collect(),
            summary: session.in_force.as_ref().and_then(InForce::summary_id).cloned(),
        }
    }

    /// What of this request the next one does not begin with, and whose doing that is.
    pub(super) fn broken(
        &self,
        next: &Self,
        history: &History,
        in_force: Option<&InForce>,
    ) -> Option<PrefixBreak> {
        let both = self.messages.iter().zip(&next.messages);
        let same = both.take_while(|(one, other)| one.is(other)).count();
        let total = |messages: &[SentMessage]| -> Tokens {
            messages.iter().map(|message| message.tokens).sum()
        };
        if self.head != next.head {
            let tokens = self.fixed + total(&self.messages);
            return Some(PrefixBreak { cause: BreakCause::Client, tokens });
        }
        if self.addition != next.addition {
            let tokens = self.fixed + total(&self.messages);
            return Some(PrefixBreak { cause: BreakCause::Edit, tokens });
        }
        let first = self.messages.get(same)?;
        let cause = self.cause(first, next.messages.get(same), history, in_force);
        Some(PrefixBreak { cause, tokens: total(&self.messages[same..]) })
    }

    /// Whose doing it is that `first` is not sent again, and `other` stands in its place.
    fn cause(
        &self,
        first: &SentMessage,
        other: Option<&SentMessage>,
        history: &History,
        in_force: Option<&InForce>,
    ) -> BreakCause {
        let is_covered = in_force.is_some_and(|kept| kept.covers_entry(&first.id));
        let was_summary = self.summary.as_ref() == Some(&first.id);
        let was_told = self.told.contains(&first.id);
        let is_gone = was_told && history.position(&first.id).is_none();
        let is_put_before = other.is_some_and(|other| {
            let places = history.position(&other.id).zip(history.position(&first.id));
            was_told && !self.told.contains(&other.id) && places.is_some_and(|(new, old)| new < old)
        });
        match was_summary {
            _ if is_covered => BreakCause::Compaction,
            true if in_force.is_some() => BreakCause::Compaction,
            // A summary goes when the client changes what it stands for.
            true => BreakCause::Client,
            false if is_gone || is_put_before => BreakCause::Client,
            false => BreakCause::Edit,
        }
    }
}
