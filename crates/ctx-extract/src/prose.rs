//! The prose of a message, without pasted, fenced or injected text.

use std::sync::LazyLock;

use ctx_text::{BlockKind, Bullet, bullet, read, sentences};
use regex::Regex;

use crate::Field;
use crate::structured::{Place, heading_place};

/// The name of an option in a line, a table or a heading: `**Option 2: x**`, `| B | x |`, `(C) x`.
static OPTION: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^[|*(#\s]*(?:[Oo]ption |方案|选项)?(?:[A-F]|\d{1,2})\s*[.):：|*]";
    Regex::new(pattern).expect("a test uses the pattern")
});

/// A line of prose, without its list marker or Markdown heading.
#[derive(Clone, Debug)]
pub(super) struct Passage<'a> {
    pub(super) text: &'a str,
    /// Whether it is a list item.
    pub(super) is_item: bool,
    /// The number of a numbered item.
    pub(super) number: Option<&'a str>,
    /// The field of its check box, or of the heading above it.
    pub(super) under: Option<Field>,
    /// The line that introduces the list, `Changes needed:`; for a list right below a heading, the
    /// heading.
    pub(super) lead: Option<&'a str>,
}

impl Passage<'_> {
    /// Whether it is an item of a list, also of one with names: "**Option A**: x", "B. y".
    pub(super) fn is_listed(&self) -> bool {
        self.is_item || OPTION.is_match(self.text)
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
            if words.is_empty() {
                continue;
            }
            if let Some((Bullet { number, checked }, _)) = item {
                let state = checked.map(|is| if is { Field::Done } else { Field::NextSteps });
                let under = state.or(led).or(under);
                out.push(Passage { text: words, is_item: true, number, under, lead });
                continue;
            }
            (lead, led) = (None, None);
            if words.ends_with([':', '：']) {
                // `Next steps:` is a heading as well.
                led = field_of(words);
                lead = Some(words).filter(|_| led.is_none());
            } else {
                out.push(Passage { text: words, is_item: false, number: None, under, lead: None });
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
