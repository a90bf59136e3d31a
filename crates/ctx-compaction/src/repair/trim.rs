//! Takes lines out of a summary, the least important first.

use ctx_core::{Counter, Tokens};

use super::add::cost;
use super::outline::{Line, Outline, Part};
use super::{Repair, lines_of};
use crate::Fact;
use crate::structured::Field;

/// Lines that hold no fact give way to demands, decisions and questions only while they take more
/// than this share of the budget: a summary is to be read, too.
const STORY: f64 = 0.4;

/// What can go on its own: a line, or all lines of a fence.
struct Unit {
    lines: Vec<usize>,
    /// What it is worth: 0 for a unit without a fact, up to 1 for the most important fact.
    worth: f64,
    tokens: Tokens,
}

/// The text, trimmed to `target`: units go, worthless ones first, then headings of sections that are
/// empty now. Whole lines only; where not even one fits, nothing is left.
pub(super) fn to(text: &str, facts: &[Fact], target: Tokens, counter: &Counter) -> String {
    let outline = Outline::of(text);
    let mut units = units(&outline, facts, counter);
    units.sort_by(|a, b| a.worth.total_cmp(&b.worth).then(a.lines.cmp(&b.lines)));
    let total: Tokens = units.iter().map(|unit| unit.tokens).sum();
    let mut left = total;
    let mut gone = vec![false; outline.lines.len()];
    let mut text = compose(&outline, &gone);
    let mut next = units.iter();
    // The sum over lines is near the size of the whole; the whole is counted when it may fit.
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

/// The text with less of what holds no fact, where passages that are missing find no room else.
pub(super) fn make_room(
    text: &str,
    facts: &[Fact],
    missing: &[usize],
    how: &Repair<'_>,
) -> Option<String> {
    let wanted = missing.iter().filter_map(|&at| facts.get(at)).filter(|f| f.kind.is_passage());
    let wanted: Tokens = wanted.map(|fact| cost(fact, how.counter)).sum();
    let room = how.budget - how.size(text);
    if wanted <= room {
        return None;
    }
    let outline = Outline::of(text);
    let mut story: Vec<Unit> = units(&outline, facts, how.counter);
    story.retain(|unit| unit.worth < 0.1);
    let mut told: Tokens = story.iter().map(|unit| unit.tokens).sum();
    let least = how.budget.scale(STORY);
    let mut short = wanted - room;
    story.sort_by(|a, b| a.worth.total_cmp(&b.worth).then(a.lines.cmp(&b.lines)));
    let mut gone = vec![false; outline.lines.len()];
    for unit in story {
        if short == Tokens::ZERO || told - unit.tokens < least {
            break;
        }
        unit.lines.iter().for_each(|&line| gone[line] = true);
        short -= unit.tokens;
        told -= unit.tokens;
    }
    gone.contains(&true).then(|| compose(&outline, &gone))
}

fn units(outline: &Outline<'_>, facts: &[Fact], counter: &Counter) -> Vec<Unit> {
    let mut worth = vec![0.0f64; outline.lines.len()];
    let all = facts.len().max(1) as f64;
    for (rank, line) in lines_of(outline.text, facts).into_iter().enumerate() {
        if let Some(worth) = line.and_then(|line| worth.get_mut(line)) {
            *worth = worth.max(0.1 + 0.9 * (1.0 - rank as f64 / all));
        }
    }
    let mut units: Vec<Unit> = Vec::new();
    let mut fence = None;
    for (at, (line, worth)) in outline.lines.iter().zip(worth).enumerate() {
        let tokens = counter.text(outline.words(line));
        let goes_on = line.fence.is_some() && line.fence == fence;
        fence = line.fence;
        if goes_on && let Some(unit) = units.last_mut() {
            unit.lines.push(at);
            unit.tokens += tokens;
            unit.worth = unit.worth.max(worth);
        } else if line.part == Part::Words || line.fence.is_some() {
            // A line without a fact is worth what its section is.
            let worth = if worth > 0.0 { worth } else { section_worth(line) };
            units.push(Unit { lines: vec![at], worth, tokens });
        }
    }
    units
}

/// What a line without a fact is worth, below any that has one.
fn section_worth(line: &Line) -> f64 {
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

/// The text of the lines that are left, without headings and blocks that have become empty.
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

/// Which lines stay: those that are not gone, and of headings and marks those that still stand over
/// something.
fn without_empty(outline: &Outline<'_>, gone: &[bool]) -> Vec<bool> {
    let mut kept: Vec<bool> = gone.iter().map(|gone| !gone).collect();
    // From the end: what is kept below a heading, in a list of files, and anywhere behind.
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
                // A heading of a higher rank stands over those below it.
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
