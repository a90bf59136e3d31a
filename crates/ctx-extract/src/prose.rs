//! The prose of a message, without pasted, fenced or injected text.

use ctx_text::{WordList, sentences};

use super::agreement::name_of;
use crate::Field;
use crate::structured::{Place, heading_place};
use ctx_text::output::Pasted;

/// The form of a passage in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A line of prose.
    Plain,
    /// A list item.
    Item,
    /// A list item with a check box.
    Box { checked: bool },
}

/// A line of prose, without its list marker or Markdown heading.
#[derive(Clone, Debug)]
pub(super) struct Passage<'a> {
    pub(super) text: &'a str,
    pub(super) mark: Mark,
    /// The number of a numbered item.
    pub(super) number: Option<&'a str>,
    /// The field of the heading above it.
    pub(super) under: Option<Field>,
    /// The line that introduces the list, `Changes needed:`; for a list right below a heading, the
    /// heading.
    pub(super) lead: Option<&'a str>,
}

impl Passage<'_> {
    /// Whether it is an item of a list, also of one with names: "**Option A**: x", "B. y".
    pub(super) fn is_listed(&self) -> bool {
        self.mark != Mark::Plain || name_of(self.text).is_some()
    }

    /// Returns the last sentence of the lead.
    pub(super) fn last_of_lead(&self) -> &str {
        self.lead.and_then(|lead| sentences(lead).pop()).unwrap_or_default()
    }
}

/// Whether a text has content of its speaker, unlike an error of the agent.
pub(super) fn says_something(text: &str) -> bool {
    !text.is_empty() && !["No response requested", "API Error"].iter().any(|e| text.starts_with(e))
}

/// Returns the passages of a text in order.
pub(super) fn passages(text: &str) -> Vec<Passage<'_>> {
    let mut out: Vec<Passage<'_>> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut under = None;
    let (mut lead, mut led) = (None, None);
    let mut pasted = Pasted::default();
    for line in text.lines() {
        let bare = line.trim();
        let is_pasted = pasted.holds(line);
        if let Some(mark) = fence {
            if bare.starts_with(mark) {
                fence = None;
            }
            continue;
        }
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark)) {
            fence = Some(mark);
            continue;
        }
        if bare.is_empty() {
            continue;
        }
        if let Some(heading) = heading(bare) {
            (under, led) = (field_of(heading), None);
            lead = Some(heading.trim()).filter(|_| under.is_none());
            continue;
        }
        let (words, mark) = without_marker(bare);
        if is_pasted || is_output(line, words) {
            continue;
        }
        let is_item = mark != Mark::Plain;
        let leads = !is_item && words.ends_with([':', '：']);
        if leads {
            // `Next steps:` is a heading as well.
            led = field_of(words);
            lead = Some(words).filter(|_| led.is_none());
        } else if !is_item {
            (lead, led) = (None, None);
        }
        let under = if is_item { led.or(under) } else { under };
        if !leads {
            let lead = lead.filter(|_| is_item);
            let digits = bare.trim_start_matches(|c: char| c.is_ascii_digit());
            let number = bare.strip_suffix(digits).filter(|number| is_item && !number.is_empty());
            out.push(Passage { text: words, mark, number, under, lead });
        }
    }
    out
}

/// Returns the words of a heading: `## x`, or a line that is all bold.
fn heading(line: &str) -> Option<&str> {
    let hashes = line.trim_start_matches('#');
    if hashes.len() < line.len() && hashes.starts_with(' ') {
        return Some(hashes);
    }
    let bold = line.strip_prefix("**")?.trim_end_matches([':', '：']);
    let inner = bold.strip_suffix("**")?.trim_end_matches([':', '：']);
    (!inner.contains("**") && inner.len() < 80).then_some(inner)
}

pub(super) fn field_of(heading: &str) -> Option<Field> {
    match heading_place(heading) {
        Some(Place::Field(field)) => Some(field),
        _ => None,
    }
}

/// Returns the words of a line without its list marker and check box.
pub(super) fn without_marker(line: &str) -> (&str, Mark) {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (1..4).contains(&(line.len() - digits.len()));
    let numbered = numbered.then(|| digits.strip_prefix(['.', ')', '、'])).flatten();
    let numbered = numbered.filter(|rest| rest.starts_with(' ') || digits.starts_with('、'));
    let bulleted = line.strip_prefix(['-', '*', '+', '•']).filter(|rest| rest.starts_with(' '));
    let item = numbered.or(bulleted);
    let words = item.unwrap_or(line).trim_start();
    let checked = ["[x]", "[X]", "✅", "✓", "☑"].map(|sign| (sign, true));
    let open = ["[ ]", "[-]", "⬜", "☐"].map(|sign| (sign, false));
    for (sign, checked) in checked.into_iter().chain(open) {
        if let Some(rest) = words.strip_prefix(sign) {
            return (rest.trim_start_matches(['\u{fe0f}', ' ']), Mark::Box { checked });
        }
    }
    if item.is_some() { (words, Mark::Item) } else { (line, Mark::Plain) }
}

/// Whether a line is program output or code, not speech.
fn is_output(line: &str, words: &str) -> bool {
    static STARTS: WordList = WordList::new("output.starts");
    // `at` is also a word; stack frames contain parentheses or colons.
    let start = STARTS.iter().any(|start| {
        words.starts_with(start) && (*start != "at " || words.contains('(') || words.contains(':'))
    });
    // `path: '/a',`
    let field = words.split_once(": ").is_some_and(|(key, value)| {
        key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '"')
            && (value.ends_with(',') || value.starts_with(['\'', '"']))
    });
    let code_end = words.ends_with(['{', '}', ';']) || words.ends_with("=>");
    let indented = line.starts_with("        ") || line.starts_with("\t\t");
    start || field || code_end || (indented && words.len() == line.trim().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_know_their_list_and_heading() {
        let text = "All done.\n\n## Next Steps\n- [ ] write docs\n1. tag it\n\n```\ncode\n```\n\
                    Changes needed:\n- remove `flush`\n    at foo (a.js:1)\n{\"a\":1}";
        let found: Vec<_> = passages(text)
            .into_iter()
            .map(|p| (p.text.to_owned(), p.mark, p.under, p.lead))
            .collect();
        let next = Some(Field::NextSteps);
        assert_eq!(
            found,
            [
                ("All done.".to_owned(), Mark::Plain, None, None),
                ("write docs".to_owned(), Mark::Box { checked: false }, next, None),
                ("tag it".to_owned(), Mark::Item, next, None),
                ("remove `flush`".to_owned(), Mark::Item, next, Some("Changes needed:")),
            ]
        );
    }
}
