//! The prose of a message, without pasted, fenced or injected text.

use std::sync::LazyLock;

use ctx_text::{BlockKind, Bullet, WordList, bullet, read, sentences};
use regex::Regex;

use crate::Field;
use crate::structured::{Place, heading_place};

/// The name of an option in a line, a table or a heading: `**Option 2: x**`, `| B | x |`, `(C) x`.
static OPTION: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^[|*(#\s]*(?:[Oo]ption |方案|选项)?(?:[A-F]|\d{1,2})\s*[.):：|*]";
    Regex::new(pattern).expect("a test uses the pattern")
});

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
        self.mark != Mark::Plain || OPTION.is_match(self.text)
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
    let mut under = None;
    let (mut lead, mut led) = (None, None);
    for block in read(text).blocks.iter().filter(|block| block.is_prose()) {
        if block.kind == BlockKind::Heading {
            let words = block.text.trim().trim_matches(['#', '*', ':', '：', ' ']);
            (under, led) = (field_of(words), None);
            lead = Some(words).filter(|_| under.is_none());
            continue;
        }
        for line in block.text.lines() {
            let item = bullet(line.trim());
            let words = item.map_or(line.trim(), |(_, words)| words);
            if words.is_empty() || is_output(line, words) {
                continue;
            }
            if let Some((Bullet { number, checked }, _)) = item {
                let mark = checked.map_or(Mark::Item, |checked| Mark::Box { checked });
                out.push(Passage { text: words, mark, number, under: led.or(under), lead });
                continue;
            }
            (lead, led) = (None, None);
            if words.ends_with([':', '：']) {
                // `Next steps:` is a heading as well.
                led = field_of(words);
                lead = Some(words).filter(|_| led.is_none());
            } else {
                let mark = Mark::Plain;
                out.push(Passage { text: words, mark, number: None, under, lead: None });
            }
        }
    }
    out
}

pub(super) fn field_of(heading: &str) -> Option<Field> {
    match heading_place(heading) {
        Some(Place::Field(field)) => Some(field),
        _ => None,
    }
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
