//! Assembles the parts of an answer from streamed fragments.

use std::collections::HashSet;

use ctx_core::{
    Block, CallId, CallSpelling, Delta, Deltas, Error, ErrorKind, RawJson, Result, ToolCall,
};
use ctx_dialect::json::{relaxed, unwrap_arguments};
use serde_json::value::RawValue;

/// Maximum number of parts of an answer. Fragments find their part by a search from the end, which
/// this also bounds.
pub(super) const MOST_PARTS: usize = 1_024;

/// One part of an answer.
#[derive(Debug)]
enum AnswerPart {
    Text(String),
    Thinking {
        thinking: String,
        signature: Option<String>,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// Data that must be returned to the provider unchanged.
    Opaque(String),
}

/// The parts of an answer in order, each with the key that its fragments use. Fragments are also
/// forwarded to the listener.
pub(super) struct AnswerParts<'d> {
    parts: Vec<(u64, AnswerPart)>,
    deltas: Deltas<'d>,
    pub(super) bytes: u64,
}

impl<'d> AnswerParts<'d> {
    pub(super) fn new(deltas: Deltas<'d>) -> Self {
        Self { parts: Vec::new(), deltas, bytes: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Returns all text.
    pub(super) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|(_, part)| match part {
            AnswerPart::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Appends to a text.
    pub(super) fn push_text(&mut self, key: u64, more: &str) {
        if more.is_empty() {
            return;
        }
        self.bytes += more.len() as u64;
        match self.part(key, |part| matches!(part, AnswerPart::Text(_))) {
            Some(AnswerPart::Text(text)) => text.push_str(more),
            _ => self.parts.push((key, AnswerPart::Text(more.to_owned()))),
        }
        (self.deltas)(Delta::Text(more));
    }

    /// Appends to the reasoning.
    pub(super) fn push_thinking(&mut self, key: u64, more: &str) {
        if more.is_empty() {
            return;
        }
        self.bytes += more.len() as u64;
        self.thinking(key).0.push_str(more);
        (self.deltas)(Delta::Thinking(more));
    }

    /// Adds an empty line between two sections of the reasoning.
    pub(super) fn part_thinking(&mut self, key: u64) {
        let has_begun = matches!(
            self.part(key, |part| matches!(part, AnswerPart::Thinking { .. })),
            Some(AnswerPart::Thinking { thinking, .. }) if !thinking.is_empty()
        );
        if has_begun {
            self.push_thinking(key, "\n\n");
        }
    }

    /// Whether there is readable reasoning with this key.
    pub(super) fn has_thinking(&self, key: u64) -> bool {
        self.parts.iter().any(|(k, part)| {
            *k == key
                && matches!(part, AnswerPart::Thinking { thinking, .. } if !thinking.is_empty())
        })
    }

    /// Appends to the signature of the reasoning.
    pub(super) fn push_signature(&mut self, key: u64, more: &str) {
        if !more.is_empty() {
            self.bytes += more.len() as u64;
            self.thinking(key).1.get_or_insert_default().push_str(more);
        }
    }

    /// Replaces the signature.
    pub(super) fn sign(&mut self, key: u64, signature: &str) {
        let known = self.thinking(key).1;
        if known.as_deref() != Some(signature) {
            *known = Some(signature.to_owned());
            self.bytes += signature.len() as u64;
        }
    }

    /// Begins a tool call.
    pub(super) fn begin_call(&mut self, key: u64, id: &str, name: &str) {
        self.bytes += (id.len() + name.len()) as u64;
        let call =
            AnswerPart::Call { id: id.to_owned(), name: name.to_owned(), arguments: String::new() };
        self.parts.push((key, call));
        (self.deltas)(Delta::Call(name));
    }

    /// Returns the id of the newest call with this key.
    pub(super) fn call_id(&self, key: u64) -> Option<&str> {
        self.parts.iter().rev().find_map(|(k, part)| match part {
            AnswerPart::Call { id, .. } if *k == key => Some(id.as_str()),
            _ => None,
        })
    }

    /// Returns the key of the newest call.
    pub(super) fn last_call(&self) -> Option<u64> {
        let call =
            self.parts.iter().rev().find(|(_, part)| matches!(part, AnswerPart::Call { .. }));
        call.map(|(key, _)| *key)
    }

    /// Appends to a call's arguments.
    pub(super) fn push_arguments(&mut self, key: u64, more: &str) {
        self.bytes += more.len() as u64;
        if let Some(AnswerPart::Call { arguments, .. }) = self.part(key, is_call) {
            arguments.push_str(more);
        }
    }

    /// Replaces a call's arguments.
    pub(super) fn set_arguments(&mut self, key: u64, whole: &str) {
        if whole.is_empty() {
            return;
        }
        if let Some(AnswerPart::Call { arguments, .. }) = self.part(key, is_call) {
            whole.clone_into(arguments);
        }
    }

    /// Adds opaque data.
    pub(super) fn push_opaque(&mut self, key: u64, json: String) {
        self.bytes += json.len() as u64;
        self.parts.push((key, AnswerPart::Opaque(json)));
    }

    /// Returns the blocks of a complete answer. A call without a unique id gets one from
    /// `name_call`. `cut` means that the answer ended at a limit, perhaps within its last call.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Upstream`] if the arguments of a call are not JSON.
    pub(super) fn into_blocks(
        self,
        name_call: impl Fn(usize) -> String,
        cut: bool,
    ) -> Result<Vec<Block>> {
        let last = self.parts.len().saturating_sub(1);
        let mut taken = HashSet::new();
        let mut block = |(at, (_, part)): (usize, (u64, AnswerPart))| -> Result<Option<Block>> {
            Ok(Some(match part {
                AnswerPart::Text(text) if text.is_empty() => return Ok(None),
                AnswerPart::Text(text) => Block::Text { text },
                AnswerPart::Thinking { thinking, signature } => {
                    Block::Thinking { thinking, signature }
                }
                AnswerPart::Opaque(json) => Block::Opaque { json: RawJson::from_text(json) },
                AnswerPart::Call { id, name, arguments } => {
                    let is_cut = cut && at == last && arguments.trim().is_empty();
                    let arguments = match json_of(&arguments).filter(|_| !is_cut) {
                        Some(arguments) => arguments,
                        None => return Err(no_arguments(&name, cut)),
                    };
                    // Results are matched to calls by id, so ids must be unique.
                    let is_own = !id.is_empty() && taken.insert(id.clone());
                    let id = if is_own { id } else { name_call(at) };
                    let spelling = CallSpelling::default();
                    Block::ToolCall(ToolCall { id: CallId::from(id), name, arguments, spelling })
                }
            }))
        };
        self.parts.into_iter().enumerate().filter_map(|part| block(part).transpose()).collect()
    }

    fn thinking(&mut self, key: u64) -> (&mut String, &mut Option<String>) {
        let found = self
            .parts
            .iter()
            .rposition(|(k, part)| *k == key && matches!(part, AnswerPart::Thinking { .. }));
        let at = found.unwrap_or_else(|| {
            self.parts
                .push((key, AnswerPart::Thinking { thinking: String::new(), signature: None }));
            self.parts.len() - 1
        });
        match &mut self.parts[at].1 {
            AnswerPart::Thinking { thinking, signature } => (thinking, signature),
            _ => unreachable!("the part was found or added as reasoning"),
        }
    }

    fn part(&mut self, key: u64, fits: impl Fn(&AnswerPart) -> bool) -> Option<&mut AnswerPart> {
        let found = self.parts.iter_mut().rev().find(|(k, part)| *k == key && fits(part));
        found.map(|(_, part)| part)
    }
}

fn is_call(part: &AnswerPart) -> bool {
    matches!(part, AnswerPart::Call { .. })
}

/// Returns a call's arguments as JSON: unchanged, or repaired if slightly damaged; `{}` if empty.
fn json_of(text: &str) -> Option<RawJson> {
    let text = text.trim();
    if text.is_empty() {
        return Some(RawJson::from_text("{}"));
    }
    if let Ok(raw) = serde_json::from_str::<&RawValue>(text) {
        return Some(unwrap_arguments(raw));
    }
    // Repaired arguments must be an object, not a word that parses as a string.
    relaxed(text).filter(|mended| mended.starts_with('{')).map(RawJson::from_text)
}

/// The hint on how to allow longer answers.
pub(super) const LONGER: &str = "the answer reached its limit: allow a longer one with maxTokens \
    of the model in models.providers.PROVIDER.models[] of ctx.json5 (an eighth of its \
    contextWindow at most)";

fn no_arguments(name: &str, cut: bool) -> Error {
    let error = Error::new(ErrorKind::Upstream, "the arguments of a tool call are not JSON")
        .with("tool", ctx_core::text::head_chars(name, 100))
        .billed();
    match cut {
        true => error.hint(LONGER),
        false => error.retryable().hint("try again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(pieces: &[&str], cut: bool) -> Result<String> {
        let mut ignore = |_: Delta<'_>| {};
        let mut parts = AnswerParts::new(&mut ignore);
        parts.begin_call(3, "", "read");
        pieces.iter().for_each(|piece| parts.push_arguments(3, piece));
        let blocks = parts.into_blocks(|n| format!("call_{n}"), cut)?;
        match blocks.as_slice() {
            [Block::ToolCall(call)] if &*call.id == "call_0" => {
                Ok(call.arguments.as_str().to_owned())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn arguments_are_json_or_an_error() {
        for (pieces, expected) in [
            (&["{\"a\"", ":1.50}"][..], "{\"a\":1.50}"),
            (&[], "{}"),
            (&["  "], "{}"),
            (&["\"{\\\"a\\\":1}\""], "{\"a\":1}"),
            (&["{a: 'x',}"], "{\"a\":\"x\"}"),
            (&["[1]"], "[1]"),
        ] {
            assert_eq!(arguments(pieces, false).unwrap(), expected, "{pieces:?}");
        }
        for pieces in [&["{\"a\":"][..], &["{\"a\":\"b"], &["{\"a\":1}{"], &["read it"], &["{"]] {
            let error = arguments(pieces, false).unwrap_err();
            assert!(error.kind() == ErrorKind::Upstream && error.is_retryable(), "{pieces:?}");
            assert!(!arguments(pieces, true).unwrap_err().is_retryable(), "it would be cut again");
        }
        assert!(arguments(&[], true).is_err(), "the arguments may be missing");
        assert_eq!(arguments(&["{}"], true).unwrap(), "{}");
    }

    #[test]
    fn fragments_are_assembled_and_forwarded_to_the_listener() {
        let mut heard = Vec::new();
        let mut listen = |delta: Delta<'_>| heard.push(format!("{delta:?}"));
        let mut parts = AnswerParts::new(&mut listen);
        parts.push_thinking(0, "hm");
        parts.push_signature(0, "a");
        parts.push_text(1, "so");
        parts.push_signature(0, "b");
        parts.begin_call(2, "x", "f");
        parts.begin_call(3, "y", "g");
        parts.push_arguments(2, "{\"n\":");
        parts.push_arguments(3, "{}");
        parts.push_arguments(2, "1}");
        parts.push_text(1, " be it");
        parts.push_arguments(9, "lost");
        let text = parts.text();
        let blocks = parts.into_blocks(|_| String::new(), false).unwrap();
        let thought = Block::Thinking { thinking: "hm".into(), signature: Some("ab".into()) };
        assert_eq!((&blocks[0], &blocks[1]), (&thought, &Block::text("so be it")));
        let calls: Vec<_> = blocks[2..].iter().map(|block| format!("{block:?}")).collect();
        assert!(calls[0].contains("{\"n\":1}") && calls[1].contains("\"g\""), "{calls:?}");
        assert_eq!(text, "so be it");
        let expected =
            ["Thinking(\"hm\")", "Text(\"so\")", "Call(\"f\")", "Call(\"g\")", "Text(\" be it\")"];
        assert_eq!(heard, expected);
    }
}
