//! `fit`: the host's list in, the list to send out. The host sends only what changed.

use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Message, RawJson, Result, Tokens};
use ctx_dialect::wire::{self, OutgoingElement, OutgoingUnit, Request, ResultMatcher};
use ctx_hosted::{AssembledRequest, Unit, answers_unknown_calls, check_id_count};
use serde::Serialize;
use serde_json::value::RawValue;

use super::dialect::Dialect;
use super::open::prompt_text;
use super::params;
use super::session::{DialectUnit, RpcSession};
use super::turn::RequestReport;

/// The warning about a list without the calls of its results.
const CONTINUED: &str = "the calls of the newest results are missing: the provider may store them, so \
                         the messages are sent as they are";

/// The host's list. The session has it so that a host need not repeat it.
#[derive(Debug)]
pub(super) struct HostList {
    /// A JSON array.
    text: String,
    /// The end of each element in the text.
    ends: Vec<usize>,
    /// The host's id of each element.
    ids: Vec<Option<String>>,
    /// For the messages of an API. The units of other formats are messages by themselves.
    matcher: Option<ResultMatcher>,
    /// Whether the history of the session is this list.
    pub(super) is_of_history: bool,
    /// The end of the elements that the history has too.
    known_to: usize,
}

/// The result of `fit`.
#[derive(Serialize)]
pub(super) struct Fitted {
    /// The messages to send.
    messages: Vec<FittedMessage>,
    #[serde(flatten)]
    report: RequestReport,
}

/// A message to send.
#[derive(Serialize)]
#[serde(untagged)]
enum FittedMessage {
    /// The message with this index in the host's list, unchanged.
    Unchanged(usize),
    /// A new or changed message.
    New(RawJson),
}

/// A unit of an API's history, and whether the last `fit` had it at this place.
struct WireUnit<'a>(&'a wire::Unit<'a>, bool);

impl Unit for WireUnit<'_> {
    fn raw(&self) -> &str {
        self.0.raw
    }

    fn is_known(&self) -> bool {
        self.1
    }

    fn read(&self) -> Result<Arc<Message>> {
        Ok(self.0.read())
    }
}

impl HostList {
    /// Creates an empty list of messages in this format.
    pub(super) fn new(format: Dialect) -> Self {
        Self {
            text: "[]".to_owned(),
            ends: Vec::new(),
            ids: Vec::new(),
            matcher: format.protocol().map(ResultMatcher::of),
            is_of_history: false,
            known_to: 0,
        }
    }

    fn end(&self) -> usize {
        self.ends.last().copied().unwrap_or(1)
    }

    fn elements(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(1).chain(self.ends.iter().map(|end| end + 1));
        self.ends.iter().zip(starts).filter_map(|(end, start)| self.text.get(start..*end))
    }

    /// Replaces the elements after the first `keep`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] if there are fewer, and [`ErrorKind::InvalidInput`] if the ids do not
    /// belong to the elements.
    fn replace_after(&mut self, given: &params::Fit<'_>) -> Result<()> {
        let (keep, new) = (given.keep, &given.messages);
        if keep > self.ends.len() {
            return Err(Error::new(
                ErrorKind::Conflict,
                "the session does not have these messages",
            )
            .with("keep", keep)
            .with("messages", self.ends.len())
            .hint("send all messages again, with `keep` 0"));
        }
        self.ends.truncate(keep);
        self.ids.truncate(keep);
        self.text.truncate(self.end());
        if let Some(matcher) = &mut self.matcher {
            matcher.keep(keep);
        }
        self.known_to = if self.is_of_history { self.end() } else { 0 };
        for raw in new {
            if !self.ends.is_empty() {
                self.text.push(',');
            }
            self.text.push_str(raw.get());
            self.ends.push(self.text.len());
        }
        self.text.push(']');
        match &given.ids {
            Some(ids) => {
                check_id_count(new.len(), ids.len())?;
                self.ids.extend_from_slice(ids);
            }
            None => self.ids.resize(self.ends.len(), None),
        }
        Ok(())
    }

    /// Returns the ids of the last `count` elements, if any element has one.
    fn ids_of_last(&self, count: usize) -> Option<Vec<Option<String>>> {
        let has_ids = self.ids.iter().any(Option::is_some);
        has_ids.then(|| self.ids[self.ids.len().saturating_sub(count)..].to_vec())
    }

    /// Whether the history has this part of the document too, at the same place.
    fn is_known(&self, part: &str) -> bool {
        self.offset(part) + part.len() <= self.known_to
    }

    /// Returns the place of a part of the document.
    fn offset(&self, part: &str) -> usize {
        part.as_ptr() as usize - self.text.as_ptr() as usize
    }
}

