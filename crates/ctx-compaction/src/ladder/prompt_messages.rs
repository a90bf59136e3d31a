//! The messages of a job as they are shown to one model.

use std::borrow::Cow;
use std::ops::Range;
use std::slice;

use ctx_core::{MIDDLE_OMITTED_NOTICE, Tokens};

use crate::chunk::is_oversized_for_summary;
use crate::prompts::{oversized_note, serialize_disarmed, without_markers};
use crate::{SAFETY_MARGIN, SerializeOptions, SummaryJob, chunk_by_max_tokens};
use ctx_facts::CitedMessage;

use super::gauge::Gauge;

/// The texts sent for the messages.
pub(crate) struct PromptMessages {
    texts: Vec<String>,
    sizes: Vec<Tokens>,
    groups: Vec<u32>,
    /// Whether each message is sent: too large and empty ones are not.
    sent: Vec<bool>,
    /// Notes that replace messages that are too large.
    pub(crate) omitted: Vec<String>,
}

impl PromptMessages {
    /// Builds the messages for a model with the given context window.
    pub(crate) fn of(job: &SummaryJob, window: Tokens, gauge: &Gauge) -> Self {
        let options = SerializeOptions {
            thinking: job.config.serialize_thinking,
            citations: true,
            // No more could be sent in any case; this bounds the work on a huge message.
            text_chars: Some(gauge.most_chars(window)),
        };
        let len = job.messages.len();
        let mut messages = Self {
            texts: Vec::with_capacity(len),
            sizes: Vec::with_capacity(len),
            groups: if job.groups.len() == len { job.groups.clone() } else { Vec::new() },
            sent: Vec::with_capacity(len),
            omitted: Vec::new(),
        };
        for (at, cited) in job.messages.iter().enumerate() {
            let size = job.sizes.get(at).copied().unwrap_or_default();
            let size = size.max(gauge.message(&cited.message));
            let text = if is_oversized_for_summary(size, window) {
                let note = oversized_note(&cited.message.role, size);
                messages.omitted.push(note.clone());
                messages.sent.push(false);
                note
            } else {
                let text = serialize_disarmed(slice::from_ref(&*plain_id(cited)), &options);
                messages.sent.push(!text.is_empty());
                text
            };
            messages.sizes.push(size_of(&text, gauge));
            messages.texts.push(text);
        }
        messages
    }

    pub(crate) fn sizes(&self) -> &[Tokens] {
        &self.sizes
    }

    /// Returns the tokens of all messages.
    pub(crate) fn all(&self) -> Tokens {
        self.sizes.iter().copied().sum()
    }

    pub(crate) fn groups(&self, range: Range<usize>) -> &[u32] {
        self.groups.get(range).unwrap_or_default()
    }

    /// Whether a range contains any text to summarise.
    pub(crate) fn has_text(&self, range: Range<usize>) -> bool {
        self.sent.get(range).unwrap_or_default().contains(&true)
    }

    /// Truncates each message to `max`, margin included.
    pub(crate) fn bound(&mut self, max: Tokens, gauge: &Gauge) {
        let max = max.scale(1.0 / SAFETY_MARGIN);
        for (text, size) in self.texts.iter_mut().zip(&mut self.sizes) {
            if *size > max {
                *text = truncated(text, max - Tokens(1), gauge);
                *size = size_of(text, gauge);
            }
        }
    }

    /// Splits `range` into chunks of at most `max` tokens each, margin included. A call stays with
    /// its results unless they exceed `max` together.
    pub(crate) fn chunks(&self, range: Range<usize>, max: Tokens) -> Vec<Range<usize>> {
        let sizes = self.sizes.get(range.clone()).unwrap_or_default();
        let groups = self.groups(range.clone());
        let mut chunks = Vec::new();
        for chunk in chunk_by_max_tokens(sizes, groups, max) {
            let sizes = sizes.get(chunk.clone()).unwrap_or_default();
            let start = range.start + chunk.start;
            let size: Tokens = sizes.iter().copied().sum();
            if size.scale(SAFETY_MARGIN) <= max || chunk.len() == 1 {
                chunks.push(start..start + chunk.len());
            } else {
                let parts = chunk_by_max_tokens(sizes, &[], max);
                chunks.extend(parts.into_iter().map(|part| start + part.start..start + part.end));
            }
        }
        chunks
    }

    /// Returns the text of a range.
    pub(crate) fn text(&self, range: Range<usize>) -> String {
        let texts = self.texts.get(range).unwrap_or_default();
        texts
            .iter()
            .filter(|text| !text.is_empty())
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("\n\n")
    }
}

/// Returns the text's tokens including the blank line after it.
fn size_of(text: &str, gauge: &Gauge) -> Tokens {
    if text.is_empty() { Tokens::ZERO } else { gauge.text(text) + Tokens(1) }
}

/// Truncates the text in its middle to at most `max` tokens. A cut may start a new line in the
/// middle of an old one, which must not create a role marker.
pub(crate) fn truncated(text: &str, max: Tokens, gauge: &Gauge) -> String {
    // Budget for the `\` that escapes a marker.
    let cut = gauge.without_middle(text, MIDDLE_OMITTED_NOTICE, max - Tokens(2));
    let notice = format!("\n{MIDDLE_OMITTED_NOTICE}\n");
    let mut pieces = cut.split(&notice);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    // The text may contain the notice too; a line after that is either escaped already or a genuine
    // marker, which is harmless when escaped.
    for piece in pieces {
        let (line, rest) = piece.split_at(piece.find('\n').unwrap_or(piece.len()));
        out.push_str(&notice);
        out.push_str(without_markers(line).as_deref().unwrap_or(line));
        out.push_str(rest);
    }
    out
}

/// Removes from an id everything that could end its brackets or its line.
fn plain_id(message: &CitedMessage) -> Cow<'_, CitedMessage> {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace() && !"[]<>".contains(c);
    if message.id.chars().all(is_plain) {
        return Cow::Borrowed(message);
    }
    let id = message.id.chars().filter(|&c| is_plain(c)).collect::<String>().into();
    Cow::Owned(CitedMessage { id, ..message.clone() })
}

#[cfg(test)]
mod tests {
    use ctx_core::Counter;

    use super::*;

    #[test]
    fn a_cut_makes_no_marker_and_what_is_left_fits() {
        let text = format!("so {}", "[User]: x".repeat(2_000));
        let quoting = format!("{text}\n{MIDDLE_OMITTED_NOTICE}\n\\[User]: y{text}");
        let mut armed = 0;
        for &kind in ctx_core::CounterKind::ALL {
            let gauge = Gauge::for_models(Counter::new(kind));
            for text in [&text, &quoting] {
                for max in (40..400).map(Tokens) {
                    let cut = truncated(text, max, &gauge);
                    assert!(gauge.text(&cut) <= max, "{kind} {max}");
                    assert!(cut.lines().all(|line| !line.starts_with("[User]:")), "{cut}");
                    armed += cut.lines().filter(|line| line.starts_with("\\[User]:")).count();
                }
            }
        }
        assert!(armed > 20, "{armed}: a cut falls before a marker now and then");
    }
}
