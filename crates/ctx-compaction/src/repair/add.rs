//! Adds missing facts to a summary.

use ctx_core::{Counter, Tokens};
use indexmap::{IndexMap, IndexSet};

use super::RepairOptions;
use super::outline::Outline;
use ctx_extract::Field;
use ctx_facts::{FactKind, RequiredFact};

/// The maximum number of tokens that share a line.
const PER_LINE: usize = 16;
/// The heading for facts that belong to no other section.
const FALLBACK: &str = "## Critical Context";

/// Returns the cost of a fact on its own line: its words and its citation.
fn cost(fact: &RequiredFact, counter: &Counter) -> Tokens {
    counter.text(&format!("- {}{} [e:{}]\n", label(fact.kind), fact.text, fact.entry))
}

/// Adds as many of the facts as fit, in order. A fact that is too large for the remaining budget is
/// skipped for smaller ones.
pub(super) fn add(text: &str, missing: &[&RequiredFact], how: &RepairOptions<'_>) -> String {
    let costs: Vec<Tokens> = missing.iter().map(|fact| cost(fact, how.counter)).collect();
    // A fact without a letter or digit could never be found again.
    let says = |at: usize| missing[at].text.contains(char::is_alphanumeric);
    let mut chosen: IndexSet<usize> = IndexSet::new();
    let mut best = text.to_owned();
    // Facts that share a line cost less than estimated, so the remaining budget is filled again.
    for _ in 0..12 {
        let mut room = how.budget - how.size(&best);
        let mut added: Vec<usize> = Vec::new();
        for (at, &cost) in costs.iter().enumerate() {
            if !chosen.contains(&at) && cost <= room && says(at) {
                room -= cost;
                added.push(at);
            }
        }
        while !added.is_empty() {
            let facts: Vec<_> = chosen.iter().chain(&added).map(|&at| missing[at]).collect();
            let longer = compose(text, &facts);
            if how.fits(&longer) {
                best = longer;
                break;
            }
            // The costs do not include a new heading, if there is one.
            added.truncate(added.len() - added.len().div_ceil(8));
        }
        if added.is_empty() {
            break;
        }
        chosen.extend(added);
    }
    best
}

/// Returns the text with these facts, each in its section.
fn compose(text: &str, facts: &[&RequiredFact]) -> String {
    let outline = Outline::of(text);
    let mut inserts: Vec<(usize, String)> = Vec::new();
    let mut elsewhere = String::new();
    for kind in FactKind::ALL {
        let own: Vec<&RequiredFact> =
            facts.iter().filter(|fact| fact.kind == kind).copied().collect();
        if own.is_empty() {
            continue;
        }
        match outline.end_of(field(kind)) {
            Some(line) => {
                let labelled = field(kind) == Field::CriticalContext;
                inserts.push((line + 1, lines(kind, &own, labelled)));
            }
            None => elsewhere.push_str(&lines(kind, &own, true)),
        }
    }
    if !elsewhere.is_empty() {
        inserts.push(critical_context(&outline, elsewhere));
    }
    with_lines(&outline, inserts)
}

/// Returns the place of lines under `## Critical Context`, with that heading if there is none.
pub(super) fn critical_context(outline: &Outline<'_>, lines: String) -> (usize, String) {
    match outline.end_of(Field::CriticalContext) {
        Some(line) => (line + 1, lines),
        None => (outline.end_of_sections(), format!("{FALLBACK}\n{lines}")),
    }
}

/// Returns the text with these lines, each before the line with its number.
pub(super) fn with_lines(outline: &Outline<'_>, mut inserts: Vec<(usize, String)>) -> String {
    let text = outline.text;
    inserts.sort_by_key(|(line, _)| *line);
    let mut out = String::with_capacity(text.len() + 1_024);
    let mut inserts = inserts.into_iter().peekable();
    for at in 0..=outline.lines.len() {
        while let Some((_, words)) = inserts.next_if(|(line, _)| *line == at) {
            let is_section = words.starts_with(FALLBACK);
            let gap = if is_section { "\n\n" } else { "\n" };
            while !out.is_empty() && !out.ends_with(gap) {
                out.push('\n');
            }
            out.push_str(&words);
            if is_section && at < outline.lines.len() {
                out.push('\n');
            }
        }
        if let Some(line) = outline.lines.get(at) {
            out.push_str(outline.words(line));
        }
    }
    if !text.ends_with('\n') && out.ends_with('\n') {
        out.pop();
    }
    out
}

fn field(kind: FactKind) -> Field {
    match kind {
        FactKind::Ask | FactKind::Request => Field::Goal,
        FactKind::Pinned | FactKind::Constraint => Field::Constraints,
        FactKind::Decision => Field::Decisions,
        _ => Field::CriticalContext,
    }
}

/// Returns the label of a fact outside of its own section.
fn label(kind: FactKind) -> &'static str {
    match kind {
        FactKind::Pinned => "Pinned: ",
        FactKind::Ask => "Open ask: ",
        FactKind::Constraint => "Constraint: ",
        FactKind::Decision => "Decision: ",
        FactKind::Question => "Open question: ",
        FactKind::Failure => "Failed: ",
        FactKind::Personal => "Personal: ",
        FactKind::Statement => "User: ",
        FactKind::Request => "Earlier: ",
        FactKind::ErrorCode => "Errors: ",
        FactKind::Path => "Paths: ",
        FactKind::Url => "URLs: ",
        FactKind::Id => "IDs: ",
        FactKind::Number => "Numbers: ",
        FactKind::CodeName => "Names: ",
    }
}

/// Formats the lines of facts of one kind. Each passage has its own line; tokens share lines, and
/// those of one entry share its citation.
fn lines(kind: FactKind, facts: &[&RequiredFact], labelled: bool) -> String {
    let mut out = String::new();
    if kind.is_passage() {
        let label = if labelled { label(kind) } else { "" };
        for fact in facts {
            out.push_str(&format!("- {label}{} [e:{}]\n", fact.text, fact.entry));
        }
        return out;
    }
    // In the order of their entries' first mention, so that equal citations are adjacent.
    let mut groups: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for fact in facts {
        groups.entry(&*fact.entry).or_default().push(&fact.text);
    }
    let mut in_line = 0;
    for (entry, texts) in groups {
        for (at, text) in texts.iter().enumerate() {
            if in_line == 0 {
                out.push_str("- ");
                out.push_str(label(kind));
            } else {
                out.push_str(", ");
            }
            in_line += 1;
            let quote = if kind == FactKind::CodeName { "`" } else { "" };
            out.push_str(&format!("{quote}{text}{quote}"));
            let full = in_line == PER_LINE;
            if full || at + 1 == texts.len() {
                out.push_str(&format!(" [e:{entry}]"));
            }
            if full {
                out.push('\n');
                in_line = 0;
            }
        }
    }
    if in_line > 0 {
        out.push('\n');
    }
    out
}