impl RpcSession {
    /// Returns the messages of the next request.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] if the host and the session disagree about earlier messages. After any
    /// error the session has no messages, and the host must send all of them.
    pub(super) async fn fit(&mut self, given: params::Fit<'_>) -> Result<Fitted> {
        let mut list = std::mem::replace(&mut self.list, HostList::new(self.format));
        if given.ids.is_some() && self.format == Dialect::Responses {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "items of the Responses API cannot have ids of the host",
            )
            .hint("omit ids: several items may be one message"));
        }
        list.replace_after(&given)?;
        given.messages.iter().try_for_each(|raw| self.format.check(raw))?;
        self.resize(given.system_prompt, given.tools);
        let pending = self.pending(given.pending_tokens, given.prompt.as_deref());
        let was_continued = self.was_continued;
        let mut fitted = match list.matcher.take() {
            Some(matcher) => self.fit_history(&mut list, matcher, pending, given.now).await?,
            None => self.fit_messages(&mut list, pending, given.now).await?,
        };
        if self.was_continued && !was_continued {
            fitted.report.warnings.push(CONTINUED.to_owned());
        }
        self.list = list;
        Ok(fitted)
    }

    /// Fits the history of an API. Its units may consist of several elements.
    async fn fit_history(
        &mut self,
        list: &mut HostList,
        mut matcher: ResultMatcher,
        pending: Tokens,
        now: Option<i64>,
    ) -> Result<Fitted> {
        let request = Request::of_list(&list.text, list.elements(), &mut matcher);
        let unit = |unit| WireUnit(unit, list.is_known(unit.raw));
        let units: Vec<_> = request.units.iter().map(unit).collect();
        // The provider may have compacted the beginning of the list, which the history then lacks.
        let is_whole = units.first().is_none_or(|unit| list.offset(unit.raw()) == 1);
        let made = self.make(&units, list.ids_of_last(units.len()), pending, now).await?;
        let out: Vec<_> = made
            .outgoing
            .iter()
            .map(|out| match out.unchanged {
                Some(at) => OutgoingUnit::Unchanged(at),
                None => OutgoingUnit::Message { message: &out.message, of: out.index },
            })
            .collect();
        let messages = request.elements(&out)?.into_iter().map(|element| match element {
            OutgoingElement::Unchanged(at) => FittedMessage::Unchanged(at),
            OutgoingElement::Json(json) => FittedMessage::New(RawJson::from_text(json)),
        });
        let messages = messages.collect();
        list.is_of_history = is_whole;
        list.matcher = Some(matcher);
        Ok(Fitted { messages, report: self.report(made) })
    }

    /// Fits messages of a host, each of which is a unit.
    async fn fit_messages(
        &mut self,
        list: &mut HostList,
        pending: Tokens,
        now: Option<i64>,
    ) -> Result<Fitted> {
        let format = self.format;
        let unit = |raw| DialectUnit { format, raw, is_known: list.is_known(raw) };
        let units: Vec<_> = list.elements().map(unit).collect();
        let made = self.make(&units, list.ids_of_last(units.len()), pending, now).await?;
        let mut messages = Vec::with_capacity(made.outgoing.len());
        for out in &made.outgoing {
            if let Some(at) = out.unchanged {
                messages.push(FittedMessage::Unchanged(at));
                continue;
            }
            let of = out.index.and_then(|at| units.get(at)).map(|unit| unit.raw);
            let written = format.write_changed(&out.message, of).unwrap_or_default();
            messages.extend(written.into_iter().map(FittedMessage::New));
        }
        list.is_of_history = true;
        Ok(Fitted { messages, report: self.report(made) })
    }

    /// Returns the next request. If the list only continues a conversation that the provider stores,
    /// that is the whole list: ctx must not drop results whose calls it does not know.
    async fn make<U: Unit>(
        &mut self,
        units: &[U],
        ids: Option<Vec<Option<String>>>,
        pending: Tokens,
        now: Option<i64>,
    ) -> Result<AssembledRequest> {
        let session = &mut self.session;
        session.sync(units, ids, false).await?;
        let items = session.history.items();
        if answers_unknown_calls(items.len(), |at| items[at].entry.message().ok()) {
            self.was_continued = true;
            return session.assemble_unchanged(pending);
        }
        session.assemble(pending, now).await
    }

    /// Applies a new system prompt and new tools.
    fn resize(&mut self, system: Option<&RawValue>, tools: Option<&RawValue>) {
        let session = &mut self.session;
        let counter = session.ledger.counter();
        let system = system.map_or(session.ledger.system(), |raw| counter.text(&prompt_text(raw)));
        let tools = tools.map_or(session.ledger.tools, |raw| counter.text(raw.get()));
        session.set_sizes(session.ledger.window(), Tokens::ZERO, system, tools);
    }
}
