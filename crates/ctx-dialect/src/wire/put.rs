//! A request put together again.

use std::borrow::Cow;
use std::ops::Range;

use ctx_core::{Error, ErrorKind, Message, Result};

use super::{Protocol, Request, history, system};

/// One part of a history that goes out.
#[derive(Clone, Copy, Debug)]
pub enum Out<'a> {
    /// The unit of that number, as it came.
    Told(usize),
    /// A message in the API's own form.
    Written {
        /// What it says.
        message: &'a Message,
        /// The number of the unit in whose place it stands, if it is that of one. What of it did
        /// not change then goes out as it came: fields that no message has, marks for the cache,
        /// the kind of a tool's call.
        of: Option<usize>,
    },
}

impl<'a> Request<'a> {
    /// The body with this history, and with `addition` after what the system prompt says.
    ///
    /// Where all units are told and nothing is added it is the body itself, byte for byte.
    /// Otherwise only the list of the history differs, and the system prompt where something was
    /// added.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Contract`] where a unit is named that the request does not have.
    pub fn put(&self, out: &[Out<'_>], addition: Option<&str>) -> Result<Cow<'a, str>> {
        let named = out.iter().filter_map(|out| match out {
            Out::Told(n) => Some(*n),
            Out::Written { of, .. } => *of,
        });
        if let Some(unknown) = named.into_iter().find(|n| *n >= self.units.len()) {
            return Err(Error::new(ErrorKind::Contract, "the request has no such unit")
                .with("unit", unknown)
                .with("units", self.units.len())
                .hint("name units of the request that is put together"));
        }
        let addition = addition.filter(|text| !text.trim().is_empty());
        let is_same = out.len() == self.units.len()
            && out.iter().enumerate().all(|(n, out)| matches!(out, Out::Told(told) if *told == n));
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

    /// What is added to the system prompt, where the API has one beside the history.
    fn with_system(&self, addition: &str) -> Option<(Range<usize>, String)> {
        let key = system::keys(self.protocol).first()?;
        Some(match &self.system_at {
            Some(place) => {
                let text = system::with(self.protocol, Some(place.value), addition);
                (place.at.clone(), text)
            }
            None => {
                let text = system::with(self.protocol, None, addition);
                let end = self.history.end;
                (end..end, format!(",\"{key}\":{text}"))
            }
        })
    }
}

/// A part of a body. Where there is none an edit would lose what the client said.
fn slice(body: &str, at: Range<usize>) -> Result<&str> {
    body.get(at.clone()).ok_or_else(|| {
        Error::new(ErrorKind::Contract, "an edit of the request is outside of its body")
            .with("from", at.start)
            .with("to", at.end)
            .hint("please report this")
    })
}

/// A text with some of its ranges replaced; they do not overlap, and are in order.
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
