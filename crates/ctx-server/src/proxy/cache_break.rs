//! Detects cache breaks.
//!
//! A provider caches the beginning of a prompt, as far as two requests of a conversation are equal.
//! The rest of the last answered request was cached in vain.

use ctx_core::{EntryId, Tokens};
use ctx_hosted::{History, HostedSession, InForce, SentMessage, UnitDigest, digest};
use ctx_trace::{BreakCause, PrefixBreak};

/// The part of a request before the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestHead {
    model: Option<String>,
    system: Option<UnitDigest>,
    tools: Option<UnitDigest>,
}

impl RequestHead {
    pub(super) fn of(model: Option<&str>, system: Option<&str>, tools: Option<&str>) -> Self {
        Self {
            model: model.map(str::to_owned),
            system: system.map(digest),
            tools: tools.map(digest),
        }
    }
}

/// The hashes of a sent request.
#[derive(Clone, Debug)]
pub(super) struct CachedRequest {
    head: RequestHead,
    addition: Option<UnitDigest>,
    fixed: Tokens,
    messages: Vec<SentMessage>,
    /// Whether the client sent each of them.
    from_client: Vec<bool>,
    /// The summary entry, if any.
    summary: Option<EntryId>,
}

impl CachedRequest {
    /// Returns the last request of a session.
    pub(super) fn of(session: &HostedSession, head: RequestHead) -> Self {
        let sent = &session.sent;
        let is_sent = |message: &SentMessage| session.history.position(&message.id).is_some();
        Self {
            head,
            addition: sent.addition.as_deref().map(digest),
            fixed: sent.fixed.0 + sent.fixed.1,
            messages: sent.messages.clone(),
            from_client: sent.messages.iter().map(is_sent).collect(),
            summary: session.in_force.as_ref().and_then(InForce::summary_id).cloned(),
        }
    }

    /// Whether it begins with this head.
    pub(super) fn has_head(&self, head: &RequestHead) -> bool {
        self.head == *head
    }

    /// Returns the cause of a cache break between this request and the next, and the tokens that it
    /// lost.
    pub(super) fn cache_break(
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
        if self.head != next.head || self.addition != next.addition {
            let is_same_head = self.head == next.head;
            let cause = if is_same_head { BreakCause::Edit } else { BreakCause::Client };
            return Some(PrefixBreak { cause, tokens: self.fixed + total(&self.messages) });
        }
        let first = self.messages.get(same)?;
        let cause = self.cause(first, next.messages.get(same), history, in_force);
        Some(PrefixBreak { cause, tokens: total(&self.messages[same..]) })
    }

    /// Whether the client sent that message.
    fn is_from_client(&self, id: &EntryId) -> bool {
        let mut both = self.messages.iter().zip(&self.from_client);
        both.any(|(message, is_from_client)| *is_from_client && message.id == *id)
    }

    /// Returns why `first` is missing, with `other` in its place.
    fn cause(
        &self,
        first: &SentMessage,
        other: Option<&SentMessage>,
        history: &History,
        in_force: Option<&InForce>,
    ) -> BreakCause {
        let is_covered = in_force.is_some_and(|kept| kept.covers_entry(&first.id));
        let was_summary = self.summary.as_ref() == Some(&first.id);
        let was_sent = self.is_from_client(&first.id);
        let is_gone = was_sent && history.position(&first.id).is_none();
        let is_inserted_before = other.is_some_and(|other| {
            let positions = history.position(&other.id).zip(history.position(&first.id));
            was_sent
                && !self.is_from_client(&other.id)
                && positions.is_some_and(|(new, old)| new < old)
        });
        match was_summary {
            _ if is_covered => BreakCause::Compaction,
            true if in_force.is_some() => BreakCause::Compaction,
            // A summary is removed if the client changes messages that it covers.
            true => BreakCause::Client,
            false if is_gone || is_inserted_before => BreakCause::Client,
            false => BreakCause::Edit,
        }
    }
}
