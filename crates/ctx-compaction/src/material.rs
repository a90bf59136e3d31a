//! The messages of a job as they are shown to one model.

use std::borrow::Cow;
use std::ops::Range;
use std::slice;

use ctx_core::{MIDDLE_OMITTED_NOTICE, Tokens};

use crate::gauge::Gauge;
use crate::prompts::without_markers;
use crate::serialize::serialize_disarmed;
use crate::{
    Job, SAFETY_MARGIN, Said, SerializeOptions, chunk_by_max_tokens, is_oversized_for_summary,
    oversized_note,
};

/// What is sent of each message.
pub(crate) struct Material {
    texts: Vec<String>,
    sizes: Vec<Tokens>,
    groups: Vec<u32>,
    /// Whether each message is sent: not one that is too large, nor one that says nothing.
    sent: Vec<bool>,
    /// What stands for messages that are too large.
    pub(crate) omitted: Vec<String>,
}

impl Material {
    /// What a model with a window of that size is shown.
    pub(crate) fn of(job: &Job, window: Tokens, gauge: &Gauge) -> Self {
        let options = SerializeOptions {
            thinking: job.config.serialize_thinking,
            citations: true,
            // More could not be sent in any case; it bounds the work on a giant.
            text_chars: Some(gauge.most_chars(window)),
            ..SerializeOptions::default()
        };
        let len = job.said.len();
        let mut material = Self {
            texts: Vec::with_capacity(len),
            sizes: Vec::with_capacity(len),
            groups: if job.groups.len() == len { job.groups.clone() } else { Vec::new() },
            sent: Vec::with_capacity(len),
            omitted: Vec::new(),
        };
        for (at, said) in job.said.iter().enumerate() {
            let size = job.sizes.get(at).copied().unwrap_or_default();
            let size = size.max(gauge.message(&said.message));
            let text = if is_oversized_for_summary(size, window) {
                let note = oversized_note(&said.message.role, size);
                material.omitted.push(note.clone());
                material.sent.push(false);
                note
            } else {
                let text = serialize_disarmed(slice::from_ref(&*plain_id(said)), &options);
                material.sent.push(!text.is_empty());
                text
            };
            material.sizes.push(size_of(&text, gauge));
            material.texts.push(text);
        }
        material
    }

    pub(crate) fn sizes(&self) -> &[Tokens] {
        &self.sizes
    }

    /// Tokens of all messages.
    pub(crate) fn all(&self) -> Tokens {
        self.sizes.iter().copied().sum()
    }

    pub(crate) fn groups(&self, range: Range<usize>) -> &[u32] {
        self.groups.get(range).unwrap_or_default()
    }

    /// Whether there is anything to summarise in a range.
    pub(crate) fn says_something(&self, range: Range<usize>) -> bool {
        self.sent.get(range).unwrap_or_default().contains(&true)
    }

    /// Bounds each message, so that none is larger than `max` with its margin.
    pub(crate) fn bound(&mut self, max: Tokens, gauge: &Gauge) {
        let max = max.scale(1.0 / SAFETY_MARGIN);
        for (text, size) in self.texts.iter_mut().zip(&mut self.sizes) {
            if *size > max {
                *text = shortened(text, max - Tokens(1), gauge);
                *size = size_of(text, gauge);
            }
        }
    }

    /// Chunks of `range` of at most `max` tokens each, margin included. A call stays with its
    /// results unless they alone are more.
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

    /// The text of a range.
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

/// The text's tokens with the blank line behind it.
fn size_of(text: &str, gauge: &Gauge) -> Tokens {
    if text.is_empty() { Tokens::ZERO } else { gauge.text(text) + Tokens(1) }
}

/// The text without its middle, in at most `max` tokens. A line of it may begin in the middle of
/// another, which must make no marker of what was none.
pub(crate) fn shortened(text: &str, max: Tokens, gauge: &Gauge) -> String {
    // Room for the `\` that keeps a marker from being one.
    let cut = gauge.without_middle(text, MIDDLE_OMITTED_NOTICE, max - Tokens(2));
    let notice = format!("\n{MIDDLE_OMITTED_NOTICE}\n");
    let mut pieces = cut.split(&notice);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    // The text may hold the notice as well; a line behind it is disarmed already, or a marker of
    // ours, which does no harm without its force.
    for piece in pieces {
        let (line, rest) = piece.split_at(piece.find('\n').unwrap_or(piece.len()));
        out.push_str(&notice);
        out.push_str(without_markers(line).as_deref().unwrap_or(line));
        out.push_str(rest);
    }
    out
}

/// An id with nothing in it that could end its brackets or its line.
fn plain_id(said: &Said) -> Cow<'_, Said> {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace() && !"[]<>".contains(c);
    if said.id.chars().all(is_plain) {
        return Cow::Borrowed(said);
    }
    let id = said.id.chars().filter(|&c| is_plain(c)).collect::<String>().into();
    Cow::Owned(Said { id, ..said.clone() })
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
                    let cut = shortened(text, max, &gauge);
                    assert!(gauge.text(&cut) <= max, "{kind} {max}");
                    assert!(cut.lines().all(|line| !line.starts_with("[User]:")), "{cut}");
                    armed += cut.lines().filter(|line| line.starts_with("\\[User]:")).count();
                }
            }
        }
        assert!(armed > 20, "{armed}: a cut falls before a marker now and then");
    }
}
