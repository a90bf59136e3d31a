//! Reassembles a request.

use std::borrow::Cow;
use std::ops::Range;

use ctx_core::{Error, ErrorKind, Message, Result};

use super::{Protocol, Request, Unit, history, system};

/// One part of an outgoing history.
#[derive(Clone, Copy, Debug)]
pub enum OutgoingUnit<'a> {
    /// The unit with this index, unchanged.
    Unchanged(usize),
    /// A message in the API's format.
    Message {
        /// The message.
        message: &'a Message,
        /// The index of the unit it replaces, if any. Unchanged parts of that unit are then sent as
        /// they were: fields without an equivalent in a message, cache marks, the type of a tool
        /// call.
        of: Option<usize>,
    },
}

/// One element of an outgoing list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutgoingElement {
    /// The element with this index in the request's list, unchanged.
    Unchanged(usize),
    /// A new or changed element, as JSON.
    Json(String),
}

impl<'a> Request<'a> {
    /// Returns the elements of the list in the body of [`with_history`](Self::with_history).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Contract`] for an index without a unit.
    pub fn elements(&self, out: &[OutgoingUnit<'_>]) -> Result<Vec<OutgoingElement>> {
        self.check(out)?;
        let sizes = self.units.iter().map(Unit::size);
        let first = self.count.saturating_sub(sizes.clone().sum());
        let starts: Vec<_> =
            sizes.scan(first, |at, size| Some((std::mem::replace(at, *at + size), size))).collect();
        let mut all: Vec<_> = (0..first).map(OutgoingElement::Unchanged).collect();
        for element in history::elements_of(self, out) {
            match element.unit.and_then(|unit| starts.get(unit)) {
                Some((at, size)) => all.extend((*at..at + size).map(OutgoingElement::Unchanged)),
                None => all.push(OutgoingElement::Json(element.json.into_owned())),
            }
        }
        Ok(all)
    }

    fn check(&self, out: &[OutgoingUnit<'_>]) -> Result<()> {
        let named = out.iter().filter_map(|out| match out {
            OutgoingUnit::Unchanged(n) => Some(*n),
            OutgoingUnit::Message { of, .. } => *of,
        });
        match named.into_iter().find(|n| *n >= self.units.len()) {
            None => Ok(()),
            Some(unknown) => Err(Error::new(ErrorKind::Contract, "unknown unit of the request")
                .with("unit", unknown)
                .with("units", self.units.len())
                .hint("use the indices of this request's units")),
        }
    }

    /// Returns the body with this history, and with `addition` appended to the system prompt.
    ///
    /// If all units are unchanged and nothing is added, the result is the body, byte for byte.
    /// Otherwise only the history list differs, and the system prompt if something was added.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Contract`] for an index without a unit.
    pub fn with_history(
        &self,
        out: &[OutgoingUnit<'_>],
        addition: Option<&str>,
    ) -> Result<Cow<'a, str>> {
        self.check(out)?;
        let addition = addition.filter(|text| !text.trim().is_empty());
        let is_same = out.len() == self.units.len()
            && out
                .iter()
                .enumerate()
                .all(|(n, out)| matches!(out, OutgoingUnit::Unchanged(at) if *at == n));
        let in_history = addition.filter(|_| self.protocol == Protocol::Chat);
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        if !is_same || in_history.is_some() {
            let mut list = history::write(self, out, in_history);
            if self.history.is_empty() {
                let before = slice(self.body, 0..self.history.start)?;
                let comma = if before.trim_end().ends_with('{') { "" } else { "," };
                list = format!("{comma}\"{}\":{list}", self.protocol.history());
            }
            edits.push((self.history.clone(), list));
        }
        edits.extend(addition.and_then(|addition| self.with_system(addition)));
        edits.sort_by_key(|(at, _)| at.start);
        edited(self.body, &edits)
    }

    /// Returns the edit that extends the system prompt, for APIs with a separate system field.
    fn with_system(&self, addition: &str) -> Option<(Range<usize>, String)> {
        let key = system::keys(self.protocol).first()?;
        Some(match &self.system_at {
            Some(field) => {
                let text = system::with(self.protocol, Some(field.value), addition);
                (field.at.clone(), text)
            }
            None => {
                let text = system::with(self.protocol, None, addition);
                let end = self.history.end;
                (end..end, format!(",\"{key}\":{text}"))
            }
        })
    }
}

/// Returns a slice of a body. An invalid range is an error, because the edit would lose content of
/// the client.
fn slice(body: &str, at: Range<usize>) -> Result<&str> {
    body.get(at.clone()).ok_or_else(|| {
        Error::new(ErrorKind::Contract, "an edit of the request is outside its body")
            .with("from", at.start)
            .with("to", at.end)
            .hint("please report this")
    })
}

/// Replaces ranges of a text, which are sorted and do not overlap.
fn edited<'a>(text: &'a str, edits: &[(Range<usize>, String)]) -> Result<Cow<'a, str>> {
    if edits.is_empty() {
        return Ok(Cow::Borrowed(text));
    }
    let more: usize = edits.iter().map(|(_, new)| new.len()).sum();
    let mut out = String::with_capacity(text.len() + more);
    let mut at = 0;
    for (range, new) in edits {
        out.push_str(slice(text, at..range.start)?);
        out.push_str(new);
        at = range.end;
    }
    out.push_str(slice(text, at..text.len())?);
    Ok(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_outside_of_the_body_is_an_error_and_loses_nothing() {
        let edit = |range: Range<usize>| edited("a\u{e9}b", &[(range, "x".to_owned())]);
        assert_eq!(edit(1..3).unwrap(), "axb");
        for range in [2..3, 0..9, 9..9, Range { start: 3, end: 2 }] {
            let error = edit(range.clone()).expect_err(&format!("{range:?}"));
            assert_eq!(error.kind(), ErrorKind::Contract);
        }
    }
}
