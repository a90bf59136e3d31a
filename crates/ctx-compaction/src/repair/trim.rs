//! Removes lines from a summary, the least important first.

use std::collections::HashSet;

use ctx_core::{Counter, Tokens};

use super::RepairOptions;
use super::add::{added_passage, compose as compose_with, is_packed};
use super::outline::{Outline, OutlineLine, Part};
use crate::audit::Sheet;
use ctx_extract::Field;
use ctx_facts::{RequiredFact, names_base_folder};

/// Narrative is removed for facts only above this share of the budget: a summary must stay
/// readable.
const STORY: f64 = 0.4;

/// A unit of removal: a line, or all lines of a fence.
struct Unit {
    lines: Vec<usize>,
    /// Its value: below 0.1 without a fact, up to 1 for the most important fact.
    worth: f64,
    tokens: Tokens,
    /// The tokens of its facts when packed into a line with others.
    packed: Tokens,
    /// Whether it is narrative: it contains no required passage, and is not a line of packed facts.
    is_story: bool,
}

/// Trims the text to `target`: removes units, lowest value first, then headings of empty sections.
/// Only whole lines are removed; if not even one fits, the result is empty. The line that names the
/// folder of all paths stays.
pub(super) fn to(text: &str, facts: &[RequiredFact], target: Tokens, counter: &Counter) -> String {
    let outline = Outline::of(text);
    let mut units = units(&outline, facts, counter);
    units.sort_by(|a, b| a.worth.total_cmp(&b.worth).then(a.lines.cmp(&b.lines)));
    let total: Tokens = units.iter().map(|unit| unit.tokens).sum();
    let mut left = total;
    let mut gone = vec![false; outline.lines.len()];
    let mut text = compose(&outline, &gone);
    let mut next = units.iter();
    // The sum over the lines is close to the whole; the whole is counted when it may fit.
    while counter.text(&text) > target {
        let over = counter.text(&text) - target;
        let until = left - over;
        let before = left;
        for unit in next.by_ref() {
            unit.lines.iter().for_each(|&line| gone[line] = true);
            left -= unit.tokens;
            if left <= until {
                break;
            }
        }
        if left == before {
            return String::new();
        }
        text = compose(&outline, &gone);
    }
    text
}

/// Removes narrative for missing facts that do not fit: first lines without a fact, then those of
/// lowest value for their length, whose facts are then added in fewer words.
pub(super) fn make_room(
    text: &str,
    facts: &[RequiredFact],
    missing: &[&RequiredFact],
    how: &RepairOptions<'_>,
) -> Option<String> {
    let wanted = how.size(&compose_with(text, missing));
    if wanted <= how.budget {
        return None;
    }
    let outline = Outline::of(text);
    let mut story: Vec<Unit> = units(&outline, facts, how.counter);
    story.retain(|unit| unit.is_story && unit.packed < unit.tokens);
    let mut told: Tokens = story.iter().map(|unit| unit.tokens).sum();
    let least = how.budget.scale(STORY);
    let mut short = wanted - how.budget;
    let density = |unit: &Unit| match unit.packed {
        Tokens::ZERO => unit.worth - 1.0,
        packed => f64::from(packed.0) / f64::from(unit.tokens.0.max(1)),
    };
    story.sort_by(|a, b| density(a).total_cmp(&density(b)).then(a.lines.cmp(&b.lines)));
    let mut gone = vec![false; outline.lines.len()];
    for unit in story {
        if short == Tokens::ZERO || told - unit.tokens < least {
            break;
        }
        unit.lines.iter().for_each(|&line| gone[line] = true);
        short -= unit.tokens - unit.packed;
        told -= unit.tokens;
    }
    gone.contains(&true).then(|| compose(&outline, &gone))
}

