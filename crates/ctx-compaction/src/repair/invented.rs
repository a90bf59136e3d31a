//! Removes or marks unsupported claims in a summary.

use ctx_core::text::Slice;
use std::ops::Range;

use crate::{SourceIndex, UnsupportedClaim};
use ctx_facts::{citations, without_citations};
use ctx_text::sentences;

/// The mark after an unsupported claim.
const MARK: &str = " [unverified]";

/// Removes the smallest parts that contain unsupported claims, or the whole lines.
pub(super) fn remove(
    summary: &str,
    invented: &[UnsupportedClaim],
    grounds: &SourceIndex,
    whole_lines: bool,
) -> String {
    let cuts = invented.iter().map(|one| {
        let line = line_at(summary, one.range.start);
        if whole_lines {
            (line, String::new())
        } else if one.text.starts_with("[e:") {
            citation(one, summary, grounds)
        } else {
            (smallest(summary, &line, &one.range), String::new())
        }
    });
    without(summary, cuts.collect())
}

/// Returns a citation without the entries that do not exist.
fn citation(one: &UnsupportedClaim, text: &str, grounds: &SourceIndex) -> (Range<usize>, String) {
    let cited = citations(&one.text);
    let known: Vec<_> =
        cited.iter().flat_map(|c| &c.ids).filter(|id| grounds.has_entry(id)).collect();
    if known.is_empty() {
        let blank = text.get(..one.range.start).is_some_and(|before| before.ends_with(' '));
        return (one.range.start - usize::from(blank)..one.range.end, String::new());
    }
    let known: Vec<String> = known.into_iter().map(|id| format!("[e:{id}]")).collect();
    (one.range.clone(), known.join(" "))
}

fn line_at(text: &str, at: usize) -> Range<usize> {
    let before = text.slice(..at);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let rest = text.slice(at..);
    let end = rest.find('\n').map_or(text.len(), |len| at + len + 1);
    start..end
}

/// Returns the sentence or the line that contains `range`; in a heading, only the range itself.
fn smallest(text: &str, line: &Range<usize>, range: &Range<usize>) -> Range<usize> {
    let words = text.get(line.clone()).unwrap_or_default();
    if words.trim_start().starts_with('#') {
        return range.clone();
    }
    let own: Vec<Range<usize>> = sentences(words)
        .into_iter()
        .map(|sentence| {
            let start = line.start + (sentence.as_ptr() as usize - words.as_ptr() as usize);
            start..start + sentence.len()
        })
        .collect();
    let says = |range: &Range<usize>| {
        let sentence = text.get(range.clone()).unwrap_or_default();
        without_citations(sentence).contains(char::is_alphanumeric)
    };
    let place = own.iter().position(|s| s.start <= range.start && range.start < s.end);
    let others = own.iter().enumerate().any(|(at, s)| Some(at) != place && says(s));
    let (Some(place), true) = (place, others) else { return line.clone() };
    // Its own citations are removed with it.
    let next = own.slice(place + 1..).iter().find(|s| says(s));
    let end = next.map_or(line.end - words.len() + words.trim_end().len(), |next| next.start);
    let start = own.get(place).map_or(line.start, |s| s.start);
    start..end.max(range.end)
}

fn without(text: &str, mut cuts: Vec<(Range<usize>, String)>) -> String {
    cuts.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (range, instead) in cuts {
        if range.start < at {
            at = at.max(range.end);
            continue;
        }
        out.push_str(text.slice(at..range.start));
        out.push_str(&instead);
        at = range.end;
    }
    out.push_str(text.slice(at..));
    out
}

/// Marks every unsupported claim that is not marked already.
pub(super) fn mark(summary: &str, invented: &[UnsupportedClaim]) -> String {
    let mut out = String::with_capacity(summary.len() + invented.len() * MARK.len());
    let mut at = 0;
    for one in invented {
        let mut end = one.range.end;
        // After the quotation mark, if the claim is quoted.
        let before = summary.get(..one.range.start).and_then(|before| before.chars().next_back());
        let after = summary.get(end..).and_then(|after| after.chars().next());
        if before == after && matches!(after, Some('`' | '"' | '\'')) {
            end += 1;
        }
        if end <= at && at > 0 {
            continue;
        }
        let rest = summary.slice(end..);
        out.push_str(summary.slice(at..end));
        at = end;
        if !rest.starts_with(MARK) {
            out.push_str(MARK);
        }
    }
    out.push_str(summary.slice(at..));
    out
}

#[cfg(test)]
mod tests {
    use ctx_core::{Message, Role};

    use super::*;
    use crate::audit;
    use ctx_facts::CitedMessage;

    fn grounds() -> SourceIndex {
        let message =
            Message::text(Role::User, "src/a.rs and src/b.rs take 500ms, exit code 1").into();
        SourceIndex::of(&[CitedMessage { id: "1".into(), message, pinned: false }], None, &[])
    }

    #[test]
    fn the_smallest_part_that_holds_it_goes() {
        for (text, expected) in [
            ("- edit src/a.rs [e:1]\n- edit src/z.rs [e:1]\n", "- edit src/a.rs [e:1]\n"),
            ("Edit src/a.rs. Then edit src/z.rs too. Done.", "Edit src/a.rs. Done."),
            ("Edit src/a.rs. It took 900 ms. [e:1]\n", "Edit src/a.rs. \n"),
            ("## Work on src/z.rs\n- a", "## Work on \n- a"),
            ("- fine [e:1] [e:9]", "- fine [e:1]"),
            ("- fine [e:1, e:9]", "- fine [e:1]"),
            ("- 3 files changed", "- 3 files changed"),
        ] {
            let found = audit(text, &[], &grounds()).ungrounded;
            assert_eq!(remove(text, &found, &grounds(), false), expected, "{text}");
        }
    }

    #[test]
    fn what_is_made_up_can_be_marked_instead() {
        let text = "Edit `src/z.rs` in 900 ms.";
        let mark = |text| mark(text, &audit(text, &[], &grounds()).ungrounded);
        let marked = mark(text);
        assert_eq!(marked, "Edit `src/z.rs` [unverified] in 900 ms [unverified].");
        assert_eq!(mark(&marked), marked);
    }
}
