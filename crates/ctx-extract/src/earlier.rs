//! Merges the previous summary with newer notes.

use std::collections::HashSet;

use ctx_core::EntryId;
use ctx_facts::names_base_folder;

use super::ExtractInput;
use super::agreement::{ANSWER, is_superseded};
use super::ended::{Ended, covers};
use super::note::{
    EARLIER, FIRST, LABELS, LATEST, Note, QUESTION, REVERTED, TOKENS, drop_all, is_work, normal,
};
use super::talk::WIDE;
use super::turns::Turn;
use super::user::{asks, drop_answer};
use crate::{Field, StructuredSummary, SummaryLine};
use ctx_text::{Gist, WordList, clip_to_width, collapsed, gist, sentences};

/// The maximum number of reports and plans that are compared, newest first.
const COMPARED: usize = 300;

/// Adds the lines of the previous summary, without work that ended since.
pub(super) fn merge(job: &ExtractInput<'_>, turns: &[Turn], mut notes: Vec<Note>) -> Vec<Note> {
    let Some(previous) = job.previous else { return notes };
    let old = StructuredSummary::parse(&previous.text);
    let ended = Ended::of(job, turns, &notes);
    let mut compared = 0;
    let mut age = i64::MIN / 2;
    let mut out = Vec::new();
    let known = known_words(job);
    for (field, line) in lines(old) {
        // What these lines list is in the ledger of facts.
        if TOKENS.iter().any(|label| line.text.starts_with(label)) {
            continue;
        }
        age += 1;
        let (label, text) = unlabelled(&line.text);
        let result_of = text.split_inclusive(" → ").next().filter(|run| run.starts_with('`'));
        let ran_again = |run: &str| notes.iter().any(|note| note.text.starts_with(run));
        if !is_work(field) && covers_words(&known, text) || result_of.is_some_and(ran_again) {
            continue;
        }
        let mut cites = line.cites;
        if cites.is_empty() {
            // The summary's entry represents all that it summarised.
            cites.extend(previous.entry.clone());
        }
        let note = carried_note(field, label, text, cites, age);
        let open = matches!(field, Field::InProgress | Field::NextSteps | Field::Blocked);
        compared += usize::from(open);
        let is_over = open && ended.holds(field, &gist(&note.text), compared <= COMPARED);
        if is_over || note.text.is_empty() {
            continue;
        }
        if note.text.contains(ANSWER) {
            if note.cites.last().is_some_and(|answer| is_superseded(job, answer)) {
                continue;
            }
            drop_answer(&mut notes, &note);
        }
        out.push(note);
    }
    relabel_goals(&out, &mut notes);
    // Within a field, newer lines of the previous summary weigh slightly more.
    let count = out.len().max(1) as f32;
    for (n, note) in out.iter_mut().enumerate() {
        note.weight += 0.05 * n as f32 / count;
    }
    out.extend(notes);
    out
}

/// Makes a note of a line of the previous summary; `age` orders the lines.
fn carried_note(
    field: Field,
    label: Option<&'static str>,
    text: &str,
    cites: Vec<EntryId>,
    age: i64,
) -> Note {
    let weight = match field {
        Field::Goal => 0.55,
        Field::Constraints => 0.78,
        Field::Decisions => 0.55,
        Field::CriticalContext => 0.47,
        Field::Done => 0.46,
        Field::InProgress | Field::Blocked | Field::NextSteps => 0.45,
    };
    let mut note = Note::new(field, carried(text), &EntryId::from(""), weight, 0);
    (note.cites, note.order) = (cites, age);
    match (field, label) {
        (Field::Goal, Some(FIRST)) => (note.label, note.weight) = (FIRST, 0.85),
        (Field::Goal, _) => {
            note.label = EARLIER;
            // The newest goal comes first.
            note.order = -age;
        }
        (_, Some(label @ (QUESTION | REVERTED))) => note.label = label,
        _ => {}
    }
    note
}