fn units(outline: &Outline<'_>, facts: &[RequiredFact], counter: &Counter) -> Vec<Unit> {
    let none = (0.0f64, Tokens::ZERO, false);
    let mut held = vec![none; outline.lines.len()];
    let all = facts.len().max(1) as f64;
    let sheet = Sheet::of(outline.text);
    for (rank, fact) in facts.iter().enumerate() {
        let line = sheet.find(fact).and_then(|found| held.get_mut(found.line));
        if let Some((worth, packed, passage)) = line {
            *worth = worth.max(0.1 + 0.9 * (1.0 - rank as f64 / all));
            *packed += counter.text(&fact.text) + Tokens(3);
            *passage |= fact.kind.is_passage();
        }
    }
    // A passage may be kept by another line as well; its own line is still not narrative.
    let passages = facts.iter().filter(|fact| fact.kind.is_passage());
    let passages: HashSet<&str> = passages.map(|fact| fact.text.as_str()).collect();
    let mut units: Vec<Unit> = Vec::new();
    let mut fence = None;
    for (at, (line, (worth, packed, passage))) in outline.lines.iter().zip(held).enumerate() {
        let words = outline.words(line);
        let tokens = counter.text(words);
        let added = added_passage(words).is_some_and(|words| passages.contains(words));
        let is_story = !passage && !added && !is_packed(words) && !line.in_files;
        let goes_on = line.fence.is_some() && line.fence == fence;
        fence = line.fence;
        if goes_on && let Some(unit) = units.last_mut() {
            unit.lines.push(at);
            unit.tokens += tokens;
            unit.packed += packed;
            unit.worth = unit.worth.max(worth);
            unit.is_story &= is_story;
        } else if (line.part == Part::Words || line.fence.is_some()) && !names_base_folder(words) {
            // A line without a fact has the value of its section.
            let worth = if worth > 0.0 { worth } else { section_worth(line) };
            units.push(Unit { lines: vec![at], worth, tokens, packed, is_story });
        }
    }
    units
}

/// Returns the value of a line without a fact, below that of any line with one.
fn section_worth(line: &OutlineLine) -> f64 {
    if line.in_turn {
        return 0.09;
    }
    match line.field {
        Some(Field::Goal) => 0.08,
        Some(Field::NextSteps | Field::Blocked) => 0.07,
        Some(Field::Constraints | Field::Decisions) => 0.06,
        Some(Field::InProgress) => 0.05,
        Some(Field::CriticalContext) => 0.03,
        Some(Field::Done) => 0.02,
        None => 0.04,
    }
}

/// Joins the remaining lines, without headings and blocks that have become empty.
fn compose(outline: &Outline<'_>, gone: &[bool]) -> String {
    if !gone.contains(&true) {
        return outline.text.to_owned();
    }
    let kept = without_empty(outline, gone);
    let mut out = String::with_capacity(outline.text.len());
    let mut blank = true;
    for (line, kept) in outline.lines.iter().zip(kept) {
        if !kept || (blank && line.part == Part::Blank) {
            continue;
        }
        blank = line.part == Part::Blank;
        out.push_str(outline.words(line));
    }
    out.truncate(out.trim_end().len());
    out
}

/// Returns which lines stay: those not removed, and headings and markers with remaining content.
fn without_empty(outline: &Outline<'_>, gone: &[bool]) -> Vec<bool> {
    let mut kept: Vec<bool> = gone.iter().map(|gone| !gone).collect();
    // From the end: whether content remains below a heading, in a file list, and anywhere after.
    let (mut below, mut listed, mut behind) = (false, false, false);
    let mut close = None;
    for (at, line) in outline.lines.iter().enumerate().rev() {
        let words = outline.words(line).trim();
        let stays = match line.part {
            Part::Words => {
                let stays = kept.get(at).copied().unwrap_or_default();
                below |= stays;
                listed |= stays && line.in_files;
                behind |= stays && !line.in_files;
                continue;
            }
            Part::Blank => continue,
            Part::Heading => {
                let stays = below;
                // A heading of a higher level covers those below it.
                below &= words.starts_with("###");
                stays
            }
            Part::Mark if line.fence.is_some() => continue,
            Part::Mark if words.starts_with("</") => {
                (close, listed) = (Some(at), false);
                continue;
            }
            Part::Mark if line.in_files => {
                if let Some(kept) = close.take().and_then(|close| kept.get_mut(close)) {
                    *kept = listed;
                }
                std::mem::take(&mut listed)
            }
            Part::Mark => behind,
        };
        if let Some(kept) = kept.get_mut(at) {
            *kept = stays;
        }
    }
    kept
}
