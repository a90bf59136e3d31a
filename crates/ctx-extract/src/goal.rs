//! Notes of the user's requests.

use std::collections::HashSet;

use super::ExtractInput;
use super::agreement::picks;
use super::note::{EARLIER, FIRST, LATEST, Note};
use super::prose::passages;
use super::talk::{NARROW, WIDE};
use super::turns::Turn;
use crate::Field;
use ctx_text::output::root_cause;
use ctx_text::{Signal, is_assent};
use ctx_text::{clip_to_width, width};
use ctx_text::{is_courtesy, sentences};

/// Adds the user's requests: the latest, the first one, and those in between.
pub(super) fn goals(job: &ExtractInput<'_>, turns: &[Turn], out: &mut Vec<Note>) {
    let asks: Vec<&Turn> = turns
        .iter()
        .filter(|turn| turn.asked_at.is_some() && !turn.is_small_talk() && !picks_only(turn))
        .collect();
    for (n, turn) in asks.iter().enumerate() {
        let Some(at) = turn.asked_at else { continue };
        let Some(said) = job.messages.get(at) else { continue };
        let latest = n + 1 == asks.len();
        let in_prefix = job.turn_start.is_some_and(|start| at >= start);
        // The request of a split turn is quoted in full elsewhere.
        let room = match (latest, n) {
            (true, _) if !in_prefix => 2 * WIDE,
            (false, 0) => WIDE,
            _ => NARROW,
        };
        let text = gist(&turn.ask, room, latest);
        if text.is_empty() {
            continue;
        }
        let (label, weight) = match (latest, n) {
            (true, 0) => ("", 1.2),
            (true, _) => (LATEST, 1.2),
            (false, 0) => (FIRST, 0.85),
            (false, n) => {
                // A mere question is answered below.
                let base = if Signal::of(&turn.ask).question { 0.25 } else { 0.38 };
                (EARLIER, base + 0.35 * (n as f32 / asks.len() as f32))
            }
        };
        // The newest comes first.
        let mut note = Note::new(Field::Goal, text, &said.id, weight, at).labelled(label);
        note.order = -note.order;
        out.push(note);
    }
}

/// The maximum number of middle requests that are quoted in full, and that are only mentioned.
const IN_FULL: usize = 5;
const MENTIONED: usize = 12;
/// The width of a request that is only mentioned.
const SHORT: usize = 80;

/// Shortens earlier requests: other notes contain their results.
pub(super) fn fewer(notes: &mut Vec<Note>) {
    let is_old = |note: &Note| note.field == Field::Goal && note.label == EARLIER;
    let mut old: Vec<usize> = (0..notes.len()).filter(|&n| is_old(&notes[n])).collect();
    // The newest comes first.
    old.sort_by_key(|&n| notes[n].order);
    for &n in old.iter().skip(IN_FULL).take(MENTIONED) {
        notes[n].text = clip_to_width(&notes[n].text, SHORT);
    }
    let gone: HashSet<usize> = old.into_iter().skip(IN_FULL + MENTIONED).collect();
    let mut n = 0;
    notes.retain(|_| {
        n += 1;
        !gone.contains(&(n - 1))
    });
}

/// Whether a message only picks an option, which is a decision.
fn picks_only(turn: &Turn) -> bool {
    width(&turn.ask) < 60 && !turn.ask.contains(['?', '？']) && !picks(&turn.ask).is_empty()
}

/// Returns the sentences of a message that say what is wanted, in order.
pub(super) fn gist(text: &str, room: usize, whole: bool) -> String {
    let passages = passages(text);
    let all = passages.iter().flat_map(|p| sentences(&p.text));
    let all: Vec<&str> = all.filter(|s| !is_assent(s) && !is_courtesy(s)).collect();
    if all.is_empty() {
        // Only pasted text: its subject is its error, or its first line.
        let line = root_cause(text)
            .or_else(|| text.lines().find(|l| !l.trim().is_empty()).map(str::to_owned));
        return clip_to_width(&line.unwrap_or_default(), room);
    }
    // Permanent demands become constraints.
    let asks: Vec<&str> = all.iter().copied().filter(|s| !is_strict(s)).collect();
    let all = if whole || asks.is_empty() { all } else { asks };
    let wants = |s: &str| {
        let signal = Signal::of(s);
        signal.question || signal.demand
    };
    let cause = root_cause(text).filter(|_| all.len() > 2 && !all.iter().any(|s| wants(s)));
    if let Some(cause) = cause {
        return clip_to_width(&cause, room);
    }
    let mut chosen = vec![false; all.len()];
    let mut left = room;
    let mut take = |n: usize, chosen: &mut Vec<bool>| {
        let needed = width(all[n]) + 2;
        if !chosen[n] && needed <= left {
            left -= needed;
            chosen[n] = true;
        }
    };
    // The request itself is usually a question or a demand, and comes first or last.
    let mut order: Vec<usize> = (0..all.len()).filter(|&n| whole || wants(all[n])).collect();
    if !whole {
        order.extend([0, all.len() - 1]);
        order.extend(0..all.len());
    }
    for n in order {
        take(n, &mut chosen);
    }
    if !chosen.contains(&true) {
        let best = (0..all.len()).find(|&n| wants(all[n])).unwrap_or(0);
        return clip_to_width(all[best], room);
    }
    let mut text = String::new();
    let mut last = None;
    for (n, sentence) in all.iter().enumerate().filter(|(n, _)| chosen[*n]) {
        if last.is_some_and(|last| last + 1 != n) {
            text.push_str(" …");
        }
        if !text.is_empty() {
            // List items have no full stop.
            let open =
                text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | '`' | '"'));
            text.push_str(if open { "; " } else { " " });
        }
        text.push_str(sentence);
        last = Some(n);
    }
    text
}

fn is_strict(sentence: &str) -> bool {
    let signal = Signal::of(sentence);
    signal.strict && !signal.question && !signal.chatter
}