/// If there is an earlier goal, the first request of this range is not the session's first.
fn relabel_goals(earlier: &[Note], notes: &mut [Note]) {
    if earlier.iter().any(|note| note.field == Field::Goal) {
        for note in notes.iter_mut().filter(|note| note.field == Field::Goal) {
            match note.label {
                FIRST => note.label = EARLIER,
                "" => note.label = LATEST,
                _ => {}
            }
        }
    }
}

/// Removes planned work that is reported finished later.
pub(super) fn settle(notes: &mut Vec<Note>) {
    let mut order: Vec<usize> = (0..notes.len()).collect();
    order.sort_by_key(|&n| std::cmp::Reverse(notes[n].order));
    let newest = |fields: &[Field]| -> Vec<(usize, Gist, i64)> {
        let of = order.iter().filter(|&&n| fields.contains(&notes[n].field)).take(COMPARED);
        of.map(|&n| (n, gist(&notes[n].text), notes[n].order)).collect()
    };
    let finished = newest(&[Field::Done]);
    let settled: HashSet<usize> = newest(&[Field::InProgress, Field::Blocked, Field::NextSteps])
        .into_iter()
        .filter(|(_, planned, at)| {
            finished.iter().any(|(_, done, later)| later > at && covers(done, planned))
        })
        .map(|(n, _, _)| n)
        .collect();
    drop_all(notes, &settled);
}

/// Returns all lines with their fields; those of a split turn are in the past by now.
fn lines(mut old: StructuredSummary) -> Vec<(Field, SummaryLine)> {
    let mut out = Vec::new();
    for field in Field::ALL {
        let lines = std::mem::take(old.lines_mut(field));
        out.extend(lines.into_iter().map(|line| (field, line)));
    }
    if let Some(turn) = old.turn {
        let request = turn.original_request.join(" ");
        if !request.trim().is_empty() {
            let is_goal = request.lines().flat_map(sentences).any(asks);
            let field = if is_goal { Field::Goal } else { Field::CriticalContext };
            out.push((field, SummaryLine::parse(&request)));
        }
        out.extend(turn.early_progress.into_iter().map(|line| (Field::Done, line)));
        out.extend(turn.context_for_suffix.into_iter().map(|line| (Field::CriticalContext, line)));
    }
    out
}

fn unlabelled(text: &str) -> (Option<&'static str>, &str) {
    let found = LABELS.iter().find_map(|label| Some((*label, text.strip_prefix(label)?)));
    found.map_or((None, text), |(label, rest)| (Some(label), rest))
}

/// Returns the user's words that the ledger of facts has: lines of the previous summary that quote
/// them come from the ledger, or no longer hold.
fn known_words(job: &ExtractInput<'_>) -> Vec<String> {
    let required = job.facts.required.iter().filter(|fact| fact.by_user);
    let superseded = job.facts.superseded.iter().map(|old| &old.fact);
    let all = required.filter(|fact| fact.kind.is_passage()).chain(superseded);
    all.map(|fact| normal(&fact.text)).filter(|text| !text.is_empty()).collect()
}

/// Whether each sentence of a line is known.
fn covers_words(known: &[String], line: &str) -> bool {
    let sentences = line.lines().flat_map(sentences).map(normal);
    let mut words = sentences.filter(|words| !words.is_empty()).peekable();
    let is_known = |words: String| {
        known.iter().any(|known| known.contains(&words) || words.contains(known.as_str()))
    };
    words.peek().is_some() && words.all(is_known)
}

/// Text that clients put around a summary when they send it to the model.
static FRAMES: WordList = WordList::new("summary_frames");

/// Returns a line of the previous summary, whole unless it is long.
fn carried(text: &str) -> String {
    if names_base_folder(text) || FRAMES.begins(text) {
        return String::new();
    }
    if text.len() <= 2 * WIDE {
        return text.to_owned();
    }
    clip_to_width(&collapsed(text), 2 * WIDE)
}
