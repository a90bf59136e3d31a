//! Removes lines from a summary, the least important first.

use ctx_core::{Counter, Tokens};

use super::Draft;
use super::outline::{Outline, OutlineLine, Part};
use ctx_extract::Field;
use ctx_facts::names_base_folder;

/// A unit of removal: a line, or all lines of a fence.
struct Unit {
    lines: Vec<usize>,
    /// Its value: below 0.1 without a fact, up to 1 for the most important fact.
    worth: f64,
    tokens: Tokens,
}

/// Trims a draft to `target`: removes units, lowest value first, then headings of empty sections.
/// Only whole lines are removed; if not even one fits, the result is empty. The line that names the
/// folder of all paths stays.
pub(super) fn to(draft: &Draft, target: Tokens, counter: &Counter) -> String {
    let outline = Outline::of(&draft.text);
    let mut units = units(&outline, draft, counter);
    units.sort_by(|a, b| a.worth.total_cmp(&b.worth).then(a.lines.cmp(&b.lines)));
    let mut gone = vec![false; outline.lines.len()];
    let mut text = compose(&outline, &gone);
    let mut next = units.iter().peekable();
    // The sum over the lines is close to the whole; the whole is counted when it may fit.
    while counter.text(&text) > target {
        if next.peek().is_none() {
            return String::new();
        }
        let mut over = counter.text(&text) - target;
        while over > Tokens::ZERO
            && let Some(unit) = next.next()
        {
            unit.lines.iter().for_each(|&line| gone[line] = true);
            over -= unit.tokens;
        }
        text = compose(&outline, &gone);
    }
    text
}

fn units(outline: &Outline<'_>, draft: &Draft, counter: &Counter) -> Vec<Unit> {
    let mut worths = vec![0.0f64; outline.lines.len()];
    let all = draft.found.len().max(1) as f64;
    for (rank, found) in draft.found.iter().enumerate() {
        if let Some(worth) = found.and_then(|found| worths.get_mut(found.line)) {
            *worth = worth.max(0.1 + 0.9 * (1.0 - rank as f64 / all));
        }
    }
    let mut units: Vec<Unit> = Vec::new();
    let mut fence = None;
    for (at, (line, worth)) in outline.lines.iter().zip(worths).enumerate() {
        let words = outline.words(line);
        let tokens = counter.text(words);
        let goes_on = line.fence.is_some() && line.fence == fence;
        fence = line.fence;
        if goes_on && let Some(unit) = units.last_mut() {
            unit.lines.push(at);
            unit.tokens += tokens;
            unit.worth = unit.worth.max(worth);
        } else if (line.part == Part::Words || line.fence.is_some()) && !names_base_folder(words) {
            // A line without a fact has the value of its section.
            let worth = if worth > 0.0 { worth } else { section_worth(line) };
            units.push(Unit { lines: vec![at], worth, tokens });
        }
    }
    units
}

/// Returns the value of a line without a fact, below that of any line with one.
fn section_worth(line: &OutlineLine) -> f64 {
    match line.field {
        _ if line.in_turn => 0.09,
        Some(Field::Goal) => 0.08,
        Some(Field::NextSteps | Field::Blocked) => 0.07,
        Some(Field::Constraints | Field::Decisions) => 0.06,
        Some(Field::InProgress) => 0.05,
        Some(Field::Done) => 0.02,
        _ => 0.03,
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
